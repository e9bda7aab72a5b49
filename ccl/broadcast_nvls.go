package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// broadcastNVLS has the root multicast the vector.
func broadcastNVLS() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       nvls,
		shape:      oneChunk,
		needs:      Switching{Multicast: true},
		steps:      func(l Layout, _ int) phase { return switchAllGather(everyRank(l.World), ofRoot(l)) },
	}
}

// ofRoot is a part for each rank: the root's is the only chunk.
func ofRoot(l Layout) []part {
	owned := make([]part, l.World)
	for r := range owned {
		if r == l.Root {
			owned[r] = part{{0, 1}}
		}
	}
	return owned
}
