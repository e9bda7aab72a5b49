package ccl

// lineGather hands the parts of all members on along their line, from each to the next, until the first has them: the
// nearest first.
func lineGather(members []int, owned []part) phase { return lineGatherBy(send, members, owned) }

func lineGatherBy(send sending, members []int, owned []part) phase {
	n := len(members)
	return phase{rounds: n - 1, steps: n * (n - 1) / 2, emit: func(b *Builder, round int) {
		for i := 1; i+round < n; i++ {
			send(b, (*Builder).Copy, members[i], members[i-1], owned[i+round])
		}
	}}
}

// lineScatter hands each member's part on along their line from the first: the farthest first.
func lineScatter(members []int, owned []part) phase { return lineScatterBy(send, members, owned) }

func lineScatterBy(send sending, members []int, owned []part) phase {
	n := len(members)
	return phase{rounds: n - 1, steps: n * (n - 1) / 2, emit: func(b *Builder, round int) {
		for i := 0; i <= round; i++ {
			send(b, (*Builder).Copy, members[i], members[i+1], owned[n-1-round+i])
		}
	}}
}

// bothWaysFrom lets lines from a root lead round the ring both ways: one works on the first halves of the ranks' blocks,
// the other one on the second halves.
func bothWaysFrom(l Layout, line func(members []int, owned []part) phase) phase {
	n := l.World
	up, down := l.roundFromRoot()
	first, second := make([]part, n), make([]part, n)
	halves := parts(0, 2*n, 1)
	for i := range n {
		first[i], second[i] = halves[2*up[i]], halves[2*down[i]+1]
	}
	return together(line(up, first), line(down, second))
}

// roundFromRoot is the ranks from the root on round the ring: upwards, and downwards.
func (l Layout) roundFromRoot() (up, down []int) {
	n := l.World
	up, down = make([]int, n), make([]int, n)
	for i := range n {
		up[i], down[i] = (l.Root+i)%n, (l.Root-i+n)%n
	}
	return up, down
}
