package kernels

import (
	"fmt"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Comm is what all ranks of a machine need to run the kernels: one call at a time.
type Comm struct {
	team      *prim.Barrier
	slots     *prim.Window
	words     *prim.Window
	slotBytes int
	calls     []int64 // by rank
}

// Vector is what a call works on. Elems counts the whole vector: of all blocks. In is the rank's input, and Out, which
// is at the same offset on all ranks, gets the result; they do not overlap.
type Vector struct {
	Op      tensor.ReduceOp
	DType   dtype.DType
	Elems   int
	In, Out prim.Addr
}

const wordBytes = 8

// New makes a Comm with a slot of slotBytes for each rank: the size of the longest message, which is the vector for
// OneShot and its longest share for the others.
func New(m *prim.Machine, name string, slotBytes int) (*Comm, error) {
	n := m.World()
	ranks := make([]int, n)
	for r := range ranks {
		ranks[r] = r
	}
	k := &Comm{slotBytes: slotBytes, calls: make([]int64, n)}
	var err error
	if k.team, err = m.NewBarrier(name, ranks, prim.PhaseBarrier); err != nil {
		return nil, err
	}
	if k.slots, err = m.Allocate(name+" slots", ranks, max(1, n*slotBytes)); err != nil {
		return nil, err
	}
	if k.words, err = m.Allocate(name+" words", ranks, 2*n*wordBytes); err != nil {
		return nil, err
	}
	return k, nil
}

// call is one rank's part in one collective.
type call struct {
	*Comm
	*prim.Context
	Vector
	n, rank int
	number  int64 // of the call
	reducer reducer
}

// begin starts a call: after it, nobody reads what the last one has left. longest is the longest message.
func (k *Comm) begin(c *prim.Context, v Vector, longest int) (*call, error) {
	if longest > k.slotBytes {
		return nil, fmt.Errorf("messages of %d bytes; the slots have %d", longest, k.slotBytes)
	}
	r := c.Rank()
	k.calls[r]++
	c.PipeBarrier(prim.AllPipes)
	c.Sync(k.team)
	return &call{Comm: k, Context: c, Vector: v, n: c.World(), rank: r, number: k.calls[r], reducer: newReducer(c, v.Op, v.DType)}, nil
}

// block is the bytes of the i-th share of the vector; shares differ by one element at most, the first are the longer.
func (v Vector) block(i, n int) (lo, hi int) {
	size, longer := v.Elems/n, v.Elems%n
	first := i*size + min(i, longer)
	last := first + size
	if i < longer {
		last++
	}
	return first * v.DType.Size(), last * v.DType.Size()
}

// longest is the bytes of the longest share.
func (v Vector) longest(n int) int { return (v.Elems + n - 1) / n * v.DType.Size() }

// slot is where on a rank message i lands.
func (x *call) slot(rank, i int) prim.Addr { return x.slots.At(rank, i*x.slotBytes) }

// word is what tells a rank that message i of a phase has landed.
func (x *call) word(rank, phase, i int) prim.Word {
	return prim.I64(x.words.At(rank, (phase*x.n+i)*wordBytes))
}

// await waits for message i of a phase.
func (x *call) await(phase, i int) { x.Wait(x.word(x.rank, phase, i), prim.GE, x.number) }

// push puts bytes to a rank and signals that they have landed.
func (x *call) push(to, from prim.Addr, bytes, phase, i int) {
	x.PutSignal(to, from, bytes, x.word(to.Rank(), phase, i), prim.Add, 1)
}

// combine reduces and waits until the result is stored; elsewhere it may yet have to land.
func (x *call) combine(to prim.Addr, bytes int, from ...prim.Addr) {
	x.reducer.run(to, bytes, from)
	x.PipeBarrier(prim.AllPipes)
}

// part is the address of block i.
func (x *call) part(of prim.Addr, i int) (a prim.Addr, bytes int) {
	lo, hi := x.block(mod(i, x.n), x.n)
	return of + prim.Addr(lo), hi - lo
}

func mod(i, n int) int { return (i%n + n) % n }
