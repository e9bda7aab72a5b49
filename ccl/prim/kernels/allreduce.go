package kernels

import "github.com/torchemu/torchemu/ccl/prim"

// OneShotAllReduce sends every rank's whole vector to every rank, which reduces them all in the order of ranks.
func (k *Comm) OneShotAllReduce(c *prim.Context, v Vector) error {
	x, err := k.begin(c, v, v.Elems*v.DType.Size())
	if err != nil {
		return err
	}
	bytes := v.Elems * v.DType.Size()
	for d := 1; d < x.n; d++ {
		peer := mod(x.rank+d, x.n)
		x.push(x.slot(peer, x.rank), v.In, bytes, 0, x.rank)
	}
	x.combine(v.Out, bytes, x.gathered(v.In, 0)...)
	x.average(v.Out, bytes)
	return nil
}

// gathered waits for every rank's message and returns where they are, in the order of ranks: the rank's own is there.
func (x *call) gathered(own prim.Addr, phase int) []prim.Addr {
	from := make([]prim.Addr, x.n)
	for r := range from {
		if r == x.rank {
			from[r] = own
			continue
		}
		x.await(phase, r)
		from[r] = x.slot(x.rank, r)
	}
	return from
}

// TwoShotAllReduce sends each share to its owner, which reduces it in the order of ranks, and sends the result to all.
func (k *Comm) TwoShotAllReduce(c *prim.Context, v Vector) error {
	x, err := k.begin(c, v, v.longest(c.World()))
	if err != nil {
		return err
	}
	for d := 1; d < x.n; d++ {
		peer := mod(x.rank+d, x.n)
		from, bytes := x.part(v.In, peer)
		x.push(x.slot(peer, x.rank), from, bytes, 0, x.rank)
	}
	own, bytes := x.part(v.In, x.rank)
	to, _ := x.part(v.Out, x.rank)
	x.combine(to, bytes, x.gathered(own, 0)...)
	x.average(to, bytes)
	for d := 1; d < x.n; d++ {
		x.push(to.On(mod(x.rank+d, x.n)), to, bytes, 1, x.rank)
	}
	for d := 1; d < x.n; d++ {
		x.await(1, mod(x.rank+d, x.n))
	}
	return nil
}

// RingAllReduce passes each share once round the ring to be reduced, and once more to be shared.
func (k *Comm) RingAllReduce(c *prim.Context, v Vector) error {
	x, err := k.begin(c, v, v.longest(c.World()))
	if err != nil {
		return err
	}
	to, bytes := x.part(v.Out, x.rank)
	x.reduceRound(to)
	x.average(to, bytes)
	x.passRound()
	return nil
}

// average divides for an average what is a sum so far, in memory of the own rank.
func (x *call) average(a prim.Addr, bytes int) {
	if x.Op != averaged {
		return
	}
	t := x.reducer.sums[0]
	for lo := 0; lo < bytes; lo += t.Bytes {
		tile, at := t.Slice(0, min(t.Bytes, bytes-lo)), a+prim.Addr(lo)
		x.Load(tile, at)
		x.PipeBarrier(prim.AllPipes)
		x.Finish(x.Op, x.DType, tile, x.n)
		x.PipeBarrier(prim.AllPipes)
		x.Store(at, tile)
		x.PipeBarrier(prim.AllPipes)
	}
}
