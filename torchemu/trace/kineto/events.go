package kineto

import (
	"fmt"
	"strings"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// host writes the host's times, those around others first, and where arrows begin.
func (o *writer) host(arrows bool) {
	for i, h := range o.rec.Host(o.rank) {
		if h.Span != nil {
			o.span(h.Span, i)
			continue
		}
		o.call(h.Activity, i)
		if arrows {
			o.arrow("s", hostPID+o.rank, hostPID+o.rank, h.Start, int64(h.Activity.Number))
		}
	}
}

// memory writes how much of the device's memory the program has in use, as a counter.
func (o *writer) memory() {
	for _, m := range o.rec.Memory {
		if m.Rank == o.rank {
			e := o.begin("C", "", "memory allocated")
			e.num("pid", int64(o.rank))
			e.time("ts", m.From)
			e.nested("args")
			e.num("bytes", m.Bytes)
			o.endBar()
		}
	}
}

func (o *writer) span(s *trace.Span, index int) {
	pid := hostPID + o.rank
	if s.Wait {
		e := o.bar("cuda_runtime", "cudaEventSynchronize", pid, pid, s.Start, s.End)
		e.num("cbid", 137)
		e.str("waits for", s.Name)
	} else {
		o.bar("user_annotation", s.Name, pid, pid, s.Start, s.End).num("Ev Idx", int64(index))
	}
	o.endBar()
}

// call writes the operator, what PyTorch records of a collective's arguments, and the driver's call in them.
func (o *writer) call(a *trace.Activity, index int) {
	pid, number := hostPID+o.rank, int64(a.Number)
	e := o.bar("cpu_op", operator(a), pid, pid, a.Called, a.Issued)
	e.num("External id", number)
	e.num("Ev Idx", int64(index))
	if a.Site != "" {
		e.str("Call site", a.Site)
	}
	o.endBar()
	if a.Group != nil {
		arguments(o.bar("cpu_op", "record_param_comms", pid, pid, a.Called, a.Issued), a)
		o.endBar()
	}
	e = o.bar("cuda_runtime", launch(a), pid, pid, a.Called, a.Issued)
	e.num("External id", number)
	e.num("cbid", launchIDs[launch(a)])
	e.num("correlation", number)
	o.endBar()
}

func (o *writer) arrow(phase string, pid, tid int, at sim.Time, number int64) {
	e := o.begin(phase, "ac2g", "ac2g")
	e.num("id", number)
	e.num("pid", int64(pid))
	e.num("tid", int64(tid))
	e.time("ts", at)
	if phase == "f" {
		e.str("bp", "e")
	}
	o.end()
}

// device writes the rows of the device, and where arrows end.
func (o *writer) device(rows []trace.Row, arrows bool) {
	for _, w := range trace.Waits(rows) {
		o.wait(w)
	}
	for i, row := range rows {
		stream := firstStream + i
		for _, a := range row.Activities {
			o.activity(a, stream)
			if arrows {
				o.arrow("f", o.rank, stream, a.Start, int64(a.Number))
			}
		}
	}
}

// wait writes a time in which a row waited for another one. It has no "stream": analysers take what has one for work.
func (o *writer) wait(w trace.Wait) {
	e := o.bar("cuda_sync", "Stream Wait Event", o.rank, firstStream+w.Row, w.Start, w.End)
	e.str("waits for", w.For.Name)
	e.num("wait_on_stream", int64(firstStream+w.On))
	e.num("wait_on_correlation", int64(w.For.Number))
	o.endBar()
}

// activity writes what the device did.
func (o *writer) activity(a *trace.Activity, stream int) {
	category := "kernel"
	if a.Kind == trace.CopyIn || a.Kind == trace.CopyOut {
		category = "gpu_memcpy"
	}
	e := o.bar(category, kernel(a), o.rank, stream, a.Start, a.End)
	e.num("External id", int64(a.Number))
	e.num("queued", 0)
	e.num("device", int64(o.rank))
	e.num("context", 1)
	e.num("stream", int64(stream))
	e.num("correlation", int64(a.Number))
	switch {
	case a.Kind == trace.Kernel:
		work(e, a)
	case category == "gpu_memcpy":
		bandwidth(e, a)
	default:
		exchange(e, a)
	}
	o.endBar()
}

func work(e *object, a *trace.Activity) {
	e.num("memory traffic", a.Bytes)
	e.num("operations", a.Ops)
	e.str("unit", a.Unit)
}

func bandwidth(e *object, a *trace.Activity) {
	e.num("bytes", a.Bytes)
	rate := 0.0
	if a.End > a.Start {
		rate = float64(a.Bytes) / float64(a.End-a.Start) * float64(sim.Second) / 1e9
	}
	e.float("memory bandwidth (GB/s)", rate)
}

// arguments writes what PyTorch says of collectives and messages.
func arguments(e *object, a *trace.Activity) {
	e.str("Collective name", called(a))
	e.num("In msg nelems", total(a.In))
	e.num("Out msg nelems", total(a.Out))
	e.num("Group size", int64(len(a.Group.Ranks)))
	e.str("dtype", found(dtypes, a.DType))
	e.str("In split size", split(a.In))
	e.str("Out split size", split(a.Out))
	e.str("Process Group Name", fmt.Sprint(a.Group.ID))
	e.str("Process Group Description", a.Group.Name)
	e.str("Process Group Ranks", list(a.Group.Ranks))
	e.num("Global rank start", int64(a.Group.Ranks[0]))
	e.num("Global rank stride", int64(stride(a.Group.Ranks)))
	e.num("Rank", int64(a.Member))
	if a.Call == nil {
		src, dst := ends(a)
		e.num("Src Rank", int64(src))
		e.num("Dst Rank", int64(dst))
	}
}

// exchange writes the arguments that PyTorch gives to collectives and messages, and some of our own behind them.
func exchange(e *object, a *trace.Activity) {
	arguments(e, a)
	e.str("operation", a.Name)
	if a.Call == nil {
		e.num("bytes", a.Bytes)
		e.num("tag", int64(a.Tag))
		return
	}
	e.num("Seq", int64(a.Call.Seq))
	e.str("algorithm", a.Call.Algorithm)
	e.num("bytes", a.Bytes)
	e.num("steps", int64(a.Call.Steps))
	if a.Call.Op != "" {
		e.str("reduce op", a.Call.Op)
	}
	if a.Call.Root >= 0 {
		e.num("root", int64(a.Call.Root))
	}
}

// stride is how far the ranks of a group are apart, as PyTorch says it: 0 for a single one, and -1 where that differs.
func stride(ranks []int) int {
	if len(ranks) == 1 {
		return 0
	}
	step := ranks[1] - ranks[0]
	for i := range ranks[1:] {
		if ranks[i+1]-ranks[i] != step {
			return -1
		}
	}
	return step
}

// ends is who sends a message, and who receives it.
func ends(a *trace.Activity) (src, dst int) {
	if a.Kind == trace.Receive {
		return a.Peer, a.Rank
	}
	return a.Rank, a.Peer
}

func total(sizes []int) int64 {
	sum := 0
	for _, n := range sizes {
		sum += n
	}
	return int64(sum)
}

// split is the sizes of a list of tensors; of a single one PyTorch writes none.
func split(sizes []int) string {
	if len(sizes) < 2 {
		return "[]"
	}
	return list(sizes)
}

// shown bounds the numbers of a list, as PyTorch does.
const shown = 30

func list(numbers []int) string {
	var texts []string
	for i, n := range numbers {
		if i == shown {
			texts = append(texts, "...")
			break
		}
		texts = append(texts, fmt.Sprint(n))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// steps writes the steps that the rank sends. They overlap, so they are asynchronous bars; HTA does not look at these.
func (o *writer) steps() {
	for i := range o.rec.Steps {
		s := &o.rec.Steps[i]
		if s.Rank != o.rank {
			continue
		}
		e := o.step("b", s, i, s.Start)
		e.nested("args")
		e.num("collective", int64(s.Call.Seq))
		e.str("Process Group Name", fmt.Sprint(s.Call.Group.ID))
		e.num("step", int64(s.Index))
		e.num("bytes", s.Bytes)
		e.time("arrived", s.Arrived)
		e.close()
		o.end()
		o.step("e", s, i, s.End)
		o.end()
	}
}

func (o *writer) step(phase string, s *trace.Step, index int, at sim.Time) *object {
	e := o.begin(phase, "step", s.Does())
	e.num("id", int64(index)+1)
	e.num("pid", int64(o.rank))
	e.num("tid", 0)
	e.time("ts", at)
	return e
}
