package pybind

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/pybind/internal/host"
)

// PrimScalarLoad is prim.Context.ScalarLoad.
func PrimScalarLoad(program int64, line int, from int64, bytes int, fresh bool) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error { p.ScalarLoad(prim.Addr(from), bytes, fresh); return nil })
}

// PrimScalarStore is prim.Context.ScalarStore.
func PrimScalarStore(program int64, line int, to int64, bytes int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error { p.ScalarStore(prim.Addr(to), bytes); return nil })
}

// PrimScalarStored is prim.Context.ScalarStored.
func PrimScalarStored(program int64, line int, to int64, bytes int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error { p.ScalarStored(prim.Addr(to), bytes); return nil })
}

// PrimInProcess says where the window's memory is that an address is in, by three numbers: the machine's address of its
// beginning, where that is in the process, and its size.
func PrimInProcess(machine, address, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	b, err := m.Live(prim.Addr(address))
	if err != nil {
		return 0, err
	}
	return host.Fill(to, room, host.Whereabouts(b))
}

// PrimHolding is PrimInProcess for a place in the process: the memory that it is in, of the given rank if it has it; no
// numbers if it is in none.
func PrimHolding(machine, place int64, rank int, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	b := m.Holding(host.Inside(place), rank)
	if b.Data == nil {
		return 0, nil
	}
	return host.Fill(to, room, host.Whereabouts(b))
}
