package pybind

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/pybind/internal/host"
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

// PrimOpen makes a machine with an engine of its own over a topology: one rank a SIP. check finds races, and reorder
// moves what no rule orders, by the seed.
func PrimOpen(topologyName string, ranks int, check, reorder bool, seed int64) (machine int64, err error) {
	defer host.Guard(&err)
	t, err := topology.Load(topologyName)
	if err != nil {
		return 0, err
	}
	return host.OpenMachine(t, ranks, prim.Options{Check: check, Reorder: reorder, Seed: uint64(seed)})
}

// PrimOpenOn is PrimOpen on the engine and network of a World, as if nothing else went on there: for a program that is
// the only one, and waits until the machine is through. Its tasks are in the World's recordings.
func PrimOpenOn(worldHandle int64, ranks int, check, reorder bool, seed int64) (machine int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	return host.OpenMachineOn(w, ranks, prim.Options{Check: check, Reorder: reorder, Seed: uint64(seed)})
}

// PrimLost says which fault of its World keeps messages between ranks of a machine from arriving; "" for none.
func PrimLost(machine, ranksAt int64, ranks int) (why string, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return "", err
	}
	list, err := host.Ints(ranksAt, ranks)
	if err != nil {
		return "", err
	}
	return m.LostBetween(list), nil
}

// PrimClose frees a machine and all that belongs to it. Closing twice does nothing.
func PrimClose(machine int64) (err error) {
	defer host.Guard(&err)
	if host.Lookup(machine) == nil {
		return nil
	}
	if _, err := host.MachineOf(machine); err != nil {
		return err
	}
	host.CloseOwner(machine)
	return nil
}

// PrimNow is the machine's simulated time, in picoseconds.
func PrimNow(machine int64) (ps int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	return int64(m.Now()), nil
}

// PrimLine gives a line of a Python program a number, by which operations name it.
func PrimLine(machine int64, text string) (line int, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	return m.AddLine(text), nil
}

// PrimAllocate makes a zeroed window on some ranks.
func PrimAllocate(machine int64, name string, ranksAt int64, ranks, bytes int) (window int64, err error) {
	defer host.Guard(&err)
	return host.Allocated(machine, name, ranksAt, ranks, bytes, (*prim.Machine).Allocate)
}

// PrimUnset is prim.Window.Unset.
func PrimUnset(window int64) (err error) {
	defer host.Guard(&err)
	w, err := host.PartOf[*prim.Window](window, "window")
	if err != nil {
		return err
	}
	w.Object.Unset()
	return nil
}

// PrimAttach gives bytes that Python owns an address in the memory of a rank. Python keeps them until the window is
// freed.
func PrimAttach(machine int64, name string, rank int, address int64, bytes int) (window int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	data, err := host.MemoryAt(address, bytes)
	if err != nil {
		return 0, err
	}
	w, err := m.Attach(name, rank, data)
	if err != nil {
		return 0, err
	}
	return host.Keep(m, w), nil
}

// PrimAttachMet gives bytes of one length on several ranks, which Python owns, one place in their memory. Python keeps them until the
// window is freed.
func PrimAttachMet(machine int64, name string, ranksAt int64, ranks int, addressesAt int64, addresses, bytes int) (window int64, err error) {
	defer host.Guard(&err)
	starts, err := host.Ints(addressesAt, addresses)
	if err != nil {
		return 0, err
	}
	data := make([][]byte, len(starts))
	for i, at := range starts {
		if data[i], err = host.MemoryAt(int64(at), bytes); err != nil {
			return 0, err
		}
	}
	attach := func(m *prim.Machine, name string, ranks []int, _ int) (*prim.Window, error) {
		return m.AttachMet(name, ranks, data)
	}
	return host.Allocated(machine, name, ranksAt, ranks, bytes, attach)
}

// PrimShare is prim.Window.Share.
func PrimShare(window int64, at int) (err error) {
	defer host.Guard(&err)
	w, err := host.PartOf[*prim.Window](window, "window")
	if err != nil {
		return err
	}
	w.Object.Share(at)
	return nil
}

// PrimAddress is where a byte of a window is in the memory of a rank.
func PrimAddress(window int64, rank, offset int) (address int64, err error) {
	defer host.Guard(&err)
	w, err := host.PartOf[*prim.Window](window, "window")
	if err != nil {
		return 0, err
	}
	if !w.Object.Has(rank) || offset < 0 || offset > w.Object.Bytes {
		return 0, host.Raise("ValueError", "byte %d on rank %d is not in window %q: %d bytes on ranks %v",
			offset, rank, w.Object.Name, w.Object.Bytes, w.Object.Ranks)
	}
	return int64(w.Object.At(rank, offset)), nil
}

// PrimOnRank is the same offset as that of an address in the memory of another rank.
func PrimOnRank(machine, address int64, rank int) (other int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	if rank < 0 || rank >= m.World() {
		return 0, host.Raise("ValueError", "rank %d is not one of 0 to %d", rank, m.World()-1)
	}
	return int64(prim.Addr(address).On(rank)), nil
}

// PrimFree frees a window at once. Whatever arrives later is reported, and lost.
func PrimFree(window int64) (err error) {
	defer host.Guard(&err)
	w, err := host.PartOf[*prim.Window](window, "window")
	if err == nil {
		w.Object.Free()
	}
	return err
}

// PrimRead copies bytes of the machine's memory to memory of Python's, between runs.
func PrimRead(machine, from, to int64, bytes int) (err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return err
	}
	dst, err := host.MemoryAt(to, bytes)
	if err != nil {
		return err
	}
	data, err := m.Read(prim.Addr(from), bytes)
	copy(dst, data)
	return err
}

// PrimWrite copies bytes of Python's to the machine's memory, between runs or before programs run.
func PrimWrite(machine, to, from int64, bytes int) (err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return err
	}
	src, err := host.MemoryAt(from, bytes)
	if err != nil {
		return err
	}
	return m.Write(prim.Addr(to), src)
}

// PrimBarrier makes a barrier of some ranks; kind is phase, sense or credit.
func PrimBarrier(machine int64, name string, ranksAt int64, ranks int, kind string) (barrier int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	list, err := host.Ints(ranksAt, ranks)
	if err != nil {
		return 0, err
	}
	k, err := host.ParseBarrierKind(kind)
	if err != nil {
		return 0, err
	}
	b, err := m.NewBarrier(name, list, k)
	if err != nil {
		return 0, err
	}
	return host.Keep(m, b), nil
}

// PrimQueue makes a queue of so many slots from one rank to another.
func PrimQueue(machine int64, name string, from, to, slots, slotBytes int) (queue int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	q, err := m.NewQueue(name, from, to, slots, slotBytes)
	if err != nil {
		return 0, err
	}
	return host.Keep(m, q), nil
}

// PrimFindings returns what the checker has found so far, as a JSON list of objects with kind, where, first, second,
// ranks, missing and text.
func PrimFindings(machine int64) (list string, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return "", err
	}
	return m.Found()
}

// PrimSettle ends a run: what comes next knows all of it. failed says that it has failed; then the machine is to be looked
// at only. New findings are an error, a RaceError.
func PrimSettle(machine int64, failed bool) (err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return err
	}
	return m.EndRun(failed)
}
