package pybind

import (
	"slices"
	"strings"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// PrimOfWorld makes the machine of a World: on its engine and network, with a rank for each SIP. What its programs do
// becomes part of the World's time. When Next, Await or AwaitAll are to be called again, Python takes the turns that there
// are, with PrimTurn.
func PrimOfWorld(worldHandle int64, check, reorder bool, seed int64) (machine int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	if w.Programs != nil {
		return 0, raise("RuntimeError", "this World has a machine already")
	}
	c := prim.Config{Engine: w.Engine, Network: w.Network, Topology: w.Topology, PEs: make([]topology.DeviceID, w.Topology.SIPs())}
	c.Options = prim.Options{Check: check, Reorder: reorder, Seed: uint64(seed)}
	for i := range c.PEs {
		c.PEs[i] = w.Topology.PE(i, 0, 0)
	}
	m := newMachine(prim.New(c), w)
	w.Programs, w.backend.Kernels = m.Machine, m
	if check {
		w.backend.KeepOrder()
	}
	return register(m), nil
}

// PrimTurn is PrimNext without letting time pass: 0 says that nothing has a turn now.
func PrimTurn(machine int64) (turn int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	for m.Ready() {
		if turn, err = m.take(m.Turn()); turn != 0 || err != nil {
			return turn, err
		}
	}
	return 0, nil
}

// launch is a kernel on a stream.
type launch struct {
	machine *machine
	stream  *torchemu.Stream
	task    prim.Task
	job     *prim.Job // nil before it starts
	event   *torchemu.Event
	windows []*prim.Window // that exist only for it
	heard   sim.Time       // by the host that issued it
}

func (l *launch) belongsTo(w any) bool { return l.machine.belongsTo(w) || w == any(l.machine) }

// PrimLaunch puts a kernel, which Python drives, on a stream: so many programs on the stream's rank. tensors are what it
// uses, windows those that were attached for it only. It returns the launch, which PrimAbout gives for its programs.
func PrimLaunch(machine, stream int64, name string, blocks int, interlock bool, tensors, windows string) (handle int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	s, err := streamOf(stream)
	if err != nil {
		return 0, err
	}
	uses, err := parseTensors(s.world, tensors)
	if err != nil {
		return 0, err
	}
	if most := m.Topology.CubesPerSIP() * m.Topology.PEsPerCube(); blocks < 1 || blocks > most {
		return 0, raise("ValueError", "a grid of %d programs: a rank has 1 to %d PEs, one for each program", blocks, most)
	}
	l := &launch{machine: m, stream: s.object, heard: s.object.Rank().Heard()}
	if l.windows, err = parseWindows(windows); err != nil {
		return 0, err
	}
	l.task = prim.Task{
		Name: name, Workers: []int{s.object.Rank().ID}, Blocks: blocks, Interlock: interlock, Done: l.done, Failed: l.failed,
	}
	handle = register(l)
	l.event, err = s.object.Program(torchemu.Program{
		Name: name, Uses: uses, Report: l.report,
		Start: func(sim.Time) { l.start(handle) },
	})
	if err != nil {
		forget(handle)
		return 0, err
	}
	m.begin(l)
	l.event.WhenDone(func() {
		l.free()
		m.over(l)
	})
	return handle, nil
}

func parseWindows(text string) ([]*prim.Window, error) {
	handles, err := parseInts(text)
	if err != nil {
		return nil, err
	}
	list := make([]*prim.Window, len(handles))
	for i, h := range handles {
		w, err := partOf[*prim.Window](int64(h), "window")
		if err != nil {
			return nil, err
		}
		list[i] = w.object
	}
	return list, nil
}

// start submits the task. It follows what its host had heard of when it issued it, and what operations between ranks have
// made sure of since.
func (l *launch) start(handle int64) {
	if l.event != nil && l.event.Done() { // it was abandoned
		return
	}
	l.task.Heard, l.task.Since = l.heard, l.machine.world.backend.Known(l.stream.Rank().ID)
	job, err := l.machine.Submit(l.task)
	if err != nil {
		panic(err) // cannot be: the rank exists, and the blocks were counted
	}
	l.job = job
	l.machine.jobs[job] = handle
}

// done ends the launch; with what the checker has found so far, if that is new.
func (l *launch) done() {
	delete(l.machine.jobs, l.job)
	l.event.Fail(l.machine.News(), l.machine.Now())
}

// failed ends the launch with a program's error.
func (l *launch) failed(_ *prim.Context, err error) {
	l.cancel()
	l.event.Fail(err, l.machine.Now())
}

// cancel makes the machine forget the launch's programs.
func (l *launch) cancel() {
	if l.job == nil || l.job.Ended() {
		return
	}
	for _, c := range l.job.Programs() {
		l.machine.forget(c)
	}
	delete(l.machine.jobs, l.job)
	l.job.Cancel()
}

func (l *launch) free() {
	for _, w := range l.windows {
		w.Forget()
	}
}

// report says what the launch waits for.
func (l *launch) report() torchemu.Standing { return l.machine.standing(l.job) }

// standing says what the programs of a job wait for; nothing before it has started, when it is nil.
func (m *machine) standing(j *prim.Job) torchemu.Standing {
	if j == nil || j.Ended() {
		return torchemu.Standing{}
	}
	return torchemu.Standing{On: " " + strings.Join(j.Standing(), "; and "), Cause: m.Cause(m.later)}
}

// later names a launch that is on a stream of a rank and has not started.
func (m *machine) later(rank int) string {
	for _, a := range m.active {
		if l, ok := a.(*launch); ok && l.job == nil && l.stream.Rank().ID == rank {
			return l.task.Name
		}
	}
	return ""
}

func launchOf(handle int64) (*launch, error) {
	l, ok := lookup(handle).(*launch)
	if !ok {
		return nil, raise("RuntimeError", "this launch does not exist any more")
	}
	return l, l.machine.checkThread()
}

// activity is what the machine of a World runs.
type activity interface {
	abandon(err error) // ends it
}

func (m *machine) begin(a activity) { m.active = append(m.active, a) }

func (m *machine) over(a activity) {
	m.active = slices.DeleteFunc(m.active, func(o activity) bool { return o == a })
}

// PrimAbandon ends all that the machine of a World runs with an error, whatever programs do. Python does not let them go
// on.
func PrimAbandon(machine int64, text string) (err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return err
	}
	for _, a := range slices.Clone(m.active) {
		a.abandon(raise("RuntimeError", "%s", text))
	}
	return nil
}

func (l *launch) abandon(err error) {
	l.cancel()
	l.event.Fail(err, l.machine.Now())
}

// PrimLaunchEnded says whether a launch has ended, and forgets it then.
func PrimLaunchEnded(launch int64) (ended bool, err error) {
	defer guard(&err)
	l, err := launchOf(launch)
	if err != nil || !l.event.Done() {
		return false, err
	}
	forget(launch)
	return true, nil
}

// PrimWindowTensor makes a tensor of a window's memory on a rank. The host may write it: it counts as written.
func PrimWindowTensor(window int64, rank int, dtypeName, shape string) (handle int64, err error) {
	defer guard(&err)
	o, err := partOf[*prim.Window](window, "window")
	if err != nil {
		return 0, err
	}
	d, dims, err := parseType(dtypeName, shape)
	if err != nil {
		return 0, err
	}
	if o.machine.world == nil || !o.object.Has(rank) || o.object.Storage(rank) == nil {
		return 0, raise("ValueError", "rank %d has no tensor in window %q", rank, o.object.Name)
	}
	return o.machine.tensor(o.object, rank, d, dims)
}

// tensor is a tensor over a window's memory, which the window keeps and frees.
func (m *machine) tensor(w *prim.Window, rank int, d dtype.DType, dims []int) (int64, error) {
	s := w.Storage(rank)
	s.Export()
	t, err := tensor.Over(s, d, tensor.Layout{Shape: dims})
	if err != nil {
		return 0, err
	}
	w.HostWrote()
	h := &holders{}
	h.Add(1) // the window
	return registerTensor(t, m.world, h), nil
}
