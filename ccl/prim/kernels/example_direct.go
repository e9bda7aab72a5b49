package kernels

import (
	"fmt"

	"github.com/torchemu/torchemu/ccl/prim"
)

// allReduceOnePhase: every rank sums the whole vectors of all, its own first and then the others ascending. So from
// three ranks up the ranks' results may differ in their last bits.
func allReduceOnePhase() *Example {
	return &Example{Name: "allreduce_onephase", data: whole, rows: oneRow, run: func(x *example) {
		x.move(x.of(x.Rank, 0), x.Input, x.Count)
		x.meet(0)
		x.sumInto([]prim.Addr{x.Output}, x.Input, 0, x.Count)
	}}
}

// allReduceTwoPhase: rank c sums chunk c, its own first and then the others ascending; then all read all chunks.
func allReduceTwoPhase() *Example {
	return &Example{Name: "allreduce_twophase", data: whole, rows: func(int) int { return 2 }, check: divides("allreduce_twophase", 1), run: func(x *example) {
		chunk := x.Count / x.n
		own := x.Rank * chunk
		x.move(x.of(x.Rank, 0), x.Input, x.Count)
		x.meet(0)
		x.sumInto([]prim.Addr{at(x.Output, own), x.of(x.Rank, own)}, at(x.Input, own), own, chunk)
		x.meet(1)
		for _, r := range x.others() {
			x.move(at(x.Output, r*chunk), x.of(r, r*chunk), chunk)
		}
	}}
}

// divides says that the members, times so many, must divide the count.
func divides(name string, times int) func(n, count int) error {
	return func(n, count int) error {
		if count%(n*times) != 0 {
			return fmt.Errorf("%s: %d elements among %d ranks: want a multiple of %d", name, count, n, n*times)
		}
		return nil
	}
}

// allGatherExample gathers blocks of Count elements.
func allGatherExample() *Example {
	return &Example{Name: "allgather", data: whole, rows: oneRow, run: func(x *example) {
		x.move(x.of(x.Rank, 0), x.Input, x.Count)
		x.meet(0)
		for r := range x.n {
			x.move(at(x.Output, r*x.Count), x.of(r, 0), x.Count)
		}
	}}
}

// reduceScatterExample sums one block of Count elements of each: the own first and then the others ascending.
func reduceScatterExample() *Example {
	return &Example{Name: "reduce_scatter", data: perRank, rows: oneRow, run: func(x *example) {
		x.stageBlocks()
		x.meet(0)
		own := x.Rank * x.Count
		x.sumInto([]prim.Addr{x.Output}, at(x.Input, own), own, x.Count)
	}}
}

// stageBlocks brings the blocks of the input into the window.
func (x *example) stageBlocks() {
	for r := range x.n {
		x.move(x.of(x.Rank, r*x.Count), at(x.Input, r*x.Count), x.Count)
	}
}

// allToAllExample exchanges blocks of Count elements.
func allToAllExample() *Example {
	return &Example{Name: "all_to_all", data: perRank, rows: oneRow, run: func(x *example) {
		x.stageBlocks()
		x.meet(0)
		for r := range x.n {
			x.move(at(x.Output, r*x.Count), x.of(r, x.Rank*x.Count), x.Count)
		}
	}}
}

// broadcastExample gives all the root's vector.
func broadcastExample() *Example {
	return &Example{Name: "broadcast", data: whole, rows: oneRow, run: func(x *example) {
		if x.Rank == x.Root {
			x.move(x.of(x.Rank, 0), x.Input, x.Count)
		}
		x.meet(0)
		x.move(x.Output, x.of(x.Root, 0), x.Count)
	}}
}
