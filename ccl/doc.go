// Package ccl is the collective communication library: it turns a collective, such as an all-reduce over eight ranks,
// into messages on the simulated fabric and into the very bits that those messages would leave behind.
//
// Three parts, in this order. An [Algorithm] lays the collective out as a [Schedule], with a [Builder]: pure data, which
// rank sends which chunks to whom, and what each step waits for. The Executor plays a Schedule on the network and says
// when each rank is done. Evaluate plays the same Schedule on real data. Since the order of a reduction's operands is
// part of the Schedule, the simulated times can never change the result.
//
// A new algorithm is one file, allreduce_x.go, and one line in algorithms.go; package ccltest checks whatever is listed
// there. What a collective's ranks start and end with is in collective.go.
package ccl
