package ccl

// gatherDirect sends every block straight to the root: one message of latency, and no block travels twice.
func gatherDirect() Algorithm {
	return plan{
		collective: Gather,
		name:       "direct",
		steps:      func(l Layout, _ int) phase { return directGather(l.fromRoot()) },
	}
}
