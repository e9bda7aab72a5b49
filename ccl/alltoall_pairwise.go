package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allToAllPairwise takes n-1 rounds, in each of which a rank sends one block and receives one: no block travels twice,
// and no rank has to receive two at a time.
func allToAllPairwise() Algorithm {
	return plan{
		collective: collective.AllToAll,
		name:       "pairwise",
		inTurn:     true,
		steps:      func(l Layout, _ int) phase { return pairwiseExchange(l.World) },
	}
}
