package perfetto

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// steps writes what a PE sends and receives in collectives.
func (o *writer) steps(parent uint64, p *place, rec *trace.Recording) {
	o.bars(parent, "sends", len(p.sent),
		func(i int) (start, end sim.Time) { s := &rec.Steps[p.sent[i]]; return s.Start, s.Arrived },
		func(track uint64, i int) {
			s := &rec.Steps[p.sent[i]]
			if s.AtSwitch != nil {
				o.start(track, "step", s.Does())
			} else {
				o.start(track, "step", fmt.Sprintf("to %d", s.Dst))
				o.leads(arrow(stepArrow, uint64(p.sent[i])))
			}
			o.step(s)
		})
	o.bars(parent, "receives", len(p.received),
		func(i int) (start, end sim.Time) { s := &rec.Steps[p.received[i]]; return s.Arrived, s.End },
		func(track uint64, i int) {
			s := &rec.Steps[p.received[i]]
			name := "copy from %d"
			if s.Reduce {
				name = "reduce from %d"
			}
			o.start(track, "step", fmt.Sprintf(name, s.Src))
			o.ends(arrow(stepArrow, uint64(p.received[i])))
			o.step(s)
		})
}

func (o *writer) step(s *trace.Step) {
	o.str("collective", s.Call.Name)
	o.num("number", int64(s.Call.Seq))
	o.str("group", s.Call.Group.Name)
	o.num("step", int64(s.Index))
	o.num("bytes", s.Bytes)
}

// engines writes the DMA engines of a PE, and how many are busy.
func (o *writer) engines(parent uint64, p *place, rec *trace.Recording) {
	var changes []change
	for _, e := range sortedKeys(p.engines) {
		flows := p.engines[e]
		o.bars(parent, fmt.Sprintf("DMA engine %d", e), len(flows), times(rec, flows), func(track uint64, i int) {
			o.flow(track, "dma", flows[i], rec)
		})
		for _, i := range flows {
			changes = append(changes, change{rec.Flows[i].Start, 1}, change{rec.Flows[i].End, -1})
		}
	}
	if len(changes) > 0 {
		o.level(o.counter(parent, "busy DMA engines", "engines"), changes, 1)
	}
}

func times(rec *trace.Recording, flows []int) func(i int) (start, end sim.Time) {
	return func(i int) (start, end sim.Time) { return rec.Flows[flows[i]].Start, rec.Flows[flows[i]].End }
}

// flow begins the bar of a flow, on an engine or a link.
func (o *writer) flow(track uint64, category string, i int, rec *trace.Recording) {
	f := &rec.Flows[i]
	o.start(track, category, o.segment(f.Segment, rec))
	o.leads(arrow(flowArrow, uint64(i)))
	if category == "dma" || f.Engine < 0 { // on links it would take a third of the file; arrows lead to the engine
		o.amount(f)
	}
}

// segment is the name of a path: those of its ends, as far as they differ.
func (o *writer) segment(i int, rec *trace.Recording) string {
	if o.segments == nil {
		o.segments = make([]string, len(rec.Segments))
	}
	if o.segments[i] == "" {
		seg := &rec.Segments[i]
		from, to := rec.Topology.Device(seg.From), rec.Topology.Device(seg.To)
		switch {
		case seg.Host:
			o.segments[i] = fmt.Sprintf("host of s%d", to.SIP)
		case from.SIP == to.SIP:
			o.segments[i] = fmt.Sprintf("c%d.p%d → c%d.p%d", from.Cube, from.PE, to.Cube, to.PE)
		default:
			o.segments[i] = fmt.Sprintf("s%d → s%d", from.SIP, to.SIP)
		}
	}
	return o.segments[i]
}

// amount says how much a flow is, and how fast.
func (o *writer) amount(f *trace.Flow) {
	o.num("bytes", f.Bytes)
	if f.End > f.Start {
		o.float("GB/s", float64(f.Bytes)/float64(f.End-f.Start)*1e3)
	}
}

// reductions writes the vector unit of a PE.
func (o *writer) reductions(parent uint64, p *place) {
	o.bars(parent, "vector unit", len(p.reductions),
		func(i int) (start, end sim.Time) { return p.reductions[i].Start, p.reductions[i].End },
		func(track uint64, i int) {
			o.start(track, "reduction", "reduce")
			o.num("bytes", p.reductions[i].Bytes)
		})
}

// link writes what is on a link, and how full it is.
func (o *writer) link(parent uint64, l topology.LinkID, flows []int, rec *trace.Recording) {
	name := rec.Topology.LinkName(l)
	o.bars(parent, name, len(flows), times(rec, flows), func(track uint64, i int) {
		o.flow(track, "link", flows[i], rec)
	})
	var changes []change
	for _, i := range flows {
		f := &rec.Flows[i]
		before := 0.0
		for _, r := range f.Rates {
			changes = append(changes, change{r.From, r.BytesPerSecond - before})
			before = r.BytesPerSecond
		}
		changes = append(changes, change{f.End, -before})
	}
	o.level(o.counter(parent, name+" in use", "%"), changes, 100/float64(rec.Topology.Link(l).Bandwidth))
}

// change is by how much a level changes.
type change struct {
	at sim.Time
	by float64
}

// level writes a level whenever it has changed, times a scale, without what sums of fractions leave.
func (o *writer) level(track uint64, changes []change, scale float64) {
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	level, written := 0.0, -1.0
	for i, c := range changes {
		level += c.by
		if i+1 < len(changes) && changes[i+1].at/sim.Nanosecond == c.at/sim.Nanosecond {
			continue
		}
		value := math.Abs(math.Round(level*scale*1e6) / 1e6)
		if value != written {
			o.count(track, c.at, value)
			written = value
		}
	}
}
