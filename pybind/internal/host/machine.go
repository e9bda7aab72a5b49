package host

import (
	"encoding/json"
	"errors"
	"unsafe"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Machine is a prim.Machine that Python drives.
type Machine struct {
	*prim.Machine
	home     *World  // nil: it has an engine of its own
	thread   uintptr // that made it; a World's machine is where that is
	programs map[*prim.Context]*Program
	lines    []string
	numbers  map[*prim.Computation]int64
	issued   int64 // computations
	jobs     map[*prim.Job]int64
	active   []activity // of a World
	held     int64      // a turn that GoOn has found, which is Python's; 0 for none
	failing  error      // what GoOn has found
	unheard  []unheard  // failures of launches of which no host has been told
	fabric   *World     // where it has its engine and network; nil when these are its own, or it is the World's machine
}

// newMachine drives a machine; that of a World, unless w is nil.
func newMachine(m *prim.Machine, w *World) *Machine {
	return &Machine{
		Machine: m, home: w, thread: callingThread(),
		programs: map[*prim.Context]*Program{}, lines: []string{""}, numbers: map[*prim.Computation]int64{},
		jobs: map[*prim.Job]int64{},
	}
}

// Part is an object of a machine.
type Part[T any] struct {
	Object  T
	Machine *Machine
}

// Keep makes a handle of an object of a machine.
func Keep[T any](m *Machine, object T) int64 { return Register(Part[T]{object, m}) }

func (o Part[T]) belongsTo(w any) bool { return w == any(o.Machine) || o.Machine.belongsTo(w) }

func (m *Machine) belongsTo(w any) bool { return m.home != nil && w == any(m.home) }

func (m *Machine) checkThread() error {
	owner := m.thread
	if m.home != nil {
		owner = m.home.thread
	}
	if callingThread() != owner {
		return Raise("RuntimeError", "a machine belongs to the thread that made it; this is another thread")
	}
	return nil
}

// MachineOf finds an open machine and checks that this is its thread.
func MachineOf(handle int64) (*Machine, error) {
	m, ok := Lookup(handle).(*Machine)
	if !ok {
		return nil, Raise("RuntimeError", "the machine is closed")
	}
	return m, m.checkThread()
}

// PartOf finds an object of a machine that is still there.
func PartOf[T any](handle int64, what string) (Part[T], error) {
	o, ok := Lookup(handle).(Part[T])
	if !ok {
		return o, Raise("RuntimeError", "this %s does not exist any more", what)
	}
	return o, o.Machine.checkThread()
}

// parts finds n objects of a machine by their handles at an address.
func parts[T any](at int64, n int, what string) ([]T, error) {
	handles, err := words(at, n)
	if err != nil {
		return nil, err
	}
	list := make([]T, len(handles))
	for i, h := range handles {
		p, err := PartOf[T](h, what)
		if err != nil {
			return nil, err
		}
		list[i] = p.Object
	}
	return list, nil
}

// MemoryAt is memory of Python's.
func MemoryAt(address int64, bytes int) ([]byte, error) {
	if bytes < 0 || address <= 0 && bytes > 0 {
		return nil, Raise("ValueError", "there are no %d bytes at address %#x", bytes, address)
	}
	if bytes == 0 {
		return nil, nil
	}
	return unsafe.Slice((*byte)(pointer(address)), bytes), nil
}

// pointer is an address that came from outside of Go.
func pointer(address int64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// ParseBarrierKind finds a kind of barriers by its name.
func ParseBarrierKind(name string) (prim.BarrierKind, error) {
	for _, k := range []prim.BarrierKind{prim.PhaseBarrier, prim.SenseBarrier, prim.CreditBarrier} {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, Raise("ValueError", "a barrier of kind %q; the kinds are phase, sense and credit", name)
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

// Found is what the checker has found so far, as JSON: objects with kind, where, first, second, ranks, missing and text.
func (m *Machine) Found() (string, error) {
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

var errFailed = errors.New("a program has failed")

// EndRun ends a run, which may have failed. New findings are an error.
func (m *Machine) EndRun(failed bool) error {
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

// OpenMachine makes a machine with an engine of its own over a topology.
func OpenMachine(t *topology.Topology, ranks int, o prim.Options) (int64, error) {
	m, err := prim.Over(t, ranks, o)
	if err != nil {
		return 0, err
	}
	return Register(newMachine(m, nil)), nil
}

// OpenMachineOn makes a machine on the engine and network of a World that has nothing to do with the World otherwise.
func OpenMachineOn(w *World, ranks int, o prim.Options) (int64, error) {
	if sips := w.Topology.SIPs(); ranks < 1 || ranks > sips {
		return 0, Raise("ValueError", "%d ranks on topology %q, which has 1 to %d SIPs", ranks, w.Topology.Name, sips)
	}
	m := newMachine(prim.New(w.configOf(ranks, o)), nil)
	m.fabric = w
	return Register(m), nil
}

// MachineOfWorld makes the machine of a World, which runs its kernels.
func MachineOfWorld(w *World, o prim.Options) (int64, error) {
	if w.Programs != nil {
		return 0, Raise("RuntimeError", "this World has a machine already")
	}
	if o.Check {
		w.KeepOrder()
	}
	c := w.configOf(w.Topology.SIPs(), o)
	c.Lanes, c.Copied = w.Lanes, w.recordEngine
	m := newMachine(prim.New(c), w)
	w.Programs, w.Backend.Kernels, w.Backend.Look = m, m, w.look
	return Register(m), nil
}

// configOf is that of a machine whose ranks are the first SIPs of a World.
func (w *World) configOf(ranks int, o prim.Options) prim.Config {
	c := prim.Config{Options: o, Engine: w.Engine, Network: w.Network, Topology: w.Topology, PEs: make([]topology.DeviceID, ranks)}
	for i := range c.PEs {
		c.PEs[i] = w.Topology.PE(i, 0, 0)
	}
	return c
}

// AddLine gives a line of a Python program a number.
func (m *Machine) AddLine(text string) int {
	m.lines = append(m.lines, text)
	return len(m.lines) - 1
}

// LostBetween says which fault keeps messages between ranks of a machine from arriving; "" for none.
func (m *Machine) LostBetween(ranks []int) (why string) {
	if m.fabric == nil {
		return ""
	}
	for _, from := range ranks {
		for _, to := range ranks {
			if why = m.fabric.Lost(m.PEs[from], m.PEs[to]); why != "" {
				return why
			}
		}
	}
	return ""
}

// Allocated is the handle of a window on some ranks, a list that crosses from Python, which a method of the machine makes.
func Allocated(machine int64, name string, ranksAt int64, ranks, bytes int, by func(*prim.Machine, string, []int, int) (*prim.Window, error)) (window int64, err error) {
	m, err := MachineOf(machine)
	if err != nil {
		return 0, err
	}
	list, err := Ints(ranksAt, ranks)
	if err != nil {
		return 0, err
	}
	w, err := by(m.Machine, name, list, bytes)
	if err != nil {
		return 0, err
	}
	return Keep(m, w), nil
}
