package perfetto

import (
	"cmp"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// rank writes what a rank's host and streams did.
func (o *writer) rank(process uint64, p *place, rec *trace.Recording) {
	rows := rec.Rows(p.sip)
	o.host(process, p, rec, rows)
	for i := 0; i < len(rows); {
		j := i
		var list []*trace.Activity
		for ; j < len(rows) && rows[j].Track == rows[i].Track; j++ {
			list = append(list, rows[j].Activities...)
		}
		o.activities(process, rows[i].Track, list)
		i = j
	}
}

// call is a time of the host: a span, or the call for an activity.
type call struct {
	start, end sim.Time
	span       *trace.Span
	activity   *trace.Activity
}

// host writes the host's thread, whose bars are nested.
func (o *writer) host(process uint64, p *place, rec *trace.Recording, rows []trace.Row) {
	var calls []call
	for i := range rec.Spans {
		if s := &rec.Spans[i]; s.Rank == p.sip {
			calls = append(calls, call{s.Start, s.End, s, nil})
		}
	}
	for _, row := range rows {
		for _, a := range row.Activities {
			calls = append(calls, call{a.Called, a.Issued, nil, a})
		}
	}
	slices.SortStableFunc(calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.rank(), b.rank()))
	})
	o.nested(o.thread(process, p.pid, "host"), calls)
}

// rank is the order of what has the same start and end: the program's own words are around the rest.
func (c call) rank() uint64 {
	if c.activity != nil {
		return c.activity.Number
	}
	return 0
}

// nested writes calls, of which those around others come first.
func (o *writer) nested(track uint64, calls []call) {
	var open []sim.Time // ends
	closeUntil := func(t sim.Time) {
		for len(open) > 0 && open[len(open)-1] <= t {
			o.end(track, open[len(open)-1])
			open = open[:len(open)-1]
		}
	}
	for _, c := range calls {
		closeUntil(c.start)
		o.call(track, c)
		o.send(c.start)
		open = append(open, c.end)
	}
	closeUntil(trace.Forever)
}

func (o *writer) call(track uint64, c call) {
	switch {
	case c.activity != nil:
		o.start(track, "call", c.activity.Name)
		o.leads(arrow(callArrow, c.activity.Number))
		if c.activity.Site != "" {
			o.str("call site", c.activity.Site)
		}
	case c.span.Wait:
		o.start(track, "wait", "wait")
		o.str("for", c.span.Name)
	default:
		o.start(track, "annotation", c.span.Name)
	}
}

var trackTitles = map[trace.TrackKind]string{
	trace.StreamTrack: "", trace.GroupTrack: "collectives of ", trace.MessageTrack: "messages of ", trace.ShardTrack: "shard on ",
}

func (o *writer) activities(process uint64, t trace.Track, list []*trace.Activity) {
	o.bars(process, trackTitles[t.Kind]+t.Name, len(list),
		func(i int) (start, end sim.Time) { return list[i].Start, list[i].End },
		func(track uint64, i int) { o.activity(track, list[i]) })
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
