// Package order says what is known to be over where: vector clocks, of everything that does things one after another.
//
// A [Moment] is a point in a lane, and a [Clock] has for each lane up to which of its moments everything is over. A
// [Line] is something that has a lane and learns: a host's program, a stream, what a process group does for a rank. What
// it knows at some time is a [Point], which another line can learn. A point may be of an operation that others have a part
// in, and that has not ended: then it says more later.
package order
