package pybind

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/pybind/internal/host"
)

// PrimPost is prim.Context.Post. class is 0 for compute units, 1 for SDMA and 2 for a network card.
func PrimPost(program int64, line, class, peer, number int, to, from int64, bytes int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		q, err := host.EngineQueue(class, peer, number)
		if err == nil {
			p.Post(q, prim.Addr(to), prim.Addr(from), bytes)
		}
		return err
	})
}

// PrimPostSignal is prim.Context.PostSignal.
func PrimPostSignal(program int64, line, class, peer, number int, wordAt int64, wordBytes, op int, value int64) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		q, err := host.EngineQueue(class, peer, number)
		if err == nil {
			p.PostSignal(q, host.Word(wordAt, wordBytes), prim.SignalOp(op), value)
		}
		return err
	})
}

// PrimDrain is prim.Context.Drain.
func PrimDrain(program int64, line, class, peer, number int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		q, err := host.EngineQueue(class, peer, number)
		if err == nil {
			p.Drain(q)
		}
		return err
	})
}

// PrimEngines fills in how many SDMA queues and queue pairs there are to a peer, the picoseconds that a barrier on a
// stream takes beside its signals and those that one of hosts takes, and how many devices a node has.
func PrimEngines(machine, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	e := m.Topology.Engines()
	return host.Fill(to, room, []int64{int64(e.SDMA.Queues), int64(e.NIC.Queues), e.Barrier, e.HostBarrier, int64(m.Topology.SIPs() / m.Topology.Nodes())})
}

// PrimAllocateHollow is prim.Machine.AllocateHollow.
func PrimAllocateHollow(machine int64, name string, ranksAt int64, ranks, bytes int) (window int64, err error) {
	defer host.Guard(&err)
	return host.Allocated(machine, name, ranksAt, ranks, bytes, (*prim.Machine).AllocateHollow)
}
