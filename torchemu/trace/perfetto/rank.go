package perfetto

import (
	"cmp"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// rank writes what a rank's host and streams did.
func (o *writer) rank(parent uint64, p *place, rec *trace.Recording) {
	rows := rec.Rows(p.sip)
	waits := trace.Waits(rows)
	o.state(parent, p.sip, rec)
	o.host(parent, p, rec)
	o.memory(parent, p.sip, rec)
	for i := 0; i < len(rows); {
		j := i
		var list []bar
		for ; j < len(rows) && rows[j].Track == rows[i].Track; j++ {
			for _, a := range rows[j].Activities {
				list = append(list, bar{activity: a, start: a.Start, end: a.End})
			}
		}
		for _, w := range waits {
			if i <= w.Row && w.Row < j {
				list = append(list, bar{wait: w.For, start: w.Start, end: w.End})
			}
		}
		o.rows(parent, rows[i].Track, list)
		i = j
	}
}

// bar is an activity, or else a time in which one was waited for.
type bar struct {
	activity, wait *trace.Activity
	start, end     sim.Time
}

// memory writes how much of the device's memory the program has in use.
func (o *writer) memory(parent uint64, rank int, rec *trace.Recording) {
	var track uint64
	for i, m := range rec.Memory {
		if m.Rank != rank {
			continue
		}
		if track == 0 {
			track = o.counter(parent, "memory allocated", "bytes")
		}
		next := i + 1
		for next < len(rec.Memory) && rec.Memory[next].Rank != rank {
			next++
		}
		if next == len(rec.Memory) || rec.Memory[next].From/sim.Nanosecond != m.From/sim.Nanosecond {
			o.count(track, m.From, float64(m.Bytes))
		}
	}
}

// host writes the host's thread, whose bars are nested.
func (o *writer) host(parent uint64, p *place, rec *trace.Recording) {
	track := o.describe(parent, "host", nil)
	var open []sim.Time // ends
	closeUntil := func(t sim.Time) {
		for len(open) > 0 && open[len(open)-1] <= t {
			o.end(track, open[len(open)-1])
			open = open[:len(open)-1]
		}
	}
	for _, h := range rec.Host(p.sip) {
		closeUntil(h.Start)
		o.hostTime(track, h)
		o.send(h.Start)
		open = append(open, h.End)
	}
	closeUntil(trace.Forever)
}

func (o *writer) hostTime(track uint64, h trace.HostTime) {
	switch {
	case h.Activity != nil:
		o.start(track, "call", h.Activity.Name)
		o.leads(arrow(callArrow, h.Activity.Number))
		if h.Activity.Site != "" {
			o.str("call site", h.Activity.Site)
		}
	case h.Span.Wait:
		o.start(track, "wait", "wait")
		o.str("for", h.Span.Name)
	default:
		o.start(track, "annotation", h.Span.Name)
	}
}

var trackTitles = map[trace.TrackKind]string{
	trace.StreamTrack: "", trace.GroupTrack: "collectives of ", trace.MessageTrack: "messages of ", trace.ShardTrack: "shard on ",
	trace.EngineTrack: "",
}

func (o *writer) rows(parent uint64, t trace.Track, list []bar) {
	slices.SortStableFunc(list, func(a, b bar) int { return cmp.Compare(a.start, b.start) })
	o.bars(parent, trackTitles[t.Kind]+t.Name, len(list),
		func(i int) (start, end sim.Time) { return list[i].start, list[i].end },
		func(track uint64, i int) {
			if list[i].activity != nil {
				o.activity(track, list[i].activity)
				return
			}
			o.start(track, "wait", "wait")
			o.str("for", list[i].wait.Name)
		})
}

func (o *writer) activity(track uint64, a *trace.Activity) {
	o.start(track, [...]string{"kernel", "copy", "copy", "collective", "message", "message"}[a.Kind], a.Name)
	o.ends(arrow(callArrow, a.Number))
	o.num("bytes", a.Bytes)
	switch {
	case a.Kind == trace.Kernel:
		o.num("operations", a.Ops)
		o.str("unit", a.Unit)
	case a.Call != nil:
		o.str("algorithm", a.Call.Algorithm)
		o.num("number", int64(a.Call.Seq))
		o.num("ranks", int64(len(a.Group.Ranks)))
		o.num("steps", int64(a.Call.Steps))
		if a.Call.Op != "" {
			o.str("reduce op", a.Call.Op)
		}
		if a.Call.Root >= 0 {
			o.num("root", int64(a.Call.Root))
		}
	case a.Group != nil:
		o.num("peer", int64(a.Peer))
		o.num("tag", int64(a.Tag))
	}
	if a.Group != nil {
		o.str("group", a.Group.Name)
		o.str("dtype", a.DType)
	}
	if a.End > a.Start {
		o.float("GB/s", float64(a.Bytes)/float64(a.End-a.Start)*1e3)
	}
}
