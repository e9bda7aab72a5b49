package distributed

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// maxTracedSteps bounds the schedules whose every step is traced: a ring of 1024 ranks has two million, more than a
// trace viewer opens. Of longer ones the trace has the collective alone, and says so.
const maxTracedSteps = 100_000

// Trace records what collectives do in simulated time: a slice for each rank and collective, and one for each step.
type Trace struct {
	slices []slice
}

// slice is one bar of the trace.
type slice struct {
	rank       int
	name       string
	start, end sim.Time
	step       bool // of a collective; steps of one rank may overlap
	details    map[string]any
}

// collective records a rank's part of a collective.
func (t *Trace) collective(rank int, m *meeting, start, end sim.Time) {
	details := map[string]any{
		"algorithm": m.record.Algorithm, "ranks": m.record.Ranks, "bytes": m.record.Bytes,
		"dtype": m.call.dtype, "group": m.group.ID, "seq": m.seq,
	}
	if steps := len(m.schedule.Steps); steps > maxTracedSteps {
		details["steps"] = fmt.Sprintf("%d, too many to trace each", steps)
	}
	t.slices = append(t.slices, slice{rank: rank, name: m.call.name, start: start, end: end, details: details})
}

// message records a message between two ranks, at both.
func (t *Trace) message(from, to int, m transmission, end sim.Time) {
	details := map[string]any{"bytes": m.bytes, "tag": m.send.tag, "group": m.send.group.ID}
	t.slices = append(t.slices,
		slice{rank: from, name: fmt.Sprintf("send to %d", to), start: m.send.work.start, end: end, step: true, details: details},
		slice{rank: to, name: fmt.Sprintf("recv from %d", from), start: m.send.work.start, end: end, step: true, details: details})
}

// steps returns the observer that records a meeting's steps, or nil when there are too many.
func (t *Trace) steps(m *meeting) ccl.Observer {
	if t == nil || len(m.schedule.Steps) > maxTracedSteps {
		return nil
	}
	return stepTracer{t, m}
}

type stepTracer struct {
	trace *Trace
	*meeting
}

// StepDone records a step as its sender sees it. It implements ccl.Observer.
func (s stepTracer) StepDone(i int, at ccl.StepTimes) {
	step := s.schedule.Steps[i]
	src, dst := s.group.Members[step.Src], s.group.Members[step.Dst]
	name := fmt.Sprintf("copy to %d", dst)
	if step.Kind == ccl.Reduce {
		name = fmt.Sprintf("reduce into %d", dst)
	}
	details := map[string]any{
		"collective": s.seq, "chunks": fmt.Sprintf("%d to %d", step.Lo, step.Hi-1), "arrived": microseconds(at.Arrived),
	}
	s.trace.slices = append(s.trace.slices, slice{src, name, at.Start, at.End, true, details})
}

// event is one entry of Chrome's trace format; times in microseconds.
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

// microseconds writes a time exactly: picoseconds are the sixth digit.
func microseconds(t sim.Time) json.Number {
	return json.Number(fmt.Sprintf("%d.%06d", t/sim.Microsecond, t%sim.Microsecond))
}

// WriteTo writes the trace in Chrome's JSON format, which Perfetto opens. Ranks are processes. Steps are
// asynchronous slices, because those of one rank overlap. It implements io.WriterTo.
func (t *Trace) WriteTo(w io.Writer) (int64, error) {
	out := &traceWriter{w: bufio.NewWriter(w)}
	out.text(`{"displayTimeUnit":"ns","traceEvents":[`)
	named := map[int]bool{}
	for i, s := range t.slices {
		if !named[s.rank] {
			named[s.rank] = true
			out.event(event{Phase: "M", Name: "process_name", PID: s.rank, Args: map[string]any{"name": fmt.Sprintf("rank %d", s.rank)}})
		}
		if !s.step {
			out.event(event{"X", s.name, "collective", s.rank, 0, 0, microseconds(s.start), microseconds(s.end - s.start), s.details})
			continue
		}
		out.event(event{"b", s.name, "step", s.rank, 0, i + 1, microseconds(s.start), "", s.details})
		out.event(event{"e", s.name, "step", s.rank, 0, i + 1, microseconds(s.end), "", nil})
	}
	out.text("\n]}\n")
	if out.err == nil {
		out.err = out.w.Flush()
	}
	return out.n, out.err
}

// traceWriter writes until the first error and remembers it.
type traceWriter struct {
	w     *bufio.Writer
	n     int64
	err   error
	begun bool // an event has been written
}

func (o *traceWriter) text(s string) {
	if o.err == nil {
		n, err := o.w.WriteString(s)
		o.n, o.err = o.n+int64(n), err
	}
}

func (o *traceWriter) event(e event) {
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
