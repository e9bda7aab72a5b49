package chrome_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
	"github.com/torchemu/torchemu/torchemu/trace/chrome"
)

const us = sim.Microsecond

// Groups' collectives overlap, so each group has a row. Times and lengths are those of whole nanoseconds.
func TestWrite(t *testing.T) {
	g := &trace.Group{ID: 2, Ranks: []int{0, 3}}
	call := &trace.Call{Algorithm: "ring", Seq: 5, Steps: 4, Group: g}
	long := &trace.Call{Algorithm: "ring", Seq: 6, Steps: 2_000_000, Group: g}
	other := &trace.Call{Algorithm: "chain", Seq: 1, Steps: 4, Group: g}
	two := trace.Track{Kind: trace.GroupTrack, ID: 2, Name: "two"}
	four := trace.Track{Kind: trace.GroupTrack, ID: 4, Name: "four"}
	var r trace.Recorder
	rec := r.New(nil, trace.Steps)
	rec.Open(3, 0)
	rec.Activities = []trace.Activity{
		{Rank: 3, Kind: trace.Collective, Name: "all_reduce", Track: two, Start: us + 999, End: 3*us + 1007, Call: call, Group: g},
		{Rank: 3, Kind: trace.Collective, Name: "all_reduce", Track: two, Start: 4 * us, End: 5 * us, Call: long, Group: g},
		{Rank: 3, Kind: trace.Collective, Name: "broadcast", Track: four, Start: 2 * us, End: 5 * us, Call: other, Group: g},
		{Rank: 3, Kind: trace.Kernel, Name: "mm", Track: trace.Track{ID: 1, Name: "stream 1"}, Start: 0, End: us},
		{Rank: 3, Kind: trace.Send, Name: "send to 0", Track: trace.Track{Kind: trace.MessageTrack}, Start: us, End: 2 * us, Group: g},
	}
	rec.Steps = []trace.Step{
		{Call: call, Rank: 3, Dst: 0, Reduce: true, Lo: 1, Hi: 3, Start: us, Arrived: 2 * us, End: 3 * us},
		{Call: long, Rank: 3},
	}
	var b bytes.Buffer
	if err := chrome.Write(&b, rec); err != nil {
		t.Fatal(err)
	}
	got := describe(t, b.Bytes())
	want := []string{
		"M process_name 3.0 -+- #0",
		"M thread_name 3.0 -+- #0", "X mm 3.0 0.000+1.000 #0",
		"M thread_name 3.1 -+- #0", "X all_reduce 3.1 1.000+2.001 #0", "X all_reduce 3.1 4.000+1.000 #0",
		"M thread_name 3.2 -+- #0", "X broadcast 3.2 2.000+3.000 #0",
		"b send to 0 3.0 1.000+- #1", "e send to 0 3.0 2.000+- #1",
		"b reduce into 0 3.0 1.000+- #2", "e reduce into 0 3.0 3.000+- #2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !bytes.Contains(b.Bytes(), []byte("2000000, too many to trace each")) {
		t.Error("the file does not say that steps are left out")
	}
}

func describe(t *testing.T, text []byte) []string {
	t.Helper()
	var d struct {
		TraceEvents []struct {
			Ph, Name     string
			PID, TID, ID int
			TS, Dur      json.Number
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	or := func(n json.Number) string {
		if n == "" {
			return "-"
		}
		return n.String()
	}
	var list []string
	for _, e := range d.TraceEvents {
		list = append(list, fmt.Sprintf("%s %s %d.%d %s+%s #%d", e.Ph, e.Name, e.PID, e.TID, or(e.TS), or(e.Dur), e.ID))
	}
	return list
}
