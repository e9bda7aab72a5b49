package ccl

// allToAllBruck takes ⌈log2 n⌉ rounds of one message a rank. A block travels as often as its way has bits, so this is
// for small ones.
func allToAllBruck() Algorithm {
	return plan{
		collective: AllToAll,
		name:       "bruck",
		steps:      func(l Layout, _ int) phase { return bruckExchange(l.World) },
	}
}
