package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// broadcastBinomial doubles the number of ranks that have the vector in each of ⌈log2 n⌉ rounds.
func broadcastBinomial() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "binomial",
		shape:      oneChunk,
		inTurn:     true,
		steps:      func(l Layout, _ int) phase { return binomialBroadcast(l.fromRoot(), part{{0, 1}}) },
	}
}
