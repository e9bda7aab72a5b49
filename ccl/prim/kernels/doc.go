// Package kernels has collectives written as device programs over [prim]: worked examples for authors, and what the
// Schedules of the same algorithms in package ccl are compared with, bit for bit.
//
// The kernels push: a rank puts its data into a slot of the receiver and signals. A [Comm] has the slots and the
// words, and may be used for any number of calls: words count calls, so they need no clearing, and each call begins
// with a Sync of all ranks, so that no slot is written while a slow rank may still read what the last call left there.
// The kernels are right even when deliveries are reordered.
//
// Beside the messages of the algorithm a call takes that Sync: one signal's way and its wait.
package kernels
