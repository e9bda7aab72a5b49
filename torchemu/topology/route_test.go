package topology_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

// graph is the links of a topology by the device they leave.
type graph [][]topology.Link

func graphOf(top *topology.Topology) graph {
	g := make(graph, top.NumDevices())
	for i := range top.NumLinks() {
		l := top.Link(topology.LinkID(i))
		g[l.From] = append(g[l.From], l)
	}
	return g
}

// distances is a breadth-first search from one device; -1 where it does not come. It enters no closed device.
func (g graph) distances(from topology.DeviceID, closed func(topology.DeviceID) bool) []int {
	dist := slices.Repeat([]int{-1}, len(g))
	dist[from] = 0
	for queue := []topology.DeviceID{from}; len(queue) > 0; queue = queue[1:] {
		for _, l := range g[queue[0]] {
			if dist[l.To] < 0 && !closed(l.To) {
				dist[l.To] = dist[queue[0]] + 1
				queue = append(queue, l.To)
			}
		}
	}
	return dist
}

// hbmOf finds the memory of a PE's cube by search.
func hbmOf(top *topology.Topology, pe topology.Device) topology.DeviceID {
	for id := range topology.DeviceID(top.NumDevices()) {
		if d := top.Device(id); d.Kind == topology.HBM && d.SIP == pe.SIP && d.Cube == pe.Cube {
			return id
		}
	}
	panic("a cube without HBM")
}

// checkRoutes follows the routes from one PE to others and compares their lengths with searches of the links.
func checkRoutes(t *testing.T, top *topology.Topology, g graph, from topology.DeviceID, to []topology.DeviceID) {
	t.Helper()
	src := top.Device(from)
	anywhere := g.distances(hbmOf(top, src), func(topology.DeviceID) bool { return false })
	inNode := g.distances(hbmOf(top, src), func(id topology.DeviceID) bool { return top.Device(id).Kind == topology.Net })
	for _, id := range to {
		dst := top.Device(id)
		route := top.Route(from, id)
		at := hbmOf(top, src)
		for _, l := range route {
			if link := top.Link(l); link.From != at {
				t.Fatalf("%s → %s: link %s does not start at %s", src.Name(), dst.Name(), top.LinkName(l),
					top.Device(at).Name())
			}
			at = top.Link(l).To
		}
		if end := hbmOf(top, dst); at != end {
			t.Fatalf("%s → %s ends at %s", src.Name(), dst.Name(), top.Device(at).Name())
		}
		want := anywhere[at]
		if src.Node == dst.Node {
			want = inNode[at]
		}
		if src.SIP == dst.SIP && src.Cube == dst.Cube {
			want = 2 // out of the memory and into it again
		}
		if len(route) != want {
			t.Fatalf("%s → %s takes %d links, the shortest way is %d", src.Name(), dst.Name(), len(route), want)
		}
		if again := top.Route(from, id); !slices.Equal(route, again) {
			t.Fatalf("%s → %s: %v, then %v", src.Name(), dst.Name(), route, again)
		}
	}
}

func pesOf(top *topology.Topology) []topology.DeviceID {
	var pes []topology.DeviceID
	for id := range topology.DeviceID(top.NumDevices()) {
		if top.Device(id).Kind == topology.PE {
			pes = append(pes, id)
		}
	}
	return pes
}

func TestRoutesAreShortestBetweenAllPEs(t *testing.T) {
	for _, s := range systems() {
		top := parse(t, s.yaml())
		pes := pesOf(top)
		g := graphOf(top)
		step := 1
		if testing.Short() {
			step = max(1, len(pes)/4)
		}
		for i := 0; i < len(pes); i += step {
			checkRoutes(t, top, g, pes[i], pes)
		}
	}
}

func TestRoutesOfPresetsAreShortest(t *testing.T) {
	const seed = 7
	t.Log("seed", seed)
	for _, name := range topology.Presets() {
		top, err := topology.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(seed, 0))
		pes, g := pesOf(top), graphOf(top)
		for range 5 {
			to := make([]topology.DeviceID, 40)
			for i := range to {
				to[i] = pes[random.IntN(len(pes))]
			}
			checkRoutes(t, top, g, pes[random.IntN(len(pes))], to)
		}
		var first []topology.DeviceID // the PEs that ranks usually have
		for sip := range top.SIPs() {
			first = append(first, top.PE(sip, 0, 0))
		}
		checkRoutes(t, top, g, first[len(first)-1], first)
	}
}

// hops counts the links of a route that join two devices of a kind.
func hops(top *topology.Topology, route []topology.LinkID, kind topology.Kind) int {
	n := 0
	for _, id := range route {
		if l := top.Link(id); top.Device(l.From).Kind == kind && top.Device(l.To).Kind == kind {
			n++
		}
	}
	return n
}

func TestRouteLengthsHaveClosedForms(t *testing.T) {
	for _, s := range systems() {
		top := parse(t, s.yaml())
		for a := range s.n {
			for b := range s.n {
				last := s.meshW*s.meshH - 1
				route := top.Route(top.PE(a, last, 1), top.PE(b, 0, 0))
				toIO := s.meshW - 1 + s.meshH - 1
				if got := hops(top, route, topology.Cube); got != toIO {
					t.Errorf("%v: SIP %d to %d: %d hops on the mesh, want %d", s, a, b, got, toIO)
				}
				want := map[string]int{
					"ring":            around(a, b, s.n),
					"torus2d":         around(a%max(s.w, 1), b%max(s.w, 1), s.w) + around(a/max(s.w, 1), b/max(s.w, 1), s.h),
					"fully_connected": min(1, abs(a-b)),
					"switch":          0,
				}[s.connect]
				if got := hops(top, route, topology.IO); got != want {
					t.Errorf("%v: SIP %d to %d: %d hops between SIPs, want %d", s, a, b, got, want)
				}
			}
		}
	}
}

// The router sequence of a route, by name, is spelled out here: order is what no length can show.
func TestRoutesGoAlongTheRowFirst(t *testing.T) {
	mesh := parse(t, system{"ring", 1, 1, 0, 0, 4, 3}.yaml())
	torus := parse(t, system{"torus2d", 1, 20, 5, 4, 1, 1}.yaml())
	for _, c := range []struct {
		top      *topology.Topology
		kind     topology.Kind
		from, to topology.DeviceID
		want     []int // cubes, or SIPs
	}{
		{mesh, topology.Cube, mesh.PE(0, 0, 0), mesh.PE(0, 11, 0), []int{0, 1, 2, 3, 7, 11}},
		{mesh, topology.Cube, mesh.PE(0, 11, 0), mesh.PE(0, 0, 0), []int{11, 10, 9, 8, 4, 0}},
		{mesh, topology.Cube, mesh.PE(0, 3, 0), mesh.PE(0, 8, 0), []int{3, 2, 1, 0, 4, 8}},
		{mesh, topology.Cube, mesh.PE(0, 9, 0), mesh.PE(0, 2, 0), []int{9, 10, 6, 2}},
		{mesh, topology.Cube, mesh.PE(0, 5, 0), mesh.PE(0, 5, 1), []int{5}},
		{torus, topology.IO, torus.PE(0, 0, 0), torus.PE(12, 0, 0), []int{0, 1, 2, 7, 12}},    // the tie of 4 rows: upwards
		{torus, topology.IO, torus.PE(12, 0, 0), torus.PE(0, 0, 0), []int{12, 11, 10, 15, 0}}, // and so back
		{torus, topology.IO, torus.PE(0, 0, 0), torus.PE(18, 0, 0), []int{0, 4, 3, 18}},       // both wrap downwards
	} {
		var got []int
		for _, l := range c.top.Route(c.from, c.to)[1:] {
			if d := c.top.Device(c.top.Link(l).From); d.Kind == c.kind && c.kind == topology.Cube {
				got = append(got, d.Cube)
			} else if d.Kind == c.kind {
				got = append(got, d.SIP)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s → %s goes by %v, want %v", c.top.Device(c.from).Name(), c.top.Device(c.to).Name(), got, c.want)
		}
	}
}

func TestTieOnARingGoesUpwards(t *testing.T) {
	top := parse(t, system{"ring", 1, 6, 0, 0, 1, 1}.yaml())
	for sip := range 6 {
		route := top.Route(top.PE(sip, 0, 0), top.PE((sip+3)%6, 0, 0))
		if next := top.Device(top.Link(route[2]).To).SIP; next != (sip+1)%6 {
			t.Errorf("SIP %d: the way to the opposite SIP starts at SIP %d", sip, next)
		}
	}
}

func TestOnlyPEsHaveRoutes(t *testing.T) {
	top := parse(t, system{"switch", 2, 2, 0, 0, 1, 1}.yaml())
	pe := top.PE(0, 0, 0)
	for id := range topology.DeviceID(top.NumDevices()) {
		is := top.Device(id).Kind == topology.PE
		if there, back := top.Route(pe, id), top.Route(id, pe); (there != nil) != is || (back != nil) != is {
			t.Errorf("%s: routes %v and %v", top.Device(id).Name(), there, back)
		}
	}
}

// All links of a SIP at once must fit through its port, its mesh and one memory, and one PE must be able to fill them:
// else what looks like a limit between SIPs would be one inside.
func TestPresetsAreLimitedByTheLinksBetweenSIPs(t *testing.T) {
	for _, name := range topology.Presets() {
		top, err := topology.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		dma := top.DMA()
		inside := int64(dma.Engines) * dma.Bandwidth // bytes per second of the narrowest place in a SIP
		between := map[topology.DeviceID]int64{}     // sum of an IO port's links to other SIPs
		for i := range top.NumLinks() {
			l := top.Link(topology.LinkID(i))
			switch from, to := top.Device(l.From).Kind, top.Device(l.To).Kind; {
			case from == topology.HBM || from == topology.Cube || to == topology.Cube:
				inside = min(inside, l.Bandwidth)
			case from == topology.IO && to != topology.NIC:
				between[l.From] += l.Bandwidth
				if l.Bandwidth > dma.Bandwidth {
					t.Errorf("%s: a DMA engine cannot fill %s", name, top.LinkName(l.ID))
				}
			}
		}
		if len(between) != top.SIPs() {
			t.Errorf("%s: %d of %d SIPs have links", name, len(between), top.SIPs())
		}
		for io, sum := range between {
			if sum > inside {
				t.Errorf("%s: %s could send %d B/s, but its SIP brings %d", name, top.Device(io).Name(), sum, inside)
			}
		}
	}
}
