package host

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/ccl/prim/kernels"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// Program is a device program that Python drives.
type Program struct {
	*prim.Context
	of      *Machine
	handle  int64
	members int     // of the barrier that it is in that have come; -1: it has arrived nowhere
	leaving bool    // it has heard of all of them
	steps   []int64 // that it is yet to take; see Run
	late    error   // of a step that it has taken when it was not Python's turn
}

func (p *Program) belongsTo(w any) bool { return Part[*Program]{p, p.of}.belongsTo(w) }

// ProgramOf finds a program that has not ended.
func ProgramOf(handle int64) (*Program, error) {
	p, ok := Lookup(handle).(*Program)
	if !ok {
		return nil, Raise("RuntimeError", "this device program has ended")
	}
	if err := p.late; err != nil {
		p.late = nil
		return p, err
	}
	return p, p.of.checkThread()
}

// program is what Python drives of a program. It gets to know the handle with the first turn.
func (m *Machine) program(c *prim.Context) *Program {
	if p, known := m.programs[c]; known {
		return p
	}
	p := &Program{Context: c, of: m, members: -1}
	p.handle = Register(p)
	m.programs[c] = p
	return p
}

// Jobs resolves n handles at an address to jobs.
func Jobs(at int64, n int) ([]*prim.Job, error) { return parts[*prim.Job](at, n, "task") }

// SubmitTask puts a task into the queues of its workers and returns the handle of its job.
func (m *Machine) SubmitTask(t prim.Task) (handle int64, err error) {
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
func (m *Machine) record(j *prim.Job, submitted sim.Time) {
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
func (m *Machine) known(j *prim.Job) int64 {
	h := Keep(m, j)
	m.jobs[j] = h
	return h
}

// domainWords is how many integers a kernels.Domain crosses as, besides its members: their number, rank, count, root, input,
// output and scratch. The members follow.
const domainWords = 7

// domains copies kernels.Domains from n integers at an address.
func domains(at int64, n int) ([]kernels.Domain, error) {
	rest, err := Ints(at, n)
	if err != nil {
		return nil, err
	}
	var list []kernels.Domain
	for len(rest) > 0 {
		if len(rest) < domainWords || rest[0] < 0 || rest[0] > len(rest)-domainWords {
			return nil, Raise("ValueError", "%d integers are no domains", n)
		}
		end := domainWords + rest[0]
		list = append(list, kernels.Domain{
			Members: rest[domainWords:end], Rank: rest[1], Count: rest[2], Root: rest[3],
			Input: prim.Addr(rest[4]), Output: prim.Addr(rest[5]), Scratch: prim.Addr(rest[6]),
		})
		rest = rest[end:]
	}
	return list, nil
}

// ExampleOn is the kernel of one of the Go examples, whose i-th worker has the i-th of the domains that cross as n integers
// at an address.
func ExampleOn(example string, workers []int, at int64, n int) (func(c *prim.Context) error, error) {
	e, err := kernels.LookupExample(example)
	if err != nil {
		return nil, err
	}
	list, err := domains(at, n)
	if err != nil {
		return nil, err
	}
	if len(list) != len(workers) {
		return nil, Raise("ValueError", "%d domains for %d workers", len(list), len(workers))
	}
	byRank := map[int]kernels.Domain{}
	for i, d := range list {
		byRank[workers[i]] = d
	}
	return func(c *prim.Context) error {
		if err := e.Run(c, byRank[c.Rank()]); err != nil {
			return Raise("ValueError", "%v", err)
		}
		return nil
	}, nil
}

// Forget makes Python's handle of a program one of nothing.
func (m *Machine) Forget(c *prim.Context) {
	if p, known := m.programs[c]; known {
		if m.held == p.handle {
			m.held = 0
		}
		Forget(p.handle)
		delete(m.programs, c)
	}
}

// What NextTurn answers instead of a program's turn. Below, it is an instruction's.
const (
	allEnded  = 0
	moreTime  = -1
	firstDue  = -2
	someSteps = 1 << 12 // after which Python sees whether it is interrupted
)

// NextTurn lets time pass until it is something's turn; see PrimNext.
func (m *Machine) NextTurn() (turn int64, err error) {
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

// Ready says whether something can go on before time passes.
func (m *Machine) Ready() bool { return m.held != 0 || m.failing != nil || m.Machine.Ready() }

// GoOn makes Machine [torchemu.Programs].
func (m *Machine) GoOn() bool {
	for m.held == 0 && m.failing == nil && m.Machine.Ready() {
		m.held, m.failing = m.take(m.Turn())
	}
	return !m.Ready()
}

// PresentTurn is the turn of something that can go on before time passes; 0 for none.
func (m *Machine) PresentTurn() (turn int64, err error) {
	if turn, err = m.held, m.failing; turn != 0 || err != nil {
		m.held, m.failing = 0, nil
		return turn, err
	}
	for m.Machine.Ready() {
		if turn, err = m.take(m.Turn()); turn != 0 || err != nil {
			return turn, err
		}
	}
	return 0, nil
}

// Computed says that the result of the instruction whose turn it is is there.
func (m *Machine) Computed() error {
	t := m.Turn()
	if t.Due == nil {
		return Raise("RuntimeError", "no instruction is due")
	}
	delete(m.numbers, t.Due)
	t.Due.Done()
	return nil
}

// Task is the handle of what a program belongs to: a job, or a launch.
func (p *Program) Task() int64 { return p.of.jobs[p.Job()] }

// Ended says that a program has ended: with an error if the text is not empty.
func (p *Program) Ended(text string) {
	p.of.Forget(p.Context)
	var failure error
	if text != "" {
		failure = Raise("KernelError", "%s", text)
	}
	p.End(failure)
}

// CancelJob ends a job whatever its programs do.
func (m *Machine) CancelJob(j *prim.Job) {
	for _, c := range j.Programs() {
		m.Forget(c)
	}
	j.Cancel()
}

// Handles are those of a job's programs, worker by worker and block by block.
func (m *Machine) Handles(j *prim.Job) []int64 {
	var list []int64
	for _, c := range j.Programs() {
		list = append(list, m.program(c).handle)
	}
	return list
}

// take is the number of a turn; 0 when it was a program's in Go, or one for steps, which has had it.
func (m *Machine) take(t prim.Turn) (int64, error) {
	if t.Due != nil {
		return firstDue - m.numbers[t.Due], nil
	}
	if !t.Program.Resume() {
		p := m.program(t.Program)
		if len(p.steps) > 0 {
			if p.late = p.goOn(); p.late == nil && p.Blocked() {
				return 0, nil
			}
		}
		return p.handle, nil
	}
	if t.Program.Job().Ended() {
		return moreTime, m.Err()
	}
	return 0, m.Err()
}
