package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceBinomial halves the number of partial sums in each of ⌈log2 n⌉ rounds.
func reduceBinomial() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "binomial",
		shape:      oneChunk,
		steps:      func(l Layout, _ int) phase { return binomialReduce(l.fromRoot(), part{{0, 1}}) },
	}
}
