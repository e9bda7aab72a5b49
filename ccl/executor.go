package ccl

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Launch is one collective call: a Schedule, and what it runs on.
type Launch struct {
	Schedule *Schedule
	Elems    int // elements of the whole vector: where ranks have blocks, of all blocks together
	ElemSize int // bytes

	// Sizes[b] is the elements of block b; their sum is Elems. nil: equal blocks. Only for collectives whose ranks have
	// blocks: AllGather, ReduceScatter, Gather and Scatter have one a rank, AllToAll has World², of which block
	// s·World+d goes from rank s to rank d.
	Sizes []int

	// PartialSize is the bytes that an element of a partial sum takes on the wire and in the vector unit: see
	// [PartialSize]. Inputs and final values take ElemSize.
	PartialSize int

	Devices []topology.DeviceID // Devices[r] is rank r's PE
	Ready   []sim.Time          // when rank r joins in, or NotReady. nil: all ranks at once

	Carriage Carriage // where the topology has a transport

	Observer Observer // may be nil, which costs nothing
}

// NotReady stands for the time at which a rank joins in that is not known yet: see [Joiner].
const NotReady sim.Time = -1

// Joiner lets the ranks of one Launch join in that were NotReady: each once, at a time that is not past.
type Joiner interface {
	Join(rank int, at sim.Time)
}

// Watcher is told when the ranks have done their part of one Launch.
type Watcher interface {
	// RankDone is called once a rank, when every step it sends or receives has completed. It may Start other launches.
	RankDone(rank int, now sim.Time)
}

// Observer sees every step of one Launch as it completes; for traces and tests.
type Observer interface {
	StepDone(step int, t StepTimes)
}

// StepTimes are the four moments of a step, in this order, and its size. Without a transfer Arrived equals Start, without a
// reduction End equals Combine.
type StepTimes struct {
	Start   sim.Time // the value to be sent was there: the message queued for a DMA engine
	Arrived sim.Time // the last byte was delivered
	Combine sim.Time // the local operand was there as well: the reduction queued for the vector unit
	End     sim.Time // the step was complete

	Bytes int64 // sent
}

// Executor plays Schedules on the network, in simulated time. Any number of launches may be in flight at once; they
// contend for links, DMA engines and vector units as the network has it. An Executor belongs to one Engine, and
// like it to one goroutine.
type Executor struct {
	engine   *sim.Engine
	network  *network.Network
	topology *topology.Topology
	idle     []*run // finished runs, the last finished last
}

// maxIdle bounds how many finished runs keep their memory for the next launch.
const maxIdle = 8

// NewExecutor returns an Executor whose steps use n and whose events go to e, the engine of n.
func NewExecutor(e *sim.Engine, n *network.Network) *Executor {
	return &Executor{engine: e, network: n, topology: n.Topology()}
}

// Start begins a collective. It returns at once: all that follows happens in the engine's events, the calls of w
// among them. It panics on a Launch that contradicts its Schedule. The result is for ranks that were NotReady.
func (x *Executor) Start(l Launch, w Watcher) Joiner {
	l.check()
	j := x.joiner(l, w)
	for rank := range l.Schedule.World {
		switch {
		case l.Ready == nil:
			j.Join(rank, x.engine.Now())
		case l.Ready[rank] != NotReady:
			j.Join(rank, max(x.engine.Now(), l.Ready[rank]))
		}
	}
	return j
}

// joiner is what plays a launch.
func (x *Executor) joiner(l Launch, w Watcher) Joiner {
	if x.carries(l) {
		return x.newRide(l, w)
	}
	r := x.take(l.Schedule)
	r.prepare(l)
	r.watcher = w
	return r
}

// All ranks that are ready at one instant join before the first of them sends. Both precede the network's sharing out
// of the bandwidth, which it does last.
const (
	joinPriority  sim.Priority = 0
	beginPriority sim.Priority = 1
)

func (l Launch) check() {
	world := l.Schedule.World
	if len(l.Devices) != world || (l.Ready != nil && len(l.Ready) != world) {
		panic(fmt.Sprintf("ccl: launch of %s for %d ranks names %d devices and %d times at which they are ready",
			l.Schedule.Algorithm, world, len(l.Devices), len(l.Ready)))
	}
	if l.Elems < 0 || l.ElemSize < 1 || l.PartialSize < 1 {
		panic(fmt.Sprintf("ccl: launch of %d elements of %d bytes, partial sums of %d", l.Elems, l.ElemSize, l.PartialSize))
	}
	l.checkSizes()
}

func (l Launch) checkSizes() {
	s := l.Schedule
	if l.Sizes == nil {
		if blocks := s.Collective.Blocks(s.World); blocks > 0 && l.Elems%blocks != 0 {
			panic(fmt.Sprintf("ccl: %s of %d elements cannot have %d equal blocks", s.Collective, l.Elems, blocks))
		}
		return
	}
	elems, err := s.checkSizes(l.Sizes)
	if err == nil && elems != l.Elems {
		err = fmt.Errorf("%s of %d elements got blocks of %d", s.Collective, l.Elems, elems)
	}
	if err != nil {
		panic("ccl: " + err.Error())
	}
}

// take returns a run for the schedule, preferably one that ran it before.
func (x *Executor) take(s *Schedule) *run {
	for i, r := range x.idle {
		if r.launch.Schedule == s {
			x.idle = append(x.idle[:i], x.idle[i+1:]...)
			return r
		}
	}
	return &run{executor: x, network: x.network, wiring: s.wiring()}
}

// give takes a finished run back.
func (x *Executor) give(r *run) {
	if len(x.idle) == maxIdle {
		x.idle = append(x.idle[:0], x.idle[1:]...)
	}
	x.idle = append(x.idle, r)
}
