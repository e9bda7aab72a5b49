package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allToAllBruck takes ⌈log2 n⌉ rounds of one message a rank. A block travels as often as its way has bits, so this is
// for small ones.
func allToAllBruck() Algorithm {
	return plan{
		collective: collective.AllToAll,
		name:       "bruck",
		steps:      func(l Layout, _ int) phase { return bruckExchange(l.World) },
	}
}
