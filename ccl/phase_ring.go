package ccl

// ringReduceScatter leaves member i with the reduction of part i. Each part travels once round the ring and gathers
// the members' values on its way, so it starts at the member after its owner.
func ringReduceScatter(members []int, owned []part) phase {
	return ringReduceScatterBy(send, members, owned)
}

// ringAllGather gives every member all parts, where member i has part i.
func ringAllGather(members []int, owned []part) phase { return ringAllGatherBy(send, members, owned) }

// A sending adds the steps that move parts: as send does, or sendListed.
type sending func(b *Builder, how transfer, src, dst int, moved ...part)

func ringReduceScatterBy(send sending, members []int, owned []part) phase {
	n := len(members)
	return phase{rounds: n - 1, hops: n - 1, steps: runs(owned) * (n - 1), emit: func(b *Builder, round int) {
		for i, src := range members {
			send(b, (*Builder).Reduce, src, members[(i+1)%n], owned[(i-1-round+n)%n])
		}
	}}
}

func ringAllGatherBy(send sending, members []int, owned []part) phase {
	n := len(members)
	return phase{rounds: n - 1, hops: n - 1, steps: runs(owned) * (n - 1), emit: func(b *Builder, round int) {
		for i, src := range members {
			send(b, (*Builder).Copy, src, members[(i+1)%n], owned[(i-round+n)%n])
		}
	}}
}

// halvesOfBlocks is the shape of a block for every rank, in two halves.
func halvesOfBlocks(l Layout, _ int) (blocks, sub int) { return l.World, 2 }

// bothWaysRound lets a ring work on the first halves of the ranks' blocks and another one, the other way round, on the
// second halves.
func bothWaysRound(n int, ring func(members []int, owned []part) phase) phase {
	up, down := everyRank(n), everyRankDown(n)
	halves := parts(0, 2*n, 1)
	first, second := make([]part, n), make([]part, n)
	for i := range n {
		first[i], second[i] = halves[2*up[i]], halves[2*down[i]+1]
	}
	return together(ring(up, first), ring(down, second))
}

// listedRingReduceScatter is ringReduceScatter with one message for each part, whose chunks need not adjoin.
func listedRingReduceScatter(members []int, owned []part) phase {
	p := ringReduceScatterBy(sendListed, members, owned)
	p.steps = len(members) * (len(members) - 1)
	return p
}

// listedRingAllGather is ringAllGather with one message for each part.
func listedRingAllGather(members []int, owned []part) phase {
	p := ringAllGatherBy(sendListed, members, owned)
	p.steps = len(members) * (len(members) - 1)
	return p
}
