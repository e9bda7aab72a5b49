package trace

import (
	"cmp"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// HostTime is a time of a host: a span, or the call for an activity.
type HostTime struct {
	Start, End sim.Time
	Span       *Span     // nil for a call
	Activity   *Activity // nil for a span
}

// Host is what a rank's host did, as a tree in one list: what is around something else comes before it.
func (rec *Recording) Host(rank int) []HostTime {
	var list []HostTime
	for i := range rec.Spans {
		if s := &rec.Spans[i]; s.Rank == rank {
			list = append(list, HostTime{s.Start, s.End, s, nil})
		}
	}
	for i := range rec.Activities {
		if a := &rec.Activities[i]; a.Rank == rank {
			list = append(list, HostTime{a.Called, a.Issued, nil, a})
		}
	}
	slices.SortStableFunc(list, func(a, b HostTime) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(a.depth(), b.depth()))
	})
	return list
}

// depth is the order of what has the same start and end: the program's own words are around the rest, and calls are in
// their order.
func (h HostTime) depth() uint64 {
	switch {
	case h.Activity != nil:
		return 1 + h.Activity.Number
	case h.Span.Wait:
		return 1
	}
	return 0
}
