package pybind

import (
	"encoding/json"
	"fmt"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/ccl/prim/kernels"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// kernelProgram is one that Python drives.
type kernelProgram struct {
	*prim.Context
	of      *machine
	handle  int64
	members int  // of the barrier that it is in that have come; -1: it has arrived nowhere
	leaving bool // it has heard of all of them
}

func (p *kernelProgram) belongsTo(w any) bool { return of[*kernelProgram]{p, p.of}.belongsTo(w) }

func programOf(handle int64) (*kernelProgram, error) {
	p, ok := lookup(handle).(*kernelProgram)
	if !ok {
		return nil, raise("RuntimeError", "this device program has ended")
	}
	return p, p.of.checkThread()
}

// program is the handle of a program, which Python gets to know with its first turn.
func (m *machine) program(c *prim.Context) int64 {
	if h, known := m.programs[c]; known {
		return h
	}
	p := &kernelProgram{Context: c, of: m, members: -1}
	p.handle = register(p)
	m.programs[c] = p.handle
	return p.handle
}

// PrimSubmit puts a task for Python to drive into the queues of its workers, "0,1", with so many programs on each. It
// starts after the tasks before it there and the jobs given as "12,13". interlock makes pipes wait for each other where
// they share scratch memory.
func PrimSubmit(machine int64, name, workers string, blocks int, interlock bool, after string) (job int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	return m.submit(prim.Task{Name: name, Blocks: blocks, Interlock: interlock}, workers, after)
}

func (m *machine) submit(t prim.Task, workers, after string) (int64, error) {
	var err error
	if t.Workers, err = parseInts(workers); err != nil {
		return 0, err
	}
	before, err := parseInts(after)
	if err != nil {
		return 0, err
	}
	for _, h := range before {
		j, err := partOf[*prim.Job](int64(h), "task")
		if err != nil {
			return 0, err
		}
		t.After = append(t.After, j.object)
	}
	var j *prim.Job
	submitted := m.Now()
	if m.fabric != nil {
		t.Done = func() { m.record(j, submitted) }
	}
	if j, err = m.Submit(t); err != nil {
		return 0, err
	}
	return m.known(j), nil
}

// record notes the end of a job in the recordings of the World that it is on.
func (m *machine) record(j *prim.Job, submitted sim.Time) {
	r := &m.fabric.Trace
	for _, rank := range j.Workers {
		if !r.Wants(rank, submitted) {
			continue
		}
		r.Activity(trace.Activity{
			Rank: rank, Kind: trace.Kernel, Name: j.Name, Number: r.Call(), Track: trace.Track{Kind: trace.StreamTrack, Name: "tasks"},
			Called: submitted, Issued: submitted, Start: j.Began(), End: m.Now(),
		})
	}
}

// known makes a handle for a job.
func (m *machine) known(j *prim.Job) int64 {
	h := register(of[*prim.Job]{j, m})
	m.jobs[j] = h
	return h
}

// domain is a kernels.Domain as Python gives it.
type domain struct {
	Members                []int
	Rank, Count, Root      int
	Input, Output, Scratch int64
}

// PrimSubmitExample is PrimSubmit for one of the Go examples. domains is a JSON list with an object for each worker:
// members, rank, count, root, input, output, scratch; see kernels.Domain. What they may not be is a ValueError.
func PrimSubmitExample(machine int64, name, example, workers, domains, after string) (job int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	e, err := kernels.LookupExample(example)
	if err != nil {
		return 0, err
	}
	var list []domain
	if err := json.Unmarshal([]byte(domains), &list); err != nil {
		return 0, fmt.Errorf("domains: %w", err)
	}
	ranks, err := parseInts(workers)
	if err != nil {
		return 0, err
	}
	if len(list) != len(ranks) {
		return 0, raise("ValueError", "%d domains for %d workers", len(list), len(ranks))
	}
	byRank := map[int]domain{}
	for i, r := range ranks {
		byRank[r] = list[i]
	}
	run := func(c *prim.Context) error {
		if err := e.Run(c, byRank[c.Rank()].domain()); err != nil {
			return raise("ValueError", "%v", err)
		}
		return nil
	}
	return m.submit(prim.Task{Name: name, Kernel: run}, workers, after)
}

func (d domain) domain() kernels.Domain {
	return kernels.Domain{
		Members: d.Members, Rank: d.Rank, Count: d.Count, Root: d.Root,
		Input: prim.Addr(d.Input), Output: prim.Addr(d.Output), Scratch: prim.Addr(d.Scratch),
	}
}

// PrimExamples lists the Go examples as JSON.
func PrimExamples() (names string, err error) {
	defer guard(&err)
	list := []string{}
	for _, e := range kernels.Examples() {
		list = append(list, e.Name)
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// PrimExampleBytes is how many bytes of window an example needs on each of n members.
func PrimExampleBytes(example string, n, count int) (bytes int, err error) {
	defer guard(&err)
	e, err := kernels.LookupExample(example)
	if err != nil {
		return 0, err
	}
	return e.WindowBytes(n, count), nil
}

// PrimEnded says whether all programs of a task have ended.
func PrimEnded(job int64) (ended bool, err error) {
	defer guard(&err)
	j, err := partOf[*prim.Job](job, "task")
	if err != nil {
		return false, err
	}
	return j.object.Ended(), nil
}

// PrimCancel ends a task whatever its programs do. Python does not let them go on.
func PrimCancel(job int64) (err error) {
	defer guard(&err)
	j, err := partOf[*prim.Job](job, "task")
	if err != nil {
		return err
	}
	for _, c := range j.object.Programs() {
		j.machine.forget(c)
	}
	j.object.Cancel()
	return nil
}

func (m *machine) forget(c *prim.Context) {
	forget(m.programs[c])
	delete(m.programs, c)
}

// What PrimNext answers instead of a program's turn. Below, it is an instruction's.
const (
	allEnded  = 0
	moreTime  = -1
	firstDue  = -2
	someSteps = 1 << 12 // after which Python sees whether it is interrupted
)

// PrimNext lets time pass until it is something's turn: a program's, which is its handle; that of instruction k of
// PrimCompute, which is -2-k; 0 when all has ended; -1 to be called again, as after the end of a task in Go. An error is
// a DeadlockError, or that of a program in Go.
func PrimNext(machine int64) (turn int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	for {
		t, over, err := m.Advance(someSteps)
		switch {
		case err != nil:
			return 0, err
		case over:
			return allEnded, nil
		case t.Nothing():
			return moreTime, nil
		}
		if turn, err = m.take(t); turn != 0 || err != nil {
			return turn, err
		}
	}
}

// take is the number of a turn; 0 when it was a program's in Go, which has had it.
func (m *machine) take(t prim.Turn) (int64, error) {
	if t.Due != nil {
		return firstDue - m.numbers[t.Due], nil
	}
	if !t.Program.Resume() {
		return m.program(t.Program), nil
	}
	if t.Program.Job().Ended() {
		return moreTime, m.Err()
	}
	return 0, m.Err()
}

// PrimComputed says that the result of the instruction whose turn it is is there.
func PrimComputed(machine int64) (err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return err
	}
	t := m.Turn()
	if t.Due == nil {
		return raise("RuntimeError", "no instruction is due")
	}
	delete(m.numbers, t.Due)
	t.Due.Done()
	return nil
}

// PrimAbout describes a program: "rank block blocks task", where the task is that of PrimSubmit or the launch of PrimLaunch.
func PrimAbout(program int64) (text string, err error) {
	defer guard(&err)
	p, err := programOf(program)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %d %d %d", p.Rank(), p.Block(), p.Blocks(), p.of.jobs[p.Job()]), nil
}

// PrimPrograms lists the programs of a task that has started, worker by worker and block by block: "14,15".
func PrimPrograms(job int64) (programs string, err error) {
	defer guard(&err)
	j, err := partOf[*prim.Job](job, "task")
	if err != nil {
		return "", err
	}
	for i, c := range j.object.Programs() {
		if i > 0 {
			programs += ","
		}
		programs += fmt.Sprint(j.machine.program(c))
	}
	return programs, nil
}

// PrimEnd says that a program has ended: with an error if the text is not empty.
func PrimEnd(program int64, text string) (err error) {
	defer guard(&err)
	p, err := programOf(program)
	if err != nil {
		return err
	}
	p.of.forget(p.Context)
	var failure error
	if text != "" {
		failure = raise("KernelError", "%s", text)
	}
	p.End(failure)
	return nil
}
