// Package perfetto writes a recording as one file in Perfetto's own format: a view of the hardware, as a tree of tracks.
// A SIP has its rank's host, streams and process groups, its cubes, and in these its PEs; a PE has its steps, DMA engines
// and vector unit; links are with what they are part of, each with what is on it and how full it is. Arrows lead from
// calls to what they are for, from sent to received, and from DMA engines over the links.
//
// The tree is not one of processes, although a viewer would draw that too: Perfetto shows those with the most bars first,
// and ranks are to be below one another. Tracks that have no parent it sorts by name.
//
// Times are in nanoseconds, rounded down: the format has no finer ones.
package perfetto

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// Write writes a recording.
func Write(w io.Writer, rec *trace.Recording) error {
	o := newWriter(w)
	tracks := map[spot]uint64{}
	places := placesOf(rec)
	for _, p := range places {
		tracks[p.spot] = p.write(o, tracks[p.around()], rec)
	}
	for _, p := range places { // behind the engines: of what begins at one time, arrows begin at what is written first
		for _, l := range sortedKeys(p.links) {
			o.link(tracks[p.spot], l, p.links[l], rec)
		}
	}
	if o.err != nil {
		return o.err
	}
	return o.w.Flush()
}

// spot is where something is in the hardware; -1 where it is around all of them. Its fields' order is that of what is
// written.
type spot struct{ node, sip, cube, pe int }

// around is the spot that s is in, which has a track for it: a cube's or a SIP's. Nothing is around a SIP.
func (s spot) around() spot {
	if s.pe >= 0 {
		return spot{s.node, s.sip, s.cube, -1}
	}
	return spot{s.node, s.sip, -1, -1}
}

// place is a part of the hardware, and what is to be written of it.
type place struct {
	spot

	rank       bool  // it is a SIP whose rank is recorded
	sent       []int // steps of a PE
	received   []int
	engines    map[int][]int // flows by DMA engine
	reductions []*trace.Reduction
	links      map[topology.LinkID][]int // flows
}

// places finds the place of everything.
type places struct {
	topology *topology.Topology
	known    map[spot]*place
}

func placesOf(rec *trace.Recording) []*place {
	all := places{rec.Topology, map[spot]*place{}}
	for _, rank := range rec.Ranks() {
		all.of(rec.Topology.IO(rank)).rank = true
	}
	for i := range rec.Steps {
		s := &rec.Steps[i]
		src, dst := all.of(s.From), all.of(s.To)
		if src.sent = append(src.sent, i); s.AtSwitch == nil {
			dst.received = append(dst.received, i)
		}
	}
	for i := range rec.Reductions {
		p := all.of(rec.Reductions[i].PE)
		p.reductions = append(p.reductions, &rec.Reductions[i])
	}
	for i := range rec.Flows {
		all.addFlow(rec, i)
	}
	return all.inOrder()
}

func (all *places) addFlow(rec *trace.Recording, i int) {
	f := &rec.Flows[i]
	seg := &rec.Segments[f.Segment]
	if f.Engine >= 0 {
		p := all.of(seg.From)
		p.engines[f.Engine] = append(p.engines[f.Engine], i)
	}
	for _, l := range seg.Links {
		p := all.ofLink(l)
		p.links[l] = append(p.links[l], i)
	}
}

// of is the place of a device: a cube's memory is with its router, a switch with its node.
func (all *places) of(id topology.DeviceID) *place {
	d := all.topology.Device(id)
	return all.at(spot{d.Node, d.SIP, d.Cube, d.PE})
}

// ofLink is the place of a link: the innermost thing that both ends are in, but that of a SIP's mesh is with the cube
// it comes from.
func (all *places) ofLink(id topology.LinkID) *place {
	l := all.topology.Link(id)
	from, to := all.topology.Device(l.From), all.topology.Device(l.To)
	switch {
	case from.Node != to.Node: // one is the network
		if from.Node < 0 {
			return all.of(l.From)
		}
		return all.of(l.To)
	case from.SIP != to.SIP:
		return all.at(spot{from.Node, -1, -1, -1})
	case from.Cube >= 0 && to.Cube >= 0:
		return all.of(l.From)
	}
	return all.at(spot{from.Node, from.SIP, -1, -1})
}

// at is the place at a spot; what is around it has one too.
func (all *places) at(s spot) *place {
	p := all.known[s]
	if p == nil {
		p = &place{spot: s, engines: map[int][]int{}, links: map[topology.LinkID][]int{}}
		all.known[s] = p
		all.at(s.around())
	}
	return p
}

func (all *places) inOrder() []*place {
	var list []*place
	for _, p := range all.known {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *place) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.sip, b.sip), cmp.Compare(a.cube, b.cube), cmp.Compare(a.pe, b.pe))
	})
	return list
}

// name is as long as it has to be for names to be in the order of the numbers in them.
func (p *place) name(t *topology.Topology) string {
	node := fmt.Sprintf("n%0*d", digits(t.Nodes()), p.node)
	sip := fmt.Sprintf("%s.s%d", node, p.sip)
	switch {
	case p.node < 0:
		return "network between the nodes"
	case p.sip < 0:
		return "node " + node
	case p.cube < 0 && p.rank:
		return fmt.Sprintf("rank %0*d on %s", digits(t.SIPs()), p.sip, sip)
	case p.cube < 0:
		return fmt.Sprintf("SIP %0*d, %s", digits(t.SIPs()), p.sip, sip)
	case p.pe < 0:
		return fmt.Sprintf("cube %s.c%d", sip, p.cube)
	}
	return fmt.Sprintf("PE %s.c%d.p%d", sip, p.cube, p.pe)
}

// digits is how many the numbers below n need.
func digits(n int) int { return len(strconv.Itoa(n - 1)) }

// write writes a place, but for its links, into the track of what is around it, which is 0 where nothing is.
func (p *place) write(o *writer, around uint64, rec *trace.Recording) uint64 {
	track := o.group(around, p.name(rec.Topology))
	if p.rank {
		o.rank(track, p, rec)
	}
	o.steps(track, p, rec)
	o.engines(track, p, rec)
	o.reductions(track, p)
	return track
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	var keys []K
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// The numbers of arrows of all kinds are apart.
const (
	callArrow = iota
	stepArrow
	flowArrow
	arrows
)

func arrow(kind int, number uint64) uint64 { return number*arrows + uint64(kind) }

// bars draws n bars that may overlap: in as many tracks of one name, which a viewer shows as one. draw begins bar i on
// a track; it is ended here.
func (o *writer) bars(parent uint64, name string, n int, at func(i int) (start, end sim.Time), draw func(track uint64, i int)) {
	byLane := map[int][]int{}
	for i, lane := range trace.Lanes(n, at) {
		byLane[lane] = append(byLane[lane], i)
	}
	for _, lane := range sortedKeys(byLane) {
		list := byLane[lane]
		slices.SortStableFunc(list, func(a, b int) int {
			x, _ := at(a)
			y, _ := at(b)
			return cmp.Compare(x, y)
		})
		track := o.describe(parent, name, nil)
		for _, i := range list {
			start, end := at(i)
			draw(track, i)
			o.send(start)
			o.end(track, end)
		}
	}
}
