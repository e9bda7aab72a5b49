package perfetto

import (
	"cmp"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// states are what a device can be doing, also at the same time, by kind of activity.
var states = [...]string{
	trace.Kernel: "compute", trace.CopyIn: "copy", trace.CopyOut: "copy", trace.Collective: "communicate",
	trace.Send: "communicate", trace.Receive: "communicate",
}

// turn is when one more activity does something, or one less.
type turn struct {
	at    sim.Time
	state string
	by    int
}

// state writes what a rank's device does, all its rows in one: what a viewer shows of the rank when it is folded.
func (o *writer) state(track uint64, rank int, rec *trace.Recording) {
	busy := map[string]int{}
	current := ""
	turns := turnsOf(rank, rec)
	for i, t := range turns {
		busy[t.state] += t.by
		if i+1 < len(turns) && turns[i+1].at == t.at {
			continue
		}
		name := said(busy)
		if name == current {
			continue
		}
		if current != "" {
			o.end(track, t.at)
		}
		if name != "" {
			o.start(track, "state", name)
			o.send(t.at)
		}
		current = name
	}
}

// turnsOf lists them in the order of time, in whole nanoseconds.
func turnsOf(rank int, rec *trace.Recording) []turn {
	var turns []turn
	for i := range rec.Activities {
		if a := &rec.Activities[i]; a.Rank == rank {
			turns = append(turns,
				turn{trace.Nanoseconds(a.Start), states[a.Kind], 1}, turn{trace.Nanoseconds(a.End), states[a.Kind], -1})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	return turns
}

// said joins what is going on: "compute + communicate".
func said(busy map[string]int) string {
	var names []string
	for _, name := range [...]string{"compute", "copy", "communicate"} {
		if busy[name] > 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " + ")
}
