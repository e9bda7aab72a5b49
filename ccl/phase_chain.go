package ccl

// chainBroadcast hands the first member's value of the part from each member to the next.
func chainBroadcast(members []int, p part) phase {
	n := len(members)
	return phase{rounds: n - 1, hops: n - 1, steps: n - 1, emit: func(b *Builder, round int) {
		send(b, (*Builder).Copy, members[round], members[round+1], p)
	}}
}

// chainReduce hands the reduction of the part from the last member on towards the first.
func chainReduce(members []int, p part) phase {
	n := len(members)
	return phase{rounds: n - 1, hops: n - 1, steps: n - 1, emit: func(b *Builder, round int) {
		send(b, (*Builder).Reduce, members[n-1-round], members[n-2-round], p)
	}}
}

// inPieces cuts the whole vector into chunks that go through the same work one behind the other.
func inPieces(depth int, of func(p part) phase) phase {
	return lanes(depth, func(piece int) phase { return of(part{{piece, piece + 1}}) })
}
