package kernels

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// reducer streams memory through the pipes of a PE: while one tile is combined the next is loaded and the last one
// stored. Each buffer has a flag that says it is filled and one that says it is free.
type reducer struct {
	c     *prim.Context
	op    tensor.ReduceOp
	dt    dtype.DType
	sums  [2]prim.Tile // of tiles in turn
	loads [2]prim.Tile // of operands in turn
	count int          // operands so far
}

// The reducer's flags have the number of their buffer. A tile without second operand goes from load to store.
func newReducer(c *prim.Context, op tensor.ReduceOp, dt dtype.DType) reducer {
	const granule = 512
	size := c.ScratchBytes() / 4 / granule * granule
	return reducer{c: c, op: op, dt: dt,
		sums:  [2]prim.Tile{c.Tile(0, size), c.Tile(size, size)},
		loads: [2]prim.Tile{c.Tile(2*size, size), c.Tile(3*size, size)}}
}

// run stores from[0] combined with from[1], from[2] and so on, in this order, each as the left operand.
func (r *reducer) run(to prim.Addr, bytes int, from []prim.Addr) {
	r.count = 0
	tiles := 0
	for lo := 0; lo < bytes; lo += r.sums[0].Bytes {
		hi := min(bytes, lo+r.sums[0].Bytes)
		r.tile(tiles, to+prim.Addr(lo), hi-lo, from, lo)
		tiles++
	}
	for i := range min(tiles, 2) {
		r.c.WaitFlag(prim.Store, prim.Load, i)
	}
	for i := range min(r.count, 2) {
		r.c.WaitFlag(prim.Vector, prim.Load, i)
	}
}

// tile is run for tile number t.
func (r *reducer) tile(t int, to prim.Addr, bytes int, from []prim.Addr, lo int) {
	c, buffer := r.c, t%2
	sum := r.sums[buffer].Slice(0, bytes)
	if t >= 2 {
		c.WaitFlag(prim.Store, prim.Load, buffer)
	}
	c.Load(sum, from[0]+prim.Addr(lo))
	last := prim.Load
	for _, operand := range from[1:] {
		r.add(sum, operand+prim.Addr(lo))
		last = prim.Vector
	}
	c.SetFlag(last, prim.Store, buffer)
	c.WaitFlag(last, prim.Store, buffer)
	c.Store(to, sum)
	c.SetFlag(prim.Store, prim.Load, buffer)
}

// add combines one operand into a sum.
func (r *reducer) add(sum prim.Tile, operand prim.Addr) {
	c, buffer := r.c, r.count%2
	next := r.loads[buffer].Slice(0, sum.Bytes)
	if r.count >= 2 {
		c.WaitFlag(prim.Vector, prim.Load, buffer)
	}
	c.Load(next, operand)
	c.SetFlag(prim.Load, prim.Vector, buffer)
	c.WaitFlag(prim.Load, prim.Vector, buffer)
	c.Combine(r.op, r.dt, sum, next, sum)
	c.SetFlag(prim.Vector, prim.Load, buffer)
	r.count++
}
