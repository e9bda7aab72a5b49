package ccl

// directReduceScatter leaves member i with the reduction of part i of all members' inputs: every input goes straight
// to member i, which reduces in the order of members, whatever arrives first. It sends the inputs, so it can only
// come first in a schedule. Parts may overlap.
//
// Steps are added sender by sender, because a receiver's reductions must be in the senders' order; each sender begins
// with its successor, so that not all of them crowd at one receiver.
func directReduceScatter(members []int, owned []part) phase {
	n := len(members)
	return phase{rounds: min(1, n-1), pairs: owners(owned) * (n - 1), steps: runs(owned)*n - runs(owned[:1]), emit: func(b *Builder, _ int) {
		for i, src := range members {
			how := (*Builder).ReduceInput
			if i == 0 {
				how = (*Builder).CopyInput // the first operand: there is nothing to reduce it into
			} else {
				send(b, how, src, src, owned[i])
			}
			for k := 1; k < n; k++ {
				dst := (i + k) % n
				send(b, how, src, members[dst], owned[dst])
			}
		}
	}}
}

// staggeredReduceScatter is directReduceScatter in which every member reduces in the order in which the others send to
// it, from the one before it backwards, so that its first operand is the first to come.
func staggeredReduceScatter(members []int, owned []part) phase {
	n := len(members)
	return phase{rounds: min(1, n-1), pairs: owners(owned) * (n - 1), steps: runs(owned) * (n - 1), emit: func(b *Builder, _ int) {
		for k := 1; k < n; k++ {
			for i, src := range members {
				dst := (i + k) % n
				send(b, (*Builder).ReduceInput, src, members[dst], owned[dst])
			}
		}
	}}
}

// directAllGather gives every member all parts, where member i has part i: each sends its own to all others.
func directAllGather(members []int, owned []part) phase {
	n := len(members)
	return phase{rounds: min(1, n-1), pairs: owners(owned) * (n - 1), steps: runs(owned) * (n - 1), emit: func(b *Builder, _ int) {
		for i, src := range members {
			for k := 1; k < n; k++ {
				send(b, (*Builder).Copy, src, members[(i+k)%n], owned[i])
			}
		}
	}}
}

// owners counts the members with a part that is not empty.
func owners(owned []part) int {
	n := 0
	for _, p := range owned {
		if len(p) > 0 {
			n++
		}
	}
	return n
}

// directScatter brings part i from the first member to member i.
func directScatter(members []int, owned []part) phase {
	return fromFirst(members, func(b *Builder, i int) { send(b, (*Builder).Copy, members[0], members[i], owned[i]) })
}

// directGather brings part i from member i to the first member.
func directGather(members []int, owned []part) phase {
	return fromFirst(members, func(b *Builder, i int) { send(b, (*Builder).Copy, members[i], members[0], owned[i]) })
}

// blocksOf is the block of each member, of one chunk.
func blocksOf(members []int) []part {
	blocks := make([]part, len(members))
	for i, m := range members {
		blocks[i] = part{{m, m + 1}}
	}
	return blocks
}

// directBroadcast gives every member the first one's value of the part.
func directBroadcast(members []int, p part) phase {
	return fromFirst(members, func(b *Builder, i int) { send(b, (*Builder).Copy, members[0], members[i], p) })
}

// fromFirst adds one step between the first member and each other, all at once.
func fromFirst(members []int, step func(b *Builder, i int)) phase {
	return phase{rounds: min(1, len(members)-1), steps: len(members) - 1, emit: func(b *Builder, _ int) {
		for i := 1; i < len(members); i++ {
			step(b, i)
		}
	}}
}
