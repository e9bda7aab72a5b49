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

// binomialScatter brings part i from member 0 to member i.
func binomialScatter(members []int, owned []part) phase {
	return binomialDown(members, func(b *Builder, src, dst int, behind span) {
		sendListed(b, (*Builder).Copy, members[src], members[dst], owned[behind.lo:behind.hi]...)
	})
}

// binomialGather brings part i from member i to member 0.
func binomialGather(members []int, owned []part) phase {
	return binomialUp(members, func(b *Builder, src, dst int, behind span) {
		sendListed(b, (*Builder).Copy, members[src], members[dst], owned[behind.lo:behind.hi]...)
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
