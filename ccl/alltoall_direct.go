package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allToAllDirect sends every block straight to where it is for, all at once: for fabrics on which everyone reaches
// everyone.
func allToAllDirect() Algorithm {
	return plan{
		collective: collective.AllToAll,
		name:       "direct",
		steps:      func(l Layout, _ int) phase { return directExchange(l.World) },
	}
}
