package prim

import (
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Load brings memory of any rank into a tile, on the load pipe. Memory is read when the request is there.
func (c *Context) Load(t Tile, from Addr) {
	src, dst := c.reach(from, t.Bytes), c.reach(t.Addr, t.Bytes)
	in := &instruction{origin: c.origin("load", Load), do: func(in *instruction) {
		m, owner := in.pe.machine, in.pe.memoryOf(src.rank)
		read := func() {
			data := m.take(src, in.origin, in.duration, in.pipe.now)
			m.carrier.send(owner, in.pe.device, t.Bytes, effect{by: in.origin, data: data, do: func() {
				m.put(dst, data, in.origin, nil, in.duration, in.pipe.now)
				in.finish()
			}})
		}
		if src.rank == in.pe.rank {
			read()
			return
		}
		m.carrier.after(m.latency(in.pe.device, owner), m.effect(in.origin, read))
	}}
	in.uses(nil, dst)
	c.issue(Load, in)
}

// Store brings a tile into memory of any rank, on the store pipe. In the own memory it is there when the instruction
// ends. In a peer's it lands later, in order with what else the PE sends there.
func (c *Context) Store(to Addr, t Tile) { c.store(to, t, "store", nil) }

// StoreReduce combines a tile into memory of any rank, element by element, in one step that nothing can divide.
func (c *Context) StoreReduce(op tensor.ReduceOp, d dtype.DType, to Addr, t Tile) {
	c.store(to, t, "reducing store", &reduction{op, d})
}

func (c *Context) store(to Addr, t Tile, what string, r *reduction) {
	src, dst := c.reach(t.Addr, t.Bytes), c.reach(to, t.Bytes)
	in := &instruction{origin: c.origin(what, Store), do: func(in *instruction) {
		m := in.pe.machine
		data := m.take(src, in.origin, in.duration, in.pipe.now)
		if dst.rank == in.pe.rank {
			m.carrier.send(in.pe.device, in.pe.device, t.Bytes, effect{by: in.origin, data: data, do: func() {
				m.put(dst, data, in.origin, r, in.duration, in.pipe.now)
				in.finish()
			}})
			return
		}
		in.pe.post(&message{origin: in.origin, to: dst.rank, posted: in.duration, clock: m.check.release(&in.pipe.agent), dst: dst, data: data, reduce: r})
		m.carrier.after(m.injection(t.Bytes), m.effect(in.origin, in.finish))
	}}
	in.uses([]place{src}, place{})
	c.issue(Store, in)
}

// Combine makes dst = a ⊕ b element by element, on the vector pipe, rounding once. Tiles may be the same, and have
// the same size.
func (c *Context) Combine(op tensor.ReduceOp, d dtype.DType, dst, a, b Tile) {
	if dst.Bytes != a.Bytes || a.Bytes != b.Bytes || a.Bytes%d.Size() != 0 {
		c.fail("tiles of %d, %d and %d bytes cannot be combined as %v", dst.Bytes, a.Bytes, b.Bytes, d)
	}
	x, y := c.reach(a.Addr, a.Bytes), c.reach(b.Addr, b.Bytes)
	c.compute("combine", Vector, dst, []place{x, y}, func(out []byte) { tensor.Combine(op, d, out, x.data(), y.data()) })
}

// Finish divides a tile that holds a sum by the number of ranks, for the average; see [tensor.Finish].
func (c *Context) Finish(op tensor.ReduceOp, d dtype.DType, t Tile, world int) {
	p := c.reach(t.Addr, t.Bytes)
	c.compute("finish", Vector, t, []place{p}, func(out []byte) { tensor.Finish(op, d, out, world) })
}

// Move copies a tile within the scratch memory, on the vector pipe. Both have the same size.
func (c *Context) Move(dst, src Tile) {
	if dst.Bytes != src.Bytes {
		c.fail("a tile of %d bytes cannot be moved to one of %d", src.Bytes, dst.Bytes)
	}
	p := c.reach(src.Addr, src.Bytes)
	c.compute("move", Vector, dst, []place{p}, func(out []byte) { copy(out, p.data()) })
}

// Convert rounds the elements of src to dst's type, on the vector pipe. Both have the same number of elements.
func (c *Context) Convert(dst Tile, to dtype.DType, src Tile, from dtype.DType) {
	if dst.Bytes/to.Size() != src.Bytes/from.Size() {
		c.fail("%d bytes of %v cannot be converted to %d of %v", src.Bytes, from, dst.Bytes, to)
	}
	p := c.reach(src.Addr, src.Bytes)
	c.compute("convert", Vector, dst, []place{p}, func(out []byte) { dtype.Convert(out, to, p.data(), from) })
}

// Fill sets every byte of a tile, on the vector pipe.
func (c *Context) Fill(t Tile, value byte) {
	c.compute("fill", Vector, t, nil, func(out []byte) {
		for i := range out {
			out[i] = value
		}
	})
}

// compute makes a pipe write a tile from others; what it makes of them is f's.
func (c *Context) compute(what string, p Pipe, dst Tile, from []place, f func(out []byte)) {
	to := c.reach(dst.Addr, dst.Bytes)
	in := &instruction{origin: c.origin(what, p), do: func(in *instruction) {
		m := in.pe.machine
		m.carrier.combine(in.pe.device, dst.Bytes, m.effect(in.origin, func() { in.complete(to, from, f) }))
	}}
	in.uses(from, to)
	c.issue(p, in)
}

// complete computes: operands are read and the result is written at the end.
func (in *instruction) complete(to place, from []place, f func(out []byte)) {
	in.look(to, from)
	f(to.data())
	in.finish()
}

// look notes the accesses of a computation.
func (in *instruction) look(to place, from []place) {
	check := in.pe.machine.check
	for _, p := range from {
		check.access(p, in.origin, reads, in.duration, in.pipe.now)
	}
	check.access(to, in.origin, writes, in.duration, in.pipe.now)
}

// Dot makes dst = a·b on the matrix pipe, for a of m×k, b of k×n and dst of m×n elements of f32, row by row, summed
// in float32 from k = 0 on; with accumulate dst is added to first.
func (c *Context) Dot(dst, a, b Tile, m, n, k int, accumulate bool) {
	const f32 = 4
	if m < 0 || n < 0 || k < 0 || dst.Bytes != m*n*f32 || a.Bytes != m*k*f32 || b.Bytes != k*n*f32 {
		c.fail("tiles of %d, %d and %d bytes are not f32 matrices of %d×%d, %d×%d and %d×%d", dst.Bytes, a.Bytes, b.Bytes, m, n, m, k, k, n)
	}
	to, x, y := c.reach(dst.Addr, dst.Bytes), c.reach(a.Addr, a.Bytes), c.reach(b.Addr, b.Bytes)
	from := []place{x, y}
	if accumulate {
		from = append(from, to)
	}
	in := &instruction{origin: c.origin("dot", Matrix), do: func(in *instruction) {
		on := in.pe.machine
		on.carrier.after(on.dotTime(m, n, k), on.effect(in.origin, func() {
			in.complete(to, from, func(out []byte) { dot(out, x.data(), y.data(), m, n, k, accumulate) })
		}))
	}}
	in.uses(from, to)
	c.issue(Matrix, in)
}

// dotTime is how long the matrix unit of a PE takes.
func (m *Machine) dotTime(rows, columns, k int) sim.Time {
	return duration(2*int64(rows)*int64(columns)*int64(k), m.Topology.Compute().MatrixF32)
}

func dot(out, a, b []byte, m, n, k int, accumulate bool) {
	fa, fb, fo := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
	dtype.ToF32(dtype.F32, fa, a)
	dtype.ToF32(dtype.F32, fb, b)
	if accumulate {
		dtype.ToF32(dtype.F32, fo, out)
	}
	for i := range m {
		for l := range k {
			for j, v := range fb[l*n : (l+1)*n] {
				fo[i*n+j] += float32(fa[i*k+l] * v)
			}
		}
	}
	dtype.FromF32(dtype.F32, out, fo)
}
