package kernels

import "fmt"

// allReducePullRing passes each chunk once round the ring to be summed and once more to be shared; every rank reads
// from its left neighbour. Chunk c ends as in_c + (in_{c-1} + (… + (in_{c+2} + in_{c+1}))).
func allReducePullRing() *Example {
	return &Example{
		Name: "allreduce_ring", rows: func(n int) int { return 2 * (n - 1) }, check: divides("allreduce_ring", 1),
		data: func(n, count int) int { return (n + 1) * count / n },
		run: func(x *example) {
			x.move(x.of(x.Rank, 0), x.Input, x.Count)
			x.pass(0)
			x.pullSums()
			x.pullResults()
		},
	}
}

// pass tells the right neighbour that a row's data is in the own window.
func (x *example) pass(row int) {
	if row < 2*(x.n-1) {
		x.drain()
		x.notify(x.Rank+1, row)
	}
}

// pullSums adds the own input to what the left neighbour has of a chunk, one chunk a step, and ends with the own one.
func (x *example) pullSums() {
	chunk := x.Count / x.n
	sum := x.tile(0, chunk)
	for step := 1; step < x.n; step++ {
		k := mod(x.Rank-1-step, x.n) * chunk
		x.c.Load(sum, at(x.Input, k))
		x.drain()
		x.await(mod(x.Rank-1, x.n), step-1)
		x.add(sum, x.of(x.Rank-1, k))
		x.c.Store(x.of(x.Rank, k), sum)
		x.pass(step)
	}
	own := x.Rank * chunk
	x.move(at(x.Output, own), x.of(x.Rank, own), chunk)
}

// pullResults reads the left neighbour's latest result, one chunk a step.
func (x *example) pullResults() {
	chunk := x.Count / x.n
	for step := 1; step < x.n; step++ {
		k := mod(x.Rank-step, x.n) * chunk
		x.await(mod(x.Rank-1, x.n), x.n-2+step)
		x.move(x.of(x.Rank, k), x.of(x.Rank-1, k), chunk)
		x.pass(x.n - 1 + step)
		x.move(at(x.Output, k), x.of(x.Rank, k), chunk)
	}
}

// allReduceBothWays is a ring for the first half of each chunk and, at the same time, a ring the other way round for
// the second half. Ranks push into their neighbours' windows. Its first row is a barrier before that.
func allReduceBothWays() *Example {
	return &Example{
		Name: "allreduce_bidirectional_ring", data: whole, rows: func(n int) int { return 2*(n-1) + 1 },
		check: divides("allreduce_bidirectional_ring", 2), run: (*example).bothWays,
	}
}

// allReduceIbing is the exchange of two ranks; published code returns wrong sums for more.
func allReduceIbing() *Example {
	return &Example{
		Name: "allreduce_ibing", rows: func(n int) int { return 2*(n-1) + 1 }, run: (*example).bothWays,
		data: func(n, count int) int { return (n + 2) * count / n },
		check: func(n, count int) error {
			if n != 2 {
				return fmt.Errorf("allreduce_ibing: %d ranks: it is for 2 only", n)
			}
			return divides("allreduce_ibing", 2)(n, count)
		},
	}
}

// way is one of the two directions: 1 to the right with the first halves, -1 to the left with the second.
type way int

// part is the first element of the half chunk that starts at the neighbour and has gone so many steps, and its length.
func (w way) part(x *example, rank, steps int) (elem, elems int) {
	half := x.Count / x.n / 2
	elem = mod(rank-int(w)*steps, x.n) * 2 * half
	if w < 0 {
		elem += half
	}
	return elem, half
}

func (x *example) bothWays() {
	x.meet(0)
	for step := 1; step < x.n; step++ {
		for _, w := range []way{1, -1} {
			x.pushSum(w, step)
		}
		x.exchange(step)
	}
	for _, w := range []way{1, -1} {
		x.lastSum(w)
	}
	for step := 1; step < x.n; step++ {
		for _, w := range []way{1, -1} {
			k, elems := w.part(x, x.Rank, step-1)
			x.move(x.of(x.Rank+int(w), k), at(x.Output, k), elems)
		}
		x.exchange(x.n - 1 + step)
		for _, w := range []way{1, -1} {
			k, elems := w.part(x, x.Rank, step)
			x.move(at(x.Output, k), x.of(x.Rank, k), elems)
		}
	}
}

// pushSum gives the neighbour the sum of a half chunk so far: the own input alone at the first step.
func (x *example) pushSum(w way, step int) {
	k, elems := w.part(x, x.Rank, step)
	sum := x.tile(0, elems)
	x.c.Load(sum, at(x.Input, k))
	x.drain()
	if step > 1 {
		x.add(sum, x.of(x.Rank, k))
	}
	x.c.Store(x.of(x.Rank+int(w), k), sum)
	x.drain()
}

// lastSum completes the own half chunk.
func (x *example) lastSum(w way) {
	k, elems := w.part(x, x.Rank, 0)
	sum := x.tile(0, elems)
	x.c.Load(sum, at(x.Input, k))
	x.drain()
	if x.n > 1 {
		x.add(sum, x.of(x.Rank, k))
	}
	x.c.Store(at(x.Output, k), sum)
	x.drain()
}

// exchange signals both neighbours, which may be one, and waits for them.
func (x *example) exchange(row int) {
	right, left := mod(x.Rank+1, x.n), mod(x.Rank-1, x.n)
	x.notify(right, row)
	if left != right {
		x.notify(left, row)
	}
	x.await(left, row)
	x.await(right, row)
}
