// Package chrome writes a recording as one file in Chrome's JSON format, which many viewers open: ranks are processes,
// and collectives, messages and kernels are bars of them. It is the format for a look at a small run; see packages
// kineto and perfetto for the others.
package chrome

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// maxSteps bounds the schedules whose every step is written: a ring of 1024 ranks has two million, more than a viewer
// of this format opens. Of longer ones the file has the collective alone, and says so.
const maxSteps = 100_000

// event is one entry of the format; times in microseconds.
type event struct {
	Phase    string         `json:"ph"`
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	PID      int            `json:"pid"`
	TID      int            `json:"tid"`
	ID       int            `json:"id,omitempty"`
	Time     json.Number    `json:"ts,omitempty"`
	Duration json.Number    `json:"dur,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// microseconds writes a time down to the whole nanosecond before it, see [trace.Nanoseconds].
func microseconds(t sim.Time) json.Number {
	return json.Number(fmt.Sprintf("%d.%03d", t/sim.Microsecond, t%sim.Microsecond/sim.Nanosecond))
}

// Write writes a recording. What is on one stream, or is a collective of one group, follows one another; messages and
// steps overlap, so they are asynchronous bars.
func Write(w io.Writer, rec *trace.Recording) error {
	out := &writer{w: bufio.NewWriter(w)}
	out.text(`{"displayTimeUnit":"ns","traceEvents":[`)
	for _, rank := range rec.Ranks() {
		out.rank(rank, rec.Rows(rank))
	}
	for i := range rec.Steps {
		if s := &rec.Steps[i]; s.Call.Steps <= maxSteps {
			out.step(s)
		}
	}
	out.text("\n]}\n")
	if out.err == nil {
		out.err = out.w.Flush()
	}
	return out.err
}

// writer writes until the first error and remembers it.
type writer struct {
	w     *bufio.Writer
	err   error
	begun bool // an event has been written
	bars  int  // asynchronous ones
}

func (o *writer) text(s string) {
	if o.err == nil {
		_, o.err = o.w.WriteString(s)
	}
}

func (o *writer) event(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		o.err = err
		return
	}
	if o.begun {
		o.text(",")
	}
	o.begun = true
	o.text("\n" + string(line))
}

// rank writes what a rank did, a row for each stream and group.
func (o *writer) rank(rank int, rows []trace.Row) {
	o.name("process_name", rank, 0, fmt.Sprintf("rank %d", rank))
	for tid, row := range rows {
		if row.Track.Kind != trace.MessageTrack {
			o.name("thread_name", rank, tid, title(row.Track))
		}
		for _, a := range row.Activities {
			o.activity(a, tid)
		}
	}
}

func title(t trace.Track) string {
	if t.Kind == trace.GroupTrack {
		return "collectives of " + t.Name
	}
	return t.Name
}

func (o *writer) name(kind string, pid, tid int, name string) {
	o.event(event{Phase: "M", Name: kind, PID: pid, TID: tid, Args: map[string]any{"name": name}})
}

func (o *writer) activity(a *trace.Activity, tid int) {
	bar := event{
		"X", a.Name, "kernel", a.Rank, tid, 0, microseconds(a.Start), microseconds(trace.Nanoseconds(a.End) - trace.Nanoseconds(a.Start)),
		map[string]any{"bytes": a.Bytes},
	}
	switch a.Kind {
	case trace.Send, trace.Receive:
		details := map[string]any{"bytes": a.Bytes, "tag": a.Tag, "group": a.Group.ID}
		o.overlapping(event{Name: a.Name, Category: "step", PID: a.Rank, Args: details}, a.Start, a.End)
		return
	case trace.Collective:
		bar.Category, bar.Args = "collective", collective(a)
	}
	o.event(bar)
}

func collective(a *trace.Activity) map[string]any {
	details := map[string]any{
		"algorithm": a.Call.Algorithm, "ranks": len(a.Group.Ranks), "bytes": a.Bytes, "dtype": a.DType,
		"group": a.Group.ID, "seq": a.Call.Seq,
	}
	if a.Call.Steps > maxSteps {
		details["steps"] = fmt.Sprintf("%d, too many to trace each", a.Call.Steps)
	}
	return details
}

// step writes a step as its sender sees it.
func (o *writer) step(s *trace.Step) {
	details := map[string]any{
		"collective": s.Call.Seq, "chunks": fmt.Sprintf("%d to %d", s.Lo, s.Hi-1), "arrived": microseconds(s.Arrived),
	}
	o.overlapping(event{Name: s.Does(), Category: "step", PID: s.Rank, Args: details}, s.Start, s.End)
}

func (o *writer) overlapping(e event, start, end sim.Time) {
	o.bars++
	e.Phase, e.ID, e.Time = "b", o.bars, microseconds(start)
	o.event(e)
	e.Phase, e.Time, e.Args = "e", microseconds(end), nil
	o.event(e)
}
