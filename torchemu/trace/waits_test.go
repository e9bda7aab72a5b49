package trace_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// waits lists those of rows whose activities are written as name, issued, start and end.
func waits(rows ...[]trace.Activity) []string {
	var list []trace.Row
	for i, activities := range rows {
		row := trace.Row{Track: trace.Track{Kind: trace.StreamTrack, ID: i}}
		for k := range activities {
			row.Activities = append(row.Activities, &activities[k])
		}
		list = append(list, row)
	}
	if len(list) > 2 {
		list[2].Track.Kind = trace.MessageTrack
	}
	var found []string
	for _, w := range trace.Waits(list) {
		found = append(found, fmt.Sprintf("%d for %s on %d: %d-%d", w.Row, w.For.Name, w.On, w.Start, w.End))
	}
	return found
}

func did(name string, issued, start, end sim.Time) trace.Activity {
	return trace.Activity{Name: name, Issued: issued, Start: start, End: end}
}

func TestWaits(t *testing.T) {
	for _, c := range []struct {
		name string
		rows [][]trace.Activity
		want []string
	}{
		{"nothing", nil, nil},
		{"alone", [][]trace.Activity{{did("a", 0, 5, 9), did("b", 1, 9, 12)}}, nil},
		{"for another's end", [][]trace.Activity{{did("a", 0, 2, 9)}, {did("b", 4, 9, 12)}}, []string{"1 for a on 0: 4-9"}},
		{
			"not while the row was busy", [][]trace.Activity{{did("a", 0, 2, 9)}, {did("b", 0, 1, 6), did("c", 1, 9, 10)}},
			[]string{"1 for a on 0: 6-9"},
		},
		{"not before it was called for", [][]trace.Activity{{did("a", 0, 2, 9)}, {did("b", 9, 9, 10)}}, nil},
		{"for the host, which ends at no other's end", [][]trace.Activity{{did("a", 0, 2, 8)}, {did("b", 4, 9, 12)}}, nil},
		{"for a message", [][]trace.Activity{{did("a", 1, 9, 10)}, {}, {did("recv", 0, 2, 9)}}, []string{"0 for recv on 2: 1-9"}},
		{"messages have none", [][]trace.Activity{{did("a", 0, 2, 9)}, {}, {did("send", 1, 9, 12)}}, nil},
		{
			"each for the other in turn", [][]trace.Activity{{did("a", 0, 0, 3), did("c", 1, 5, 7)}, {did("b", 1, 3, 5), did("d", 1, 7, 8)}},
			[]string{"0 for b on 1: 3-5", "1 for a on 0: 1-3", "1 for c on 0: 5-7"},
		},
		{"of no length", [][]trace.Activity{{did("a", 0, 2, 9)}, {did("b", 0, 3, 9), did("c", 1, 9, 9)}}, nil},
	} {
		if got := waits(c.rows...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
