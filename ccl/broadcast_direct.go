package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// broadcastDirect sends the vector from the root straight to all others: one message of latency, n-1 times the vector
// in traffic.
func broadcastDirect() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "direct",
		shape:      oneChunk,
		steps:      func(l Layout, _ int) phase { return directBroadcast(l.fromRoot(), part{{0, 1}}) },
	}
}
