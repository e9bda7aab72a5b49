package distributed

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Kernels runs collectives as device programs; see [Options.Kernels].
type Kernels interface {
	// Start prepares a collective. Its programs start when their members join.
	Start(c KernelCall) (KernelRun, error)
}

// KernelCall is a collective that a kernel is to run.
type KernelCall struct {
	Name       string // the kernel's, in ccl.yaml
	Collective collective.Kind
	Op         tensor.ReduceOp
	DType      dtype.DType
	Elems      int   // of the whole vector, of all blocks
	Ranks      []int // of the World, by member
	In, Out    [][]byte

	// Done is told that a member's program has ended, and with what error.
	Done func(member int, now sim.Time, err error)
	// Knows adds to what is known when a member's part has ended, before Done.
	Knows func(member int, known order.Clock)
}

// KernelRun is a collective that a kernel runs.
type KernelRun interface {
	Join(member int, known *order.Point)   // starts the member's program now, where so much is over; nil: nobody asks
	Standing(member int) torchemu.Standing // what the member's program waits for
	Cancel()                               // ends them; nobody is told
}

// kernel is the name of the kernel that is to run the collective; "" where an algorithm does.
func (m *meeting) kernel() string {
	if m.group.backend.Kernels == nil || m.call.name == barrier {
		return ""
	}
	return m.group.backend.Options.Kernels[m.collective]
}

// startKernel runs the collective as device programs, on copies of its data.
func (m *meeting) startKernel(name string) error {
	if m.single != nil {
		return fmt.Errorf("%s: kernel %q of ccl.yaml runs on ranks, not on the shards of a single worker: choose an algorithm for these", m.call.name, name)
	}
	if m.sizes != nil {
		return fmt.Errorf("%s: the ranks' blocks differ in size, which kernel %q of ccl.yaml cannot have: its blocks are equal", m.call.name, name)
	}
	m.record = m.newRecord(name)
	k := KernelCall{
		Name: name, Collective: m.collective, Op: m.op, DType: m.scalars.dtype, Elems: m.scalars.elems,
		Ranks: m.group.Members, Done: m.kernelDone, Knows: m.kernelKnows,
	}
	size := m.call.dtype.Size()
	for _, p := range m.parts {
		k.In = append(k.In, slices.Clone(multiplied(contents(p.in), m.scalars.dtype, p.factor)))
		k.Out = append(k.Out, make([]byte, numels(p.out)*size))
	}
	m.results = k.Out
	if m.elems > 0 {
		var err error
		if m.run, err = m.group.backend.Kernels.Start(k); err != nil {
			return err
		}
	}
	for i := range m.parts {
		m.joinWhenReady(i)
	}
	return nil
}

// joinWhenReady starts a member's program when what its device has to do before has ended.
func (m *meeting) joinWhenReady(i int) {
	p := &m.parts[i]
	p.work.Record = m.record
	torchemu.AfterAll(torchemu.Unfinished(p.after...), func(latest sim.Time) {
		m.group.backend.World.At(max(p.ready, latest), func(now sim.Time) {
			switch {
			case m.broken != nil:
				return
			case m.run == nil:
				m.began(i, now)
				m.kernelDone(i, now, nil)
			default:
				m.began(i, now)
				m.run.Join(i, p.errand.known())
			}
		})
	})
}

// kernelKnows adds what a member's program knows.
func (m *meeting) kernelKnows(member int, known order.Clock) {
	if e := m.parts[member].errand; e != nil {
		e.end.Tell(known)
	}
}

// kernelDone ends a member's part.
func (m *meeting) kernelDone(member int, now sim.Time, err error) {
	if m.broken != nil {
		return
	}
	if err == nil {
		err = scatter(m.parts[member].out, m.results[member])
	}
	if err != nil {
		m.fail(err)
		return
	}
	if e := m.parts[member].errand; e != nil {
		e.end.Seal()
	}
	m.RankDone(member, now)
}

// scatter makes bytes the contents of tensors, one after another.
func scatter(list []*tensor.Tensor, data []byte) error {
	for _, t := range list {
		n := t.Numel() * t.DType().Size()
		if err := t.Scatter(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
