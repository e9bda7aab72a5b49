// Package prim is the hardware as a kernel's author sees it: symmetric memory, puts, signals, waits, pipes and queues,
// in simulated time and on real data. What a collective is made of when nobody has made a Schedule of it.
//
// A [Machine] has ranks; a rank has memory, and programs run on its PEs. A program is a Go function over a [Context],
// run as a coroutine: it issues operations, which take effect later, and parks when it waits. Nothing spins, so a
// wait that nothing can satisfy ends the run with a [DeadlockError] that names it.
//
// Programs in another language are driven from outside: [Machine.Advance] says whose turn it is, an operation that is not
// over leaves its program [Context.Blocked], and [Context.Compute] is an instruction whose result the driver makes.
//
// # Memory
//
// All memory has one 64-bit address space ([Addr]). A window ([Machine.Allocate]) lies at the same offset on each of
// its ranks, so that the address of a peer's copy is [Addr.On]. Windows are zeroed. Addresses are not used again
// after a window is freed: late traffic is always recognised. A PE's scratch memory has addresses too, which only its
// own program can use ([Context.Tile]).
//
// # What is ordered
//
// Operations are asynchronous. These are all the rules; where none applies, [Options.Reorder] may swap effects, and
// [Options.Check] reports accesses that conflict.
//
//   - Instructions of one pipe run one after another, each after its issue. Different pipes of a PE are ordered only
//     by [Context.SetFlag] with [Context.WaitFlag], and by [Context.PipeBarrier].
//   - A store to a peer leaves its pipe when its bytes are read; it lands later.
//   - What one PE sends to one rank lands in the order in which it was sent; with Reorder only what a
//     [Context.Fence] separates. With [Options.Fences] the checker does not count on that order either. Nothing orders what
//     is sent to different ranks, or by different PEs.
//   - After a Fence nothing lands before what the program's threads have stored anywhere ([Context.Scatter]): such stores are
//     there for whoever has been told, by anybody.
//   - The signal of a put-with-signal lands after the put's data.
//   - A put of one word is a signal to whoever waits for the word or looks at it, and so is what brings data with flags to
//     whoever takes both by one look.
//   - A look at a word ([Context.Gather]) comes after the signals that its PE has sent there.
//   - [Context.WaitOwn] returns when all that the program has sent to its own rank has landed: a fence before what it changes
//     there in place.
//   - [Context.Quiet] returns when all that the program has sent, put, got or copied has landed.
//   - A [Context.Wait] that is satisfied comes after the signals that made it so, and all that is before these: for
//     a word that was set, the last set and what was added since; for one that is only added to, all of them.
//   - An [Event] and a received message come after the operation that completes them; a message that is sent into
//     the same slot again after it was received.
//   - With [Task.Interlock], an instruction comes after all earlier ones that share bytes of the scratch memory with it,
//     unless both only read them.
//   - A task starts after the tasks before it on its workers and after those it was told to follow; their pipes have
//     run empty, but what they sent may still be under way. Where [Task.Known] is given, it starts after that only: a rank
//     may have several streams.
//
// # Time
//
// Times come from the topology: transfers are messages of [network.Network], with its contention; the vector pipe is
// the PE's vector unit; matrix multiplications take their operations over the PE's peak rate. Issuing takes no time.
// [Context.Test] takes the latency of the memory, so that a loop around it sees time pass. A Quiet ends when the last
// acknowledgement is back.
//
// A rank's memory is spread over the HBM of all cubes of its SIP. What a PE loads from it or stores there, and what it
// sends, is a message from or to the HBM of the PE's own cube; so the PEs of all cubes together have the bandwidth that a
// product of the host has. Other ranks reach it at the cube of the rank's first PE.
//
// The signal of a put lands as long after the data as a DMA engine takes to be set up, for it is a packet of its own
// behind the data. Data that carry their own flags do without it: they are more bytes, and win where they are few.
package prim
