package ccl

import (
	"math/bits"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// allReduceHalvingDoubling is Rabenseifner's: a recursive reduce-scatter, then a recursive all-gather. Each rank sends
// 2(n-1)/n of the vector in 2⌈log2 n⌉ rounds; see [recursiveReduceScatter] for worlds that are no power of two.
func allReduceHalvingDoubling() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "halving_doubling",
		steps: func(l Layout, _ int) phase {
			members, owned := nearestFirst(l.World), parts(0, l.World, 1)
			return chain(recursiveReduceScatter(members, owned), recursiveAllGather(members, owned))
		},
	}
}

// nearestFirst orders 2^k ranks by their reversed bits. Partners that exchange half the vector are then neighbours, and
// the small messages go far, which a ring or mesh of ranks is thankful for. Other worlds stay as they are.
func nearestFirst(world int) []int {
	ranks := everyRank(world)
	if !isPowerOfTwo(world) {
		return ranks
	}
	unused := bits.UintSize - log2Ceil(world)
	for r := range ranks {
		ranks[r] = int(bits.Reverse(uint(r)) >> unused)
	}
	return ranks
}
