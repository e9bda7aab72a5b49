package ccl

// The binomial phases take ⌈log2 n⌉ rounds along a tree whose root is member 0: of the members from i on that stand
// behind it, member i serves the nearer half itself and leaves the rest, with their data, to the first of them.

// binomialBroadcast gives every member the first one's value of the part; the first serve the most distant first.
func binomialBroadcast(members []int, p part) phase {
	return binomialDown(members, func(b *Builder, src, dst int, _ span) {
		send(b, (*Builder).Copy, members[src], members[dst], p)
	})
}

// binomialReduce leaves member 0 with the reduction of the part.
func binomialReduce(members []int, p part) phase {
	return binomialUp(members, func(b *Builder, src, dst int, _ span) {
		send(b, (*Builder).Reduce, members[src], members[dst], p)
	})
}

// binomialScatter brings the chunk that has a member's number from member 0 to that member.
func binomialScatter(members []int) phase {
	return binomialDown(members, func(b *Builder, src, dst int, behind span) {
		lo, hi := b.List(members[behind.lo:behind.hi])
		b.Copy(members[src], members[dst], lo, hi)
	})
}

// binomialGather brings the chunk that has a member's number from that member to member 0.
func binomialGather(members []int) phase {
	return binomialUp(members, func(b *Builder, src, dst int, behind span) {
		lo, hi := b.List(members[behind.lo:behind.hi])
		b.Copy(members[src], members[dst], lo, hi)
	})
}

// A branch moves data between two members, given by their index. The outer one stands for itself and those behind it.
type branch func(b *Builder, src, dst int, behind span)

// binomialDown goes from the root outwards.
func binomialDown(members []int, move branch) phase {
	rounds := log2Ceil(len(members))
	return phase{rounds: rounds, steps: len(members) - 1, emit: func(b *Builder, round int) {
		binomialLevel(len(members), 1<<(rounds-1-round), func(inner int, behind span) {
			move(b, inner, behind.lo, behind)
		})
	}}
}

// binomialUp goes inwards to the root.
func binomialUp(members []int, move branch) phase {
	rounds := log2Ceil(len(members))
	return phase{rounds: rounds, steps: len(members) - 1, emit: func(b *Builder, round int) {
		binomialLevel(len(members), 1<<round, func(inner int, behind span) {
			move(b, behind.lo, inner, behind)
		})
	}}
}

// binomialLevel lists the branches of one length.
func binomialLevel(n, length int, each func(inner int, behind span)) {
	for outer := length; outer < n; outer += 2 * length {
		each(outer-length, span{outer, min(outer+length, n)})
	}
}
