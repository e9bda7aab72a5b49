// Package network says when messages arrive and kernels end: it models contention on the links of a
// [topology.Topology], on the DMA engines by which a PE sends, on the vector units by which it reduces, and on the
// memories and units of the SIPs that run kernels, and reports completions as events of a [sim.Engine].
//
// # Model
//
// A message first waits, first in first out, for one of its sender's DMA engines. Then it is a fluid flow that
// occupies all links of its path at the same time (cut-through), at a rate in bytes per second that is its max-min
// fair share: nobody's rate can be raised without lowering that of somebody who has no more. No rate exceeds that of
// the narrowest link of the path, nor that of the DMA engine; this is the flow's peak. When the last byte has left,
// the engine and the links are free, and the message arrives after the DMA's set-up time plus the latencies of the
// links. A device that stores and forwards cuts the path: the message is a flow up to there, and once it has arrived
// as a whole, a new flow from there, which needs no DMA engine.
//
// Alone on its path a message takes [Network.Uncontended]: alpha, plus bytes over peak rounded to a picosecond for
// each flow.
//
// A switch that multicasts or reduces takes part in a message of several PEs ([Network.Multicast],
// [Network.ReduceInSwitch]): one flow over all their links to it and from it, each of which carries the bytes once, at the
// rate that the slowest of them leaves.
//
// # Kernels
//
// A kernel is a program of a whole SIP: so many bytes of memory traffic and so many operations of one unit. It is two
// flows at once, which know nothing of each other, and ends when both have ended: alone, when the longer has (the
// roofline). One goes over all memories of the SIP, in equal parts and at the same rate, and takes of both
// directions of each memory, which has one bus. It shares them with the messages and copies that start or end there; as
// these use one memory and the kernel all, the busiest memory sets the kernel's pace. The other flow has the unit for
// itself or shares it evenly, in time, with the other kernels that compute there: matrix units are one unit, whatever
// the elements are, and vector units another. Messages are not slower for what is computed meanwhile, and the
// reductions of [Network.Reduce] take nothing from kernels.
//
// A kernel that idles has no flow: it only takes time.
//
// A copy between a SIP and its host is a message over the host's link and cube 0's memory, without DMA engine.
//
// # Faults
//
// From one instant to the next a link may have less bandwidth than the topology gives it, also for what is on its way; a
// SIP may take longer for kernels and reductions; a link may lose all messages that have not arrived; and a SIP may be
// cut off, so that messages from and to it are lost, but not those that pass its port. What is lost uses the links of
// its path as ever. Nobody sends it again, or by another way, and its sender and its receiver are told nothing.
//
// # Method
//
// A link whose flows could all go at their peaks at once constrains nobody. Only when the peaks add up to more than
// the bandwidth (the link is contended) are rates computed, once for each instant at which flows came or went and
// after all of these. They are those of progressive filling, and made of the last ones: from links whose flows are new to
// others, as far as rates change. See maxmin.go. Links that cannot be full before others are full are left out altogether:
// see slack.go.
//
// The flows that share links have one event together, for the first of them to finish.
//
// A flow that has all its links to itself, which is the common case in collectives, is no more than a reservation:
// its end is known at the start, one event delivers it, and the reservation lapses by itself. It is made a member of
// its links, with an event for its departure, when another flow needs one of them earlier.
//
// # Numbers
//
// Times are whole picoseconds, work is whole picobytes, rates are binary fractions of bytes per second; sums of
// these are exact. So results do not depend on the order in which simultaneous flows were added, nor on how a
// processor rounds.
package network
