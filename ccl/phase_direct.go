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

// directScatter brings the chunk that has a member's number from the first member to that member.
func directScatter(members []int) phase {
	return fromFirst(members, func(b *Builder, root, member int) { b.Copy(root, member, member, member+1) })
}

// directGather brings the chunk that has a member's number from that member to the first.
func directGather(members []int) phase {
	return fromFirst(members, func(b *Builder, root, member int) { b.Copy(member, root, member, member+1) })
}

// directBroadcast gives every member the first one's value of the part.
func directBroadcast(members []int, p part) phase {
	return fromFirst(members, func(b *Builder, root, member int) { send(b, (*Builder).Copy, root, member, p) })
}

// fromFirst adds one step between the first member and each other, all at once.
func fromFirst(members []int, step func(b *Builder, root, member int)) phase {
	return phase{rounds: min(1, len(members)-1), steps: len(members) - 1, emit: func(b *Builder, _ int) {
		for _, member := range members[1:] {
			step(b, members[0], member)
		}
	}}
}
