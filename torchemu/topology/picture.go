package topology

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"strings"
	"text/tabwriter"
)

// mostShown is how many SIPs of a node, and how many nodes, a picture shows; of more it shows the first ones.
const mostShown = 16

// Text is a picture of the topology for a terminal, and its links by class with their rates.
func (t *Topology) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", t.Name)
	if d := t.config.Description; d != "" {
		fmt.Fprintf(&b, ": %s", d)
	}
	fmt.Fprintf(&b, "\n\n")
	for node := range min(t.Nodes(), mostShown) {
		t.drawNode(&b, node)
	}
	if more := t.Nodes() - mostShown; more > 0 {
		fmt.Fprintf(&b, "… and %d more nodes\n", more)
	}
	b.WriteByte('\n')
	t.tabulate(&b)
	return b.String()
}

func (t *Topology) drawNode(b *strings.Builder, node int) {
	n := t.SIPs() / t.Nodes()
	name := func(i int) string { return fmt.Sprintf("[s%d]", node*n+i) }
	fmt.Fprintf(b, "node %d  ", node)
	switch s := t.config.System.SIPs; s.Connect {
	case torus2D:
		for y := range min(int(s.H), mostShown) {
			if y > 0 {
				b.WriteString("\n        ")
			}
			for x := range min(int(s.W), mostShown) {
				fmt.Fprintf(b, "─%-5s", name(y*int(s.W)+x))
			}
			b.WriteString("─")
		}
		b.WriteString("  rows and columns close into rings")
	case switched:
		b.WriteString(row(n, name, "   ") + "\n        " + row(n, func(i int) string {
			return strings.Repeat(" ", len(name(i))/2) + "│" + strings.Repeat(" ", (len(name(i))-1)/2)
		}, "   ") + "\n        " + "══ switch " + strings.Repeat("═", max(0, 7*min(n, mostShown)-10)))
	case fullyConnected:
		b.WriteString(row(n, name, "   ") + "  a link between any two")
	default:
		b.WriteString(row(n, name, "───") + "  closed into a ring")
	}
	b.WriteByte('\n')
	if t.config.System.Network != nil {
		fmt.Fprintf(b, "        a NIC each, to the network\n")
	}
}

func row(n int, name func(i int) string, between string) string {
	var list []string
	for i := range min(n, mostShown) {
		list = append(list, name(i))
	}
	text := strings.Join(list, between)
	if n > mostShown {
		text += fmt.Sprintf("%s… and %d more", between, n-mostShown)
	}
	return text
}

// class is what links have in common that a table shows in one row.
type class struct {
	what      string
	bandwidth int64
	latency   int64
}

// tabulate lists the links by class.
func (t *Topology) tabulate(b *strings.Builder) {
	count := map[class]int{}
	var seen []class
	for id := range LinkID(t.NumLinks()) {
		l := t.Link(id)
		c := class{fmt.Sprintf("%s > %s", t.Device(l.From).Kind, t.Device(l.To).Kind), l.Bandwidth, l.Latency}
		if count[c] == 0 {
			seen = append(seen, c)
		}
		count[c]++
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "links\tcount\tGB/s each\tns\t")
	for _, c := range seen {
		fmt.Fprintf(w, "%s\t%d\t%g\t%g\t\n", c.what, count[c], giga(c.bandwidth), nano(c.latency))
	}
	_ = w.Flush() // to memory
	if t.SIPs() > 1 {
		t.tellDistance(b, 0, 1, "in a node")
	}
	if n := t.SIPs() / t.Nodes(); t.Nodes() > 1 {
		t.tellDistance(b, 0, n, "between nodes")
	}
	t.tellInNetwork(b)
}

// tellInNetwork says what the switch does with data itself.
func (t *Topology) tellInNetwork(b *strings.Builder) {
	n := t.inNetwork
	var does []string
	if n.Multicast {
		does = append(does, "multicasts")
	}
	for by := range Reduction(numReductions) {
		if n.Reduces(by) {
			does = append(does, "reduces by "+by.String())
		}
	}
	if len(does) == 0 {
		return
	}
	rate := cmp.Or(n.Bandwidth, t.config.System.SIPs.Link.Bandwidth.bytesPerSecond())
	fmt.Fprintf(b, "\nthe switch %s: %g GB/s on the link of a SIP\n", strings.Join(does, ", "), giga(rate))
}

// tellDistance says what lies between two SIPs.
func (t *Topology) tellDistance(b *strings.Builder, from, to int, where string) {
	latency, narrowest := t.DMA().Setup, t.DMA().Bandwidth
	route := t.Route(t.PE(from, 0, 0), t.PE(to, 0, 0))
	for _, id := range route {
		latency += t.Link(id).Latency
		narrowest = min(narrowest, t.Link(id).Bandwidth)
	}
	fmt.Fprintf(b, "\na message from s%d to s%d, %s: %d links, %g ns and %g GB/s\n", from, to, where, len(route), nano(latency), giga(narrowest))
	if t.transport != nil {
		fmt.Fprintf(b, "collectives go by the transport section (library %s), not by these figures\n", orNone(t.transport.Library))
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// The sizes of an SVG picture, in pixels.
const (
	nodeSize  = 320
	sipRadius = 17
	margin    = 48
)

// SVG is a picture of the topology: the SIPs of each node on a circle, and the links between them with their rates.
func (t *Topology) SVG() string {
	var b strings.Builder
	nodes := min(t.Nodes(), mostShown)
	columns := int(math.Ceil(math.Sqrt(float64(nodes))))
	rows := (nodes + columns - 1) / columns
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12" text-anchor="middle">`+"\n",
		columns*nodeSize, rows*nodeSize+margin)
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="16">%s</text>`+"\n", columns*nodeSize/2, html.EscapeString(t.Name))
	for node := range nodes {
		t.drawSVGNode(&b, node, float64(node%columns*nodeSize), float64(node/columns*nodeSize+margin))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (t *Topology) drawSVGNode(b *strings.Builder, node int, left, top float64) {
	n := t.SIPs() / t.Nodes()
	shown := min(n, mostShown)
	place := func(i int) (x, y float64) {
		if i == n { // the switch
			return left + nodeSize/2, top + nodeSize/2
		}
		angle := 2*math.Pi*float64(i)/float64(shown) - math.Pi/2
		radius := float64(nodeSize)/2 - 2*sipRadius
		return left + nodeSize/2 + radius*math.Cos(angle), top + nodeSize/2 + radius*math.Sin(angle)
	}
	fabric := t.layout.fabric
	for e := range fabric.edges() {
		from, to := fabric.edge(e)
		if from > to || from >= shown && from != n || to >= shown && to != n {
			continue // each pair of links once
		}
		x1, y1 := place(from)
		x2, y2 := place(to)
		fmt.Fprintf(b, `<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f" stroke="#888"><title>%g GB/s, %g ns</title></line>`+"\n", x1, y1, x2, y2,
			float64(t.config.System.SIPs.Link.Bandwidth), float64(t.config.System.SIPs.Link.Latency))
	}
	for i := range shown {
		x, y := place(i)
		drawBox(b, x, y, fmt.Sprintf("s%d", node*n+i), "#cde")
	}
	if t.config.System.SIPs.Connect == switched {
		x, y := place(n)
		drawBox(b, x, y, "switch", "#fed")
	}
	rate := fmt.Sprintf("node %d: %g GB/s a link", node, float64(t.config.System.SIPs.Link.Bandwidth))
	if net := t.config.System.Network; net != nil {
		rate += fmt.Sprintf(", %g GB/s a NIC", float64(net.NIC.Bandwidth))
	}
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f">%s</text>`+"\n", left+nodeSize/2, top+nodeSize-4, rate)
}

func drawBox(b *strings.Builder, x, y float64, name, colour string) {
	width := max(2*sipRadius, 8*len(name))
	fmt.Fprintf(b, `<rect x="%.0f" y="%.0f" width="%d" height="%d" rx="5" fill="%s" stroke="#456"/><text x="%.0f" y="%.0f">%s</text>`+"\n",
		x-float64(width)/2, y-sipRadius*0.7, width, sipRadius*7/5, colour, x, y+4, name)
}
