package host

import (
	"errors"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Launch is a kernel on a stream.
type Launch struct {
	machine *Machine
	stream  *torchemu.Stream
	task    prim.Task
	job     *prim.Job // nil before it starts
	event   *torchemu.Event
	windows []*prim.Window // that exist only for it
	issued  torchemu.Issued
	shown   map[*prim.Window]*tensor.Storage // its arguments' memory; nil when no order is kept
	deeds   map[doing]*tensor.Deed           // what its programs do with that
	race    error                            // between it and another operation of its rank, on a tensor that it was given
}

// LaunchTask is LaunchOn of what crosses from Python: handles of the machine and the stream, and lists of those of tensors,
// which the kernel uses, and of windows.
func LaunchTask(machine, stream int64, t prim.Task, tensorsAt int64, tensors int, windowsAt int64, windows int) (handle int64, err error) {
	m, err := MachineOf(machine)
	if err != nil {
		return 0, err
	}
	s, err := StreamOf(stream)
	if err != nil {
		return 0, err
	}
	uses, err := s.World.Tensors(tensorsAt, tensors)
	if err != nil {
		return 0, err
	}
	own, err := Windows(windowsAt, windows)
	if err != nil {
		return 0, err
	}
	return m.LaunchOn(s.Object, t, uses, own)
}

// LaunchOn puts a kernel, which Python drives, on a stream, and returns the handle of the launch. The windows exist only for
// it.
func (m *Machine) LaunchOn(s *torchemu.Stream, t prim.Task, uses []*tensor.Tensor, windows []*prim.Window) (handle int64, err error) {
	if most := m.Topology.CubesPerSIP() * m.Topology.PEsPerCube(); t.Blocks < 1 || t.Threads == 0 && t.Blocks > most {
		return 0, Raise("ValueError", "a grid of %d programs: a rank has 1 to %d PEs, one for each program", t.Blocks, most)
	}
	return m.put(&Launch{machine: m, stream: s, task: t, windows: windows}, torchemu.Program{Name: t.Name, Uses: uses, Apart: t.Beside})
}

// LaunchPutOff puts a program of one block on a stream, which does what the rank's host has put off: beside all else that
// the rank does, and for nothing, since the host was charged for that.
func LaunchPutOff(machine, stream int64, name string) (handle int64, err error) {
	m, err := MachineOf(machine)
	if err != nil {
		return 0, err
	}
	s, err := StreamOf(stream)
	if err != nil {
		return 0, err
	}
	l := &Launch{machine: m, stream: s.Object, task: prim.Task{Name: name, Blocks: 1, Beside: true, Host: true}}
	return m.put(l, torchemu.Program{Name: name, Apart: true, Paid: true})
}

// put puts a launch on its stream, as a program that has no beginning and no end yet.
func (m *Machine) put(l *Launch, p torchemu.Program) (handle int64, err error) {
	if m.home == nil {
		return 0, Raise("RuntimeError", "this machine is not a World's: it has no streams")
	}
	l.task.Workers, l.task.Done, l.task.Failed, l.task.Owner = []int{l.stream.Rank().ID}, l.done, l.failed, l
	handle = Register(l)
	p.Report, p.Start = l.report, func(sim.Time) { l.start(handle) }
	p.Issued = func(i torchemu.Issued) { l.issued = i }
	if l.event, err = l.stream.Program(p); err != nil {
		Forget(handle)
		return 0, err
	}
	m.begin(l)
	if m.home.Lanes != nil {
		l.mirror(p.Uses)
	}
	l.event.WhenDone(func() {
		l.seal()
		l.free()
		m.over(l)
	})
	return handle, nil
}

// Done says whether the launch has ended.
func (l *Launch) Done() bool { return l.event.Done() }

func (l *Launch) belongsTo(w any) bool { return l.machine.belongsTo(w) || w == any(l.machine) }

// Windows resolves n handles at an address to windows.
func Windows(at int64, n int) ([]*prim.Window, error) { return parts[*prim.Window](at, n, "window") }

// seal says that all is known that will be when the launch is over.
func (l *Launch) seal() {
	if l.issued.End != nil {
		l.issued.End.Seal()
	}
}

// start submits the task.
func (l *Launch) start(handle int64) {
	if l.event != nil && l.event.Done() { // it was abandoned
		return
	}
	l.task.Known = l.issued.Begin
	job, err := l.machine.Submit(l.task)
	if err != nil {
		panic(err) // cannot be: the rank exists, and the blocks were counted
	}
	l.job = job
	l.machine.jobs[job] = handle
}

// done ends the launch; with what the checker has found so far, if that is new.
func (l *Launch) done() {
	delete(l.machine.jobs, l.job)
	if l.issued.End != nil {
		l.issued.End.Tell(l.job.Knows())
		l.seal()
	}
	err := errors.Join(l.race, l.machine.News())
	l.machine.fails(l.stream.Rank().ID, err)
	l.event.Fail(err, l.machine.Now())
}

// failed ends the launch with a program's error.
func (l *Launch) failed(_ *prim.Context, err error) {
	l.cancel()
	l.machine.fails(l.stream.Rank().ID, err)
	l.event.Fail(err, l.machine.Now())
}

// cancel makes the machine forget the launch's programs.
func (l *Launch) cancel() {
	if l.job == nil || l.job.Ended() {
		return
	}
	for _, c := range l.job.Programs() {
		l.machine.Forget(c)
	}
	delete(l.machine.jobs, l.job)
	l.job.Cancel()
}

func (l *Launch) free() {
	if l.task.Beside {
		return // they may be others' too, and whoever has attached them frees them
	}
	for _, w := range l.windows {
		w.Forget()
	}
}

// report says what the launch waits for.
func (l *Launch) report() torchemu.Standing { return l.machine.standing(l.job) }

// standing says what the programs of a job wait for; nothing before it has started, when it is nil.
func (m *Machine) standing(j *prim.Job) torchemu.Standing {
	if j == nil || j.Ended() {
		return torchemu.Standing{}
	}
	return torchemu.Standing{On: " " + strings.Join(j.Standing(), "; and "), Cause: m.Cause(m.later)}
}

// later names a kernel that is on a stream of a rank and has not started.
func (m *Machine) later(rank int) string {
	for _, a := range m.active {
		if l, ok := a.(*Launch); ok && l.job == nil && !l.task.Host && l.stream.Rank().ID == rank {
			return l.task.Name
		}
	}
	return ""
}

// LaunchOf finds a launch that is not forgotten.
func LaunchOf(handle int64) (*Launch, error) {
	l, ok := Lookup(handle).(*Launch)
	if !ok {
		return nil, Raise("RuntimeError", "this launch does not exist any more")
	}
	return l, l.machine.checkThread()
}

// activity is what the machine of a World runs.
type activity interface {
	abandon(err error) // ends it
}

func (m *Machine) begin(a activity) { m.active = append(m.active, a) }

func (m *Machine) over(a activity) {
	m.active = slices.DeleteFunc(m.active, func(o activity) bool { return o == a })
}

func (l *Launch) abandon(err error) {
	l.cancel()
	l.event.Fail(err, l.machine.Now())
}

// AbandonAll ends all that the machine of a World runs with an error.
func (m *Machine) AbandonAll(err error) {
	for _, a := range slices.Clone(m.active) {
		a.abandon(err)
	}
}

// WindowTensor makes a tensor over a window's memory on a rank, which the window keeps and frees.
func (m *Machine) WindowTensor(w *prim.Window, rank int, d dtype.DType, dims []int) (int64, error) {
	if m.home == nil || !w.Has(rank) || w.Storage(rank) == nil {
		return 0, Raise("ValueError", "rank %d has no tensor in window %q", rank, w.Name)
	}
	s := w.Storage(rank)
	s.Export()
	t, err := tensor.Over(s, d, tensor.Layout{Shape: dims})
	if err != nil {
		return 0, err
	}
	m.home.symmetric[s] = part{w, rank}
	h := &holders{}
	h.Add(1) // the window
	return m.home.register(t, h), nil
}
