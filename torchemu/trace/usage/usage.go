// Package usage sums up when DMA engines, network cards and links were in use, of a recording that has flows.
package usage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// Parts is into how many equal parts the time of a recording is cut.
const Parts = 240

// mostLinks bounds the links whose use over time is told: those that carried most for their bandwidth.
const mostLinks = 16

// Busy is a time in which something was in use without a pause, in picoseconds, and the bytes that it moved then.
type Busy struct {
	Start sim.Time `json:"start"`
	End   sim.Time `json:"end"`
	Bytes int64    `json:"bytes"`
}

// Lane is a DMA engine, or one direction of a network card.
type Lane struct {
	SIP  int    `json:"sip"`
	Kind string `json:"kind"` // dma or nic
	Name string `json:"name"`
	Busy []Busy `json:"busy"`
}

// Link is the use of a link over time.
type Link struct {
	Name  string    `json:"name"`
	Parts []float64 `json:"parts"` // the share of its bandwidth in each part of the time
}

// Of sums up a recording's flows between two times. Without flows it has nothing.
func Of(rec *trace.Recording, from, until sim.Time) (lanes []Lane, links []Link) {
	s := sums{rec: rec, from: from, until: until, lanes: map[key]*Lane{}, links: map[topology.LinkID][]float64{}}
	for i := range rec.Flows {
		s.add(&rec.Flows[i])
	}
	return s.ordered(), s.busiest()
}

// key is what tells lanes apart: an engine of a device, or a network card's link.
type key struct {
	device topology.DeviceID
	engine int
	link   topology.LinkID
}

type sums struct {
	rec         *trace.Recording
	from, until sim.Time
	lanes       map[key]*Lane
	links       map[topology.LinkID][]float64 // bytes in each part
}

func (s *sums) add(f *trace.Flow) {
	seg := &s.rec.Segments[f.Segment]
	if f.Engine >= 0 {
		s.lane(key{seg.From, f.Engine, -1}, f)
	}
	for _, l := range seg.Links {
		if s.isCard(l) {
			s.lane(key{-1, -1, l}, f)
		}
		s.spread(l, f)
	}
}

// isCard says whether a link leads from or to a network card, outside of the SIP.
func (s *sums) isCard(l topology.LinkID) bool {
	link := s.rec.Topology.Link(l)
	return s.rec.Topology.Device(link.From).Node != s.rec.Topology.Device(link.To).Node
}

// lane adds a flow to a lane. What overlaps the last one or meets it is one with it: flows are in the order of their
// ends, so one may begin before several others.
func (s *sums) lane(k key, f *trace.Flow) {
	lane := s.lanes[k]
	if lane == nil {
		lane = s.newLane(k)
		s.lanes[k] = lane
	}
	now := Busy{f.Start, f.End, f.Bytes}
	for n := len(lane.Busy); n > 0 && lane.Busy[n-1].End >= now.Start; n-- {
		last := lane.Busy[n-1]
		now = Busy{min(last.Start, now.Start), max(last.End, now.End), last.Bytes + now.Bytes}
		lane.Busy = lane.Busy[:n-1]
	}
	lane.Busy = append(lane.Busy, now)
}

func (s *sums) newLane(k key) *Lane {
	t := s.rec.Topology
	if k.link < 0 {
		d := t.Device(k.device)
		return &Lane{SIP: d.SIP, Kind: "dma", Name: fmt.Sprintf("%s DMA %d", withoutSIP(d.Name()), k.engine)}
	}
	link := t.Link(k.link)
	from, to := t.Device(link.From), t.Device(link.To)
	if from.SIP >= 0 {
		return &Lane{SIP: from.SIP, Kind: "nic", Name: "NIC out"}
	}
	return &Lane{SIP: to.SIP, Kind: "nic", Name: "NIC in"}
}

// withoutSIP is a device's name inside of its SIP: "c3.p1" of "n0.s4.c3.p1".
func withoutSIP(name string) string {
	parts := strings.SplitN(name, ".", 3)
	return parts[len(parts)-1]
}

// spread adds what a flow moves to the parts of the time in which it does so.
func (s *sums) spread(l topology.LinkID, f *trace.Flow) {
	parts := s.links[l]
	if parts == nil {
		parts = make([]float64, Parts)
		s.links[l] = parts
	}
	for i, r := range f.Rates {
		until := f.End
		if i+1 < len(f.Rates) {
			until = f.Rates[i+1].From
		}
		s.fill(parts, max(r.From, s.from), min(until, s.until), r.BytesPerSecond)
	}
}

func (s *sums) fill(parts []float64, from, until sim.Time, rate float64) {
	for from < until {
		i := s.part(from)
		end := min(s.begin(i+1), until)
		parts[i] += rate * float64(end-from) / float64(sim.Second)
		from = end
	}
}

// begin is when a part begins: the integer division makes the last one end with the time.
func (s *sums) begin(part int) sim.Time {
	span := s.until - s.from
	return s.from + span/Parts*sim.Time(part) + span%Parts*sim.Time(part)/Parts
}

// part is the one that a time is in.
func (s *sums) part(at sim.Time) int {
	i := int(float64(at-s.from) / float64(s.until-s.from) * Parts)
	i = min(max(i, 0), Parts-1)
	for i > 0 && s.begin(i) > at {
		i--
	}
	for s.begin(i+1) <= at {
		i++
	}
	return i
}

func (s *sums) ordered() []Lane {
	list := []Lane{}
	for _, lane := range s.lanes {
		list = append(list, *lane)
	}
	slices.SortFunc(list, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(a.SIP, b.SIP), cmp.Compare(a.Kind, b.Kind), cmp.Compare(len(a.Name), len(b.Name)),
			cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (s *sums) busiest() []Link {
	var ids []topology.LinkID
	load := map[topology.LinkID]float64{}
	for id, parts := range s.links {
		ids = append(ids, id)
		for _, bytes := range parts {
			load[id] += bytes / float64(s.rec.Topology.Link(id).Bandwidth)
		}
	}
	slices.SortFunc(ids, func(a, b topology.LinkID) int { return cmp.Or(cmp.Compare(load[b], load[a]), cmp.Compare(a, b)) })
	links := []Link{}
	for _, id := range ids[:min(len(ids), mostLinks)] {
		links = append(links, s.link(id))
	}
	return links
}

func (s *sums) link(id topology.LinkID) Link {
	shares := make([]float64, Parts)
	for i, bytes := range s.links[id] {
		could := float64(s.rec.Topology.Link(id).Bandwidth) * float64(s.begin(i+1)-s.begin(i)) / float64(sim.Second)
		if could > 0 {
			shares[i] = bytes / could
		}
	}
	return Link{s.rec.Topology.LinkName(id), shares}
}
