package ccl

import "math"

// switchReduceScatter leaves member i with part i of what the switch makes of all members' inputs: each part crosses every
// member's link to the switch once, and one link from it. It sends inputs, so it can only come first in a schedule.
func switchReduceScatter(members []int, owned []part) phase {
	return bySwitch(members, owned, func(b *Builder, by, lo, hi int) { b.ReduceInSwitch(members, by, lo, hi) })
}

// switchAllGather gives every member all parts, where member i has part i: each crosses one link to the switch, and every
// member's link from it, also its sender's.
func switchAllGather(members []int, owned []part) phase {
	return bySwitch(members, owned, func(b *Builder, by, lo, hi int) { b.Multicast(by, members, lo, hi) })
}

// bySwitch adds one step of each member for the runs of its part, all at once.
func bySwitch(members []int, owned []part, step func(b *Builder, by, lo, hi int)) phase {
	if len(members) == 1 {
		return idle(0)
	}
	return phase{rounds: 1, hops: 1, steps: runs(owned), emit: func(b *Builder, _ int) {
		for i, by := range members {
			for _, s := range owned[i] {
				step(b, by, s.lo, s.hi)
			}
		}
	}}
}

// switchLatencyBytes is how much a rank's link carries in the time that a switch takes to begin with a piece, on fabrics
// whose switches work on data: some 2 µs, times 300 GB/s.
const switchLatencyBytes = 600 << 10

// switchDepth is into how many pieces to cut what goes up to a switch and down again, where a piece follows the one before
// it once that has arrived. A piece fills the links for bytes/k and then leaves them idle for a latency; the first one on
// its way up, and the last on its way down, fill half of them. This is least at k = √(bytes/switchLatencyBytes). The result
// is a power of two.
func switchDepth(l Layout, bytes int64) int {
	if l.World < 2 || bytes < 1 {
		return 1
	}
	return nearestPowerOfTwo(min(math.Sqrt(float64(bytes)/switchLatencyBytes), maxDepth))
}
