package kernels

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

const averaged = tensor.Avg

// RingReduceScatter passes each share once round the ring: Out gets the rank's own share, which is all that it has.
func (k *Comm) RingReduceScatter(c *prim.Context, v Vector) error {
	x, err := k.begin(c, v, v.longest(c.World()))
	if err != nil {
		return err
	}
	_, bytes := x.part(v.In, x.rank)
	x.reduceRound(v.Out)
	x.average(v.Out, bytes)
	return nil
}

// RingAllGather passes every block once round the ring. In is the rank's block only.
func (k *Comm) RingAllGather(c *prim.Context, v Vector) error {
	x, err := k.begin(c, v, 0)
	if err != nil {
		return err
	}
	to, bytes := x.part(v.Out, x.rank)
	x.combine(to, bytes, v.In)
	x.passRound()
	return nil
}

// reduceRound leaves the reduction of the rank's own share at an address of its own. A share starts at the rank after
// its owner; each rank on its way combines what arrives with its own input and passes it on.
func (x *call) reduceRound(to prim.Addr) {
	next := mod(x.rank+1, x.n)
	from, bytes := x.part(x.In, x.rank-1)
	if x.n == 1 {
		x.combine(to, bytes, from)
		return
	}
	x.push(x.slot(next, 0), from, bytes, 0, 0)
	for step := 1; step < x.n; step++ {
		x.await(0, step-1)
		own, bytes := x.part(x.In, x.rank-1-step)
		arrived := x.slot(x.rank, step-1)
		if step == x.n-1 {
			x.combine(to, bytes, own, arrived)
			return
		}
		x.combine(x.slot(next, step), bytes, own, arrived)
		x.Fence()
		x.Signal(x.word(next, 0, step), prim.Add, 1)
	}
}

// passRound gives all blocks to all ranks, where each has its own in Out.
func (x *call) passRound() {
	next := mod(x.rank+1, x.n)
	for step := range x.n - 1 {
		block, bytes := x.part(x.Out, x.rank-step)
		x.push(block.On(next), block, bytes, 1, step)
		x.await(1, step)
	}
}
