package ccl

import "math/bits"

// The recursive phases take ⌈log2 n⌉ rounds and move each part to n-1 members. Among 2^k members they are recursive
// halving and doubling between partners whose indices differ in one bit, with one message a round. Among any other
// number, partners are at fixed distances round a circle: Bruck's all-gather, and its reversal as the reduce-scatter
// (Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2023). They need no extra round to fold
// surplus members in, but parts that wrap around the circle's end take a second message.

// recursiveReduceScatter leaves member i with the reduction of part i.
func recursiveReduceScatter(members []int, owned []part) phase {
	if isPowerOfTwo(len(members)) {
		return halvingReduceScatter(members, owned)
	}
	return circulantReduceScatter(members, owned)
}

// recursiveAllGather gives every member all parts, where member i has part i.
func recursiveAllGather(members []int, owned []part) phase {
	if isPowerOfTwo(len(members)) {
		return doublingAllGather(members, owned)
	}
	return circulantAllGather(members, owned)
}

// halvingReduceScatter: in each round a member keeps the half of its parts that its own is in, and its partner in the
// other half gets the other half.
func halvingReduceScatter(members []int, owned []part) phase {
	n := len(members)
	rounds, together := log2Ceil(n), stretches(owned)
	return phase{rounds: rounds, hops: log2Floor(n), steps: recursiveSteps(owned), emit: func(b *Builder, round int) {
		distance := n >> (round + 1)
		for i, src := range members {
			partner := i ^ distance
			first := partner &^ (distance - 1)
			send(b, (*Builder).Reduce, src, members[partner], together(first, first+distance)...)
		}
	}}
}

// doublingAllGather: in each round partners exchange all they have.
func doublingAllGather(members []int, owned []part) phase {
	n := len(members)
	rounds, together := log2Ceil(n), stretches(owned)
	return phase{rounds: rounds, hops: log2Floor(n), steps: recursiveSteps(owned), emit: func(b *Builder, round int) {
		distance := 1 << round
		for i, src := range members {
			first := i &^ (distance - 1)
			send(b, (*Builder).Copy, src, members[i^distance], together(first, first+distance)...)
		}
	}}
}

// circulantAllGather: a member that has the parts of itself and the next distance-1 members sends what is still
// missing to the member at that distance before it.
func circulantAllGather(members []int, owned []part) phase {
	n := len(members)
	rounds := log2Ceil(n)
	return phase{rounds: rounds, hops: log2Floor(n), steps: recursiveSteps(owned), emit: func(b *Builder, round int) {
		distance := 1 << round
		count := min(distance, n-distance)
		for i, src := range members {
			sendCircular(b, (*Builder).Copy, src, members[(i-distance+n)%n], owned, i, count)
		}
	}}
}

// circulantReduceScatter is circulantAllGather backwards: where a part was copied from x to y, y's partial sum goes
// to x.
func circulantReduceScatter(members []int, owned []part) phase {
	n := len(members)
	rounds := log2Ceil(n)
	return phase{rounds: rounds, hops: log2Floor(n), steps: recursiveSteps(owned), emit: func(b *Builder, round int) {
		distance := 1 << (rounds - 1 - round)
		count := min(distance, n-distance)
		for i, src := range members {
			dst := (i + distance) % n
			sendCircular(b, (*Builder).Reduce, src, members[dst], owned, dst, count)
		}
	}}
}

// sendCircular sends count parts from the first-th on, going on at part 0 after the last.
func sendCircular(b *Builder, how transfer, src, dst int, owned []part, first, count int) {
	end := min(first+count, len(owned))
	send(b, how, src, dst, owned[first:end]...)
	send(b, how, src, dst, owned[:count-(end-first)]...)
}

// recursiveSteps is at most how many steps a recursive phase adds: for adjoining parts a message for each member and
// round, two where they may wrap around; otherwise every run travels by itself.
func recursiveSteps(owned []part) int {
	n := len(owned)
	alone := runs(owned) * (n - 1)
	for i := range n - 1 {
		if len(owned[i]) != 1 || len(owned[i+1]) != 1 || owned[i][0].hi != owned[i+1][0].lo {
			return alone
		}
	}
	messages := n * log2Ceil(n)
	if !isPowerOfTwo(n) {
		messages *= 2
	}
	return min(alone, messages)
}

func isPowerOfTwo(n int) bool { return n&(n-1) == 0 }

// log2Ceil is ⌈log2 n⌉, the least number of rounds in which one rank's data can reach n ranks.
func log2Ceil(n int) int { return bits.Len(uint(n - 1)) }

// log2Floor is ⌊log2 n⌋: as far as 2^⌊log2 n⌋-1 places round the circle takes as many hops, each twice the last.
func log2Floor(n int) int { return bits.Len(uint(n)) - 1 }
