package pybind

import (
	"encoding/json"
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Functions whose names begin with Prim are the doors to ccl/prim: machines whose programs Python drives.
//
// A machine is made with PrimOpen. Its memory comes from PrimAllocate, PrimAttach; addresses are integers, and tiles are
// addresses too, from PrimScratch on. PrimSubmit puts a task into the queues of workers. Then PrimNext says, until it
// answers 0, whose turn it is: a program's (positive) goes on until an operation answers that it is blocked, or ends
// with PrimEnd; an instruction's (below -1, see PrimCompute) result is put into the scratch memory, and PrimComputed
// says so. An operation (PrimLoad, …) takes the program and the number of its line, from PrimLine; when it answers true
// the program has to park until its next turn. What it then gave is PrimResult. PrimSettle ends a run.

// machine is a prim.Machine that Python drives.
type machine struct {
	*prim.Machine
	world    *world // nil: it has an engine of its own
	thread   int
	programs map[*prim.Context]int64
	lines    []string
	numbers  map[*prim.Computation]int64
	issued   int64 // computations
	jobs     map[*prim.Job]int64
	active   []activity // of a World
	fabric   *world     // where it has its engine and network; nil when these are its own, or it is the World's machine
}

func newMachine(m *prim.Machine, w *world) *machine {
	return &machine{
		Machine: m, world: w, thread: unix.Gettid(),
		programs: map[*prim.Context]int64{}, lines: []string{""}, numbers: map[*prim.Computation]int64{},
		jobs: map[*prim.Job]int64{},
	}
}

// of is an object of a machine.
type of[T any] struct {
	object  T
	machine *machine
}

func (o of[T]) belongsTo(w any) bool {
	return w == any(o.machine) || o.machine.world != nil && w == any(o.machine.world)
}

func (m *machine) belongsTo(w any) bool { return m.world != nil && w == any(m.world) }

func (m *machine) checkThread() error {
	if unix.Gettid() != m.thread {
		return raise("RuntimeError", "a machine belongs to the thread that made it; this is another thread")
	}
	return nil
}

func machineOf(handle int64) (*machine, error) {
	m, ok := lookup(handle).(*machine)
	if !ok {
		return nil, raise("RuntimeError", "the machine is closed")
	}
	return m, m.checkThread()
}

// partOf finds an object of a machine that is still there.
func partOf[T any](handle int64, what string) (of[T], error) {
	o, ok := lookup(handle).(of[T])
	if !ok {
		return o, raise("RuntimeError", "this %s does not exist any more", what)
	}
	return o, o.machine.checkThread()
}

// PrimOpen makes a machine with an engine of its own over a topology: one rank a SIP. check finds races, and reorder
// moves what no rule orders, by the seed.
func PrimOpen(topologyName string, ranks int, check, reorder bool, seed int64) (machine int64, err error) {
	defer guard(&err)
	t, err := topology.Load(topologyName)
	if err != nil {
		return 0, err
	}
	m, err := prim.Over(t, ranks, prim.Options{Check: check, Reorder: reorder, Seed: uint64(seed)})
	if err != nil {
		return 0, err
	}
	return register(newMachine(m, nil)), nil
}

// PrimOpenOn is PrimOpen on the engine and network of a World, as if nothing else went on there: for a program that is
// the only one, and waits until the machine is through. Its tasks are in the World's recordings.
func PrimOpenOn(worldHandle int64, ranks int, check, reorder bool, seed int64) (machine int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	if sips := w.Topology.SIPs(); ranks < 1 || ranks > sips {
		return 0, raise("ValueError", "%d ranks on topology %q, which has 1 to %d SIPs", ranks, w.Topology.Name, sips)
	}
	c := prim.Config{Engine: w.Engine, Network: w.Network, Topology: w.Topology, PEs: make([]topology.DeviceID, ranks)}
	c.Options = prim.Options{Check: check, Reorder: reorder, Seed: uint64(seed)}
	for i := range c.PEs {
		c.PEs[i] = w.Topology.PE(i, 0, 0)
	}
	m := newMachine(prim.New(c), nil)
	m.fabric = w
	return register(m), nil
}

// PrimLost says which fault of its World keeps messages between ranks of a machine, "0,1", from arriving; "" for none.
func PrimLost(machine int64, ranks string) (why string, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil || m.fabric == nil {
		return "", err
	}
	list, err := parseInts(ranks)
	if err != nil {
		return "", err
	}
	for _, from := range list {
		for _, to := range list {
			if why = m.fabric.Lost(m.PEs[from], m.PEs[to]); why != "" {
				return why, nil
			}
		}
	}
	return "", nil
}

// PrimClose frees a machine and all that belongs to it. Closing twice does nothing.
func PrimClose(machine int64) (err error) {
	defer guard(&err)
	if lookup(machine) == nil {
		return nil
	}
	if _, err := machineOf(machine); err != nil {
		return err
	}
	closeOwner(machine)
	return nil
}

// PrimNow is the machine's simulated time, in picoseconds.
func PrimNow(machine int64) (ps int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	return int64(m.Now()), nil
}

// PrimLine gives a line of a Python program a number, by which operations name it.
func PrimLine(machine int64, text string) (line int, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	m.lines = append(m.lines, text)
	return len(m.lines) - 1, nil
}

// PrimAllocate makes a zeroed window on some ranks, "0,1".
func PrimAllocate(machine int64, name, ranks string, bytes int) (window int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	list, err := parseInts(ranks)
	if err != nil {
		return 0, err
	}
	w, err := m.Allocate(name, list, bytes)
	if err != nil {
		return 0, err
	}
	return register(of[*prim.Window]{w, m}), nil
}

// PrimAttach gives bytes that Python owns an address in the memory of a rank. Python keeps them until the window is
// freed.
func PrimAttach(machine int64, name string, rank int, address int64, bytes int) (window int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	data, err := memoryAt(address, bytes)
	if err != nil {
		return 0, err
	}
	w, err := m.Attach(name, rank, data)
	if err != nil {
		return 0, err
	}
	return register(of[*prim.Window]{w, m}), nil
}

// memoryAt is memory of Python's.
func memoryAt(address int64, bytes int) ([]byte, error) {
	if bytes < 0 || address <= 0 && bytes > 0 {
		return nil, raise("ValueError", "there are no %d bytes at address %#x", bytes, address)
	}
	if bytes == 0 {
		return nil, nil
	}
	return unsafe.Slice((*byte)(pointer(address)), bytes), nil
}

// pointer is an address that came from outside of Go.
func pointer(address int64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// PrimAddress is where a byte of a window is in the memory of a rank.
func PrimAddress(window int64, rank, offset int) (address int64, err error) {
	defer guard(&err)
	w, err := partOf[*prim.Window](window, "window")
	if err != nil {
		return 0, err
	}
	if !w.object.Has(rank) || offset < 0 || offset > w.object.Bytes {
		return 0, raise("ValueError", "byte %d on rank %d is not in window %q: %d bytes on ranks %v",
			offset, rank, w.object.Name, w.object.Bytes, w.object.Ranks)
	}
	return int64(w.object.At(rank, offset)), nil
}

// PrimOnRank is the same offset as that of an address in the memory of another rank.
func PrimOnRank(machine, address int64, rank int) (other int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	if rank < 0 || rank >= m.World() {
		return 0, raise("ValueError", "rank %d is not one of 0 to %d", rank, m.World()-1)
	}
	return int64(prim.Addr(address).On(rank)), nil
}

// PrimFree frees a window at once. Whatever arrives later is reported, and lost.
func PrimFree(window int64) (err error) {
	defer guard(&err)
	w, err := partOf[*prim.Window](window, "window")
	if err == nil {
		w.object.Free()
	}
	return err
}

// PrimRead copies bytes of the machine's memory to memory of Python's, between runs.
func PrimRead(machine, from, to int64, bytes int) (err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return err
	}
	dst, err := memoryAt(to, bytes)
	if err != nil {
		return err
	}
	data, err := m.Read(prim.Addr(from), bytes)
	copy(dst, data)
	return err
}

// PrimWrite copies bytes of Python's to the machine's memory, between runs or before programs run.
func PrimWrite(machine, to, from int64, bytes int) (err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return err
	}
	src, err := memoryAt(from, bytes)
	if err != nil {
		return err
	}
	return m.Write(prim.Addr(to), src)
}

// PrimBarrier makes a barrier of some ranks, "0,1"; kind is phase, sense or credit.
func PrimBarrier(machine int64, name, ranks, kind string) (barrier int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	list, err := parseInts(ranks)
	if err != nil {
		return 0, err
	}
	k, err := barrierKind(kind)
	if err != nil {
		return 0, err
	}
	b, err := m.NewBarrier(name, list, k)
	if err != nil {
		return 0, err
	}
	return register(of[*prim.Barrier]{b, m}), nil
}

func barrierKind(name string) (prim.BarrierKind, error) {
	for _, k := range []prim.BarrierKind{prim.PhaseBarrier, prim.SenseBarrier, prim.CreditBarrier} {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, raise("ValueError", "a barrier of kind %q; the kinds are phase, sense and credit", name)
}

// PrimQueue makes a queue of so many slots from one rank to another.
func PrimQueue(machine int64, name string, from, to, slots, slotBytes int) (queue int64, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	q, err := m.NewQueue(name, from, to, slots, slotBytes)
	if err != nil {
		return 0, err
	}
	return register(of[*prim.Queue]{q, m}), nil
}

// finding is a prim.Finding for Python.
type finding struct {
	Kind    string `json:"kind"`
	Where   string `json:"where"`
	First   string `json:"first"`
	Second  string `json:"second"` // "" when there is only one access
	Ranks   [2]int `json:"ranks"`  // of the two accesses; -1 for the host and for none
	Missing string `json:"missing"`
	Text    string `json:"text"`
}

// PrimFindings returns what the checker has found so far, as a JSON list of objects with kind, where, first, second,
// ranks, missing and text.
func PrimFindings(machine int64) (list string, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return "", err
	}
	found := []finding{}
	for _, f := range m.Findings() {
		x := finding{Kind: f.Kind.String(), Where: f.Where, First: f.First.String(), Missing: f.Missing, Text: f.String()}
		x.Ranks[0], x.Ranks[1] = f.Ranks()
		if f.HasSecond() {
			x.Second = f.Second.String()
		}
		found = append(found, x)
	}
	text, err := json.Marshal(found)
	return string(text), err
}

// PrimSettle ends a run: what comes next knows all of it. failed says that it has failed; then the machine is to be looked
// at only. New findings are an error, a RaceError.
func PrimSettle(machine int64, failed bool) (err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return err
	}
	var cause error
	if failed {
		cause = errFailed
	}
	var found *prim.FindingsError
	if errors.As(m.Settle(cause), &found) {
		return found
	}
	return nil
}

var errFailed = errors.New("a program has failed")
