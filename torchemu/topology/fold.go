package topology

import "fmt"

// Fold says, by SIP, which SIP stands for it: one of a class of SIPs that all do the same at the same times. What
// happens on a link of one of them happens on that link of each.
type Fold []int

// CheckFold says why a fold's SIPs cannot do the same at the same times: those of a node must be one class, or each keep
// its place in the node, where cables between them belong to two.
func (t *Topology) CheckFold(f Fold) error {
	l := &t.layout
	if len(f) != l.sips {
		return fmt.Errorf("a fold of %d SIPs for topology %q, which has %d", len(f), t.Name, l.sips)
	}
	for s, of := range f {
		if of < 0 || of >= l.sips || f[of] != of {
			return fmt.Errorf("SIP %d stands for SIP %d, and not for itself", of, s)
		}
	}
	if _, switched := l.fabric.(star); switched {
		return nil
	}
	n := l.sipsPerNode()
	for first := 0; first < l.sips; first += n {
		if !f.isWhole(first, n) && !f.keepsPlaces(first, n) {
			return fmt.Errorf("the SIPs of a node of topology %q do not all do the same", t.Name)
		}
	}
	return nil
}

// isWhole says whether one SIP stands for all of a node.
func (f Fold) isWhole(first, n int) bool {
	for s := first; s < first+n; s++ {
		if f[s] != f[first] {
			return false
		}
	}
	return true
}

// keepsPlaces says whether each SIP of a node is stood for by one that has the same place in its own node.
func (f Fold) keepsPlaces(first, n int) bool {
	for s := first; s < first+n; s++ {
		if f[s]%n != s%n || f[s]/n != f[first]/n {
			return false
		}
	}
	return true
}

// Folded is the link that stands for a link of a route which a SIP that stands for others sends on.
func (t *Topology) Folded(id LinkID, f Fold) LinkID {
	l := &t.layout
	switch i := int(id); {
	case i < l.fabricLink0:
		return LinkID(f[i/l.sipLinks]*l.sipLinks + i%l.sipLinks)
	case i < l.nicLink0:
		return t.foldedInNode(i-l.fabricLink0, f)
	default:
		i -= l.nicLink0
		return l.nicLink(f[i/nicLinks], i%nicLinks)
	}
}

// foldedInNode is Folded for a link between SIPs of a node, and to its switch.
func (t *Topology) foldedInNode(i int, f Fold) LinkID {
	l := &t.layout
	n, edges := l.sipsPerNode(), l.fabric.edges()
	node, edge := i/edges, i%edges
	from, to := l.fabric.edge(edge)
	end := from
	if from == n {
		end = to // from the switch
	}
	of := f[node*n+end]
	return l.fabricLinks(of/n) + LinkID(foldedEdge(l.fabric, edge, of%n))
}

// foldedEdge is the edge that a vertex has where another one has edge.
func foldedEdge(s shape, edge, at int) int {
	switch s := s.(type) {
	case star:
		return 2*at + edge%2
	case grid:
		return s.shifted(edge, at)
	default:
		return edge // of a route from the vertex that stands for others
	}
}

// shifted is the edge out of a vertex in the direction that another one's edge has.
func (g grid) shifted(edge, at int) int {
	rows := g.y.n * g.x.edges()
	if edge < rows {
		return at/g.x.n*g.x.edges() + g.x.outOf(edge%g.x.edges(), at%g.x.n)
	}
	return rows + at%g.x.n*g.y.edges() + g.y.outOf((edge-rows)%g.y.edges(), at/g.x.n)
}

// outOf is the edge out of a vertex in the direction of an edge; of two vertices each has one.
func (l line) outOf(edge, at int) int {
	switch {
	case !l.ring:
		return at
	case edge%2 == 0:
		return 2 * at
	default:
		return 2*((at-1+l.n)%l.n) + 1
	}
}
