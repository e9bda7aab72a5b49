// Package kernels has collectives written as device programs over [prim]: worked examples for authors, and what the
// Schedules of the same algorithms in package ccl are compared with, bit for bit.
//
// The kernels push: a rank puts its data into a slot of the receiver and signals. A [Comm] has the slots and the
// words, and may be used for any number of calls: words count calls, so they need no clearing, and each call begins
// with a Sync of all ranks, so that no slot is written while a slow rank may still read what the last call left there.
// The kernels are right even when deliveries are reordered.
//
// Beside what the Schedule's messages take, a call takes that Sync (a signal's way), and in each step of a ring at most
// three transfers of the step's data within a PE's memory: two loads and a store. Schedules have reductions read
// memory at no cost.
package kernels
