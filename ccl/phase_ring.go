package ccl

// ringReduceScatter leaves member i with the reduction of part i. Each part travels once round the ring and gathers
// the members' values on its way, so it starts at the member after its owner.
func ringReduceScatter(members []int, owned []part) phase {
	n := len(members)
	return phase{rounds: n - 1, hops: n - 1, steps: runs(owned) * (n - 1), emit: func(b *Builder, round int) {
		for i, src := range members {
			send(b, (*Builder).Reduce, src, members[(i+1)%n], owned[(i-1-round+n)%n])
		}
	}}
}

// ringAllGather gives every member all parts, where member i has part i.
func ringAllGather(members []int, owned []part) phase {
	n := len(members)
	return phase{rounds: n - 1, hops: n - 1, steps: runs(owned) * (n - 1), emit: func(b *Builder, round int) {
		for i, src := range members {
			send(b, (*Builder).Copy, src, members[(i+1)%n], owned[(i-round+n)%n])
		}
	}}
}
