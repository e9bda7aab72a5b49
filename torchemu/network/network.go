package network

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Sink is told that a message has arrived, or that a kernel has ended. It may start others.
type Sink interface {
	Delivered(now sim.Time, token uint64)
}

// Events of the network have the highest priority but one: rates are computed after everything else that happens at
// an instant, so that flows that come and go at the same time count as simultaneous.
const (
	flowPriority sim.Priority = 0
	ratePriority sim.Priority = 255
)

// Network holds the messages in flight. It is not safe for use by several goroutines.
type Network struct {
	engine   *sim.Engine
	topology *topology.Topology

	dma       topology.DMA
	reduction pace
	compute   [units]uint64 // operations per second of a SIP
	vectors   []sim.Time    // when the vector unit of each device is free

	paths    map[ends]PathID
	lanes    map[lane]PathID
	ways     []way // both, in the order of their first use
	segments []segment
	route    []int32 // the links of all segments, end to end; see links
	linkOf   []int32 // by topology.LinkID: its index in links, or none

	flows    []flow
	freeFlow int32

	sources  []source
	queued   []waiting
	freeSeat int32 // first of queued that is free, or none
	sourceOf map[topology.DeviceID]int32
	engines  []sim.Time // when each DMA engine of each source is free; busy while that is not known

	sips     []sip // nil before the first kernel
	pairs    []pair
	freePair int32

	products    []product
	freeProduct int32
	copyLinks   map[[2]int]int32 // by the SIPs at the ends

	sets    map[string]PathID // what switches multicast and reduce, by the PEs at both sides
	portsOf map[int]ports     // by SIP

	damaged bool         // a link was dropped or a SIP halted
	halted  map[int]bool // by SIP
	slowed  bool         // a SIP was slowed

	watch *watch // nil: nobody

	fold topology.Fold // nil: every SIP stands for itself

	uncounted bool // some segment has carried bytes that its links do not know of

	holds  []hold // of the links that some path uses, in the order of their first use
	links  []link
	slacks []slack
	sharing
}

// none ends lists and marks what is absent.
const none = -1

// busy is when a link or DMA engine is free that is in use for a time that is not known yet.
const busy sim.Time = 1<<63 - 1

// New returns an idle network over t whose events e runs.
func New(e *sim.Engine, t *topology.Topology) *Network {
	n := &Network{
		engine:      e,
		topology:    t,
		dma:         t.DMA(),
		reduction:   pace{rate: uint64(t.ReduceRate())},
		compute:     computeRates(t),
		vectors:     make([]sim.Time, t.NumDevices()),
		paths:       make(map[ends]PathID),
		linkOf:      make([]int32, t.NumLinks()),
		freeFlow:    none,
		freePair:    none,
		freeProduct: none,
		freeSeat:    none,
		sourceOf:    make(map[topology.DeviceID]int32),
		sharing:     sharing{departures: departures{planned: busy}, filling: filling{shift: mostShift}},
	}
	for i := range n.linkOf {
		n.linkOf[i] = none
	}
	return n
}

// Topology is what the network is over.
func (n *Network) Topology() *topology.Topology { return n.topology }

// Send starts a message of the given number of bytes (0 or more) along p. When it has arrived, s.Delivered is called
// with the token. A message without bytes needs no DMA engine and no link: it arrives after [Network.Alpha].
func (n *Network) Send(p PathID, bytes int64, s Sink, token uint64) {
	now := n.engine.Now()
	if bytes <= 0 {
		n.engine.At(now+n.Alpha(p), flowPriority, (*delivery)(n), uint64(n.newFlow(int32(p), bytes, s, token)))
		return
	}
	src := n.segments[p].source
	engine := n.freeEngine(src, now)
	if engine == none {
		n.enqueue(src, waiting{sink: s, token: token, bytes: bytes, segment: int32(p)})
		return
	}
	f := n.newFlow(int32(p), bytes, s, token)
	n.flows[f].engine = engine
	n.begin(f, now)
}

// Reduce makes the vector unit of a PE combine operands to a result of the given number of bytes (0 or more), after all
// that it was given before. When that is done, h handles it, with the argument arg.
func (n *Network) Reduce(pe topology.DeviceID, bytes int64, h sim.Handler, arg uint64) {
	if bytes < 0 {
		panicNegative(bytes)
	}
	pe = n.standing(pe)
	took := n.ReduceTime(bytes)
	if n.slowed {
		took = n.sip(pe).slower(took)
	}
	done := max(n.engine.Now(), n.vectors[pe]) + took
	n.vectors[pe] = done
	if n.watch != nil {
		n.watch.Reduced(pe, bytes, done-took, done)
	}
	n.engine.At(done, flowPriority, h, arg)
}

// ReduceTime is how long a vector unit that no fault slows takes to make a result of the given number of bytes.
func (n *Network) ReduceTime(bytes int64) sim.Time {
	return n.reduction.time(bytes, 1)
}

// Alpha is what a message along p takes beside its transmission: DMA set-up and latencies.
func (n *Network) Alpha(p PathID) sim.Time {
	alpha := sim.Time(0)
	for i := int32(p); ; i++ {
		alpha += n.segments[i].latency
		if !n.segments[i].more {
			return alpha
		}
	}
}

// Uncontended is how long [Network.Send] takes on an idle network: exactly.
func (n *Network) Uncontended(p PathID, bytes int64) sim.Time {
	total := n.Alpha(p)
	for i := int32(p); ; i++ {
		total += n.segments[i].peak.time(bytes, n.segments[i].lanes)
		if !n.segments[i].more {
			return total
		}
	}
}

// LinkBytes is how many bytes of messages and host copies a link has carried so far. They count in full from the start
// of their flow.
func (n *Network) LinkBytes(l topology.LinkID) int64 {
	if n.uncounted {
		n.count()
	}
	if i := n.linkOf[l]; i != none {
		return n.slacks[i].carried
	}
	return 0
}

// count hands the bytes that segments have carried on to their links. Messages only add to their segment, which
// takes one addition however long the path is.
func (n *Network) count() {
	for i := range n.segments {
		s := &n.segments[i]
		if s.kernel {
			continue
		}
		for _, l := range n.route[s.first:s.last] {
			n.slacks[l].carried += s.carried
		}
		s.carried = 0
	}
	n.uncounted = false
}

// panicNegative is apart so that those who check stay small.
func panicNegative(bytes int64) {
	panic(fmt.Sprintf("network: %d bytes; there can only be 0 or more", bytes))
}
