package ccl

// The exchange phases of an all-to-all: block k of a rank is for the rank k places further on, see [Schedule].

// pairwiseExchange takes n-1 rounds. In round k every rank sends to the one k places further on, and so receives from
// the one k places back.
func pairwiseExchange(n int) phase {
	return phase{rounds: n - 1, pairs: n * (n - 1), steps: n * (n - 1), emit: func(b *Builder, round int) {
		far := round + 1
		for src := range n {
			b.Copy(src, (src+far)%n, far, far+1)
		}
	}}
}

// directExchange sends everything at once.
func directExchange(n int) phase {
	return phase{rounds: min(1, n-1), pairs: n * (n - 1), steps: n * (n - 1), emit: func(b *Builder, _ int) {
		for src := range n {
			for far := 1; far < n; far++ {
				b.Copy(src, (src+far)%n, far, far+1)
			}
		}
	}}
}

// bruckExchange takes ⌈log2 n⌉ rounds, one for each bit of a block's way: in round k a rank sends all blocks that have
// bit k in their way to the rank 2^k places further on, those among them that have come this far from others as well.
// (Bruck, Ho, Kipnis, Upfal, Weathersby: "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", 1997.)
func bruckExchange(n int) phase {
	rounds := log2Ceil(n)
	return phase{rounds: rounds, steps: n * rounds, emit: func(b *Builder, round int) {
		lo, hi := b.List(withBit(n, round))
		for src := range n {
			b.Copy(src, (src+1<<round)%n, lo, hi)
		}
	}}
}

// withBit lists the numbers below n that have that bit.
func withBit(n, bit int) []int {
	var list []int
	for k := range n {
		if k>>bit&1 == 1 {
			list = append(list, k)
		}
	}
	return list
}
