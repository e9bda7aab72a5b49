// Package replay simulates recorded jobs on any fabric: what ranks compute, send and receive, and what of that waits for
// what, from a file instead of a program.
package replay

import (
	"fmt"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// kind is what an operation does.
type kind uint8

const (
	calc kind = iota
	send
	receive

	// Those of Chakra traces.
	pause          // a time, beside others
	meetingSend    // a message that begins when both sides are there
	meetingReceive // its other side; both end when it has arrived
	group          // a rank's part of a call; the amount is its number
)

var kindNames = [...]string{calc: "calc", send: "send", receive: "recv", pause: "calc", meetingSend: "send", meetingReceive: "recv", group: "collective"}

// operation is one of a rank's.
type operation struct {
	amount int64  // of a calc picoseconds, of the others bytes
	waits  uint32 // what has to happen before it starts; a receive's message, too
	mate   uint32 // the receive that a send's message is for, or none
	rank   int32
	peer   int32
	tag    int32
	line   int32 // of the file
	unit   uint16
	kind   kind
}

// none is no operation.
const none = 1<<32 - 1

// Job is what all ranks do. It does not change, and may be played on many topologies.
type Job struct {
	file       string
	ranks      int
	operations []operation

	// What waits for operation i is edges[edgeStart[i]:edgeStart[i+1]], first all that wait for its end; those from
	// startsAt[i] on wait for its start only. nil: none wait for starts.
	edges     []uint32
	edgeStart []uint32
	startsAt  []uint32

	// Of Chakra traces: the file of each rank, the name of each operation's node, and the collectives.
	files []string
	names []string
	calls []call
}

// Ranks is how many ranks the job has.
func (j *Job) Ranks() int { return j.ranks }

// Operations is how many operations it has.
func (j *Job) Operations() int { return len(j.operations) }

// Result is when each rank ended its last operation.
type Result struct{ Ends []sim.Time }

// Last is when the last rank ended.
func (r Result) Last() sim.Time {
	last := sim.Time(0)
	for _, t := range r.Ends {
		last = max(last, t)
	}
	return last
}

// Play simulates the job, rank r on the first PE of SIP r. A calc occupies its unit of the rank for its time; a message
// takes a DMA engine and its path; a send ends when its message has arrived, and a receive when that has and the receive
// could start. The error says which operations wait for one another, when they do for ever.
func (j *Job) Play(t *topology.Topology) (Result, error) {
	if sips := t.SIPs(); j.ranks > sips {
		return Result{}, fmt.Errorf("%s has %d ranks, and topology %q only %d SIPs", j.file, j.ranks, t.Name, sips)
	}
	p := newPlayer(j, t)
	if err := p.calls.plan(); err != nil {
		return Result{}, err
	}
	for i := range p.waits {
		if p.waits[i] == 0 {
			p.start(uint32(i), 0)
		}
	}
	p.settle(0)
	for p.engine.Run(1<<20) > 0 {
	}
	if p.left > 0 {
		return Result{}, j.stuck(p.waits)
	}
	return Result{p.ends}, nil
}

// player is a job in simulated time.
type player struct {
	*Job
	engine   *sim.Engine
	network  *network.Network
	executor *ccl.Executor
	devices  []topology.DeviceID
	paths    []peerPath // by rank: to the peer that it sent to last
	waits    []uint32   // by operation
	units    map[unit]sim.Time
	calls    calls
	ends     []sim.Time
	ended    []uint32 // operations whose end nobody has been told of yet
	left     int
}

type peerPath struct {
	peer int32
	path network.PathID
}

// unit is what calculates for a rank.
type unit struct {
	rank   int32
	number uint16
}

func newPlayer(j *Job, t *topology.Topology) *player {
	e := sim.NewEngine()
	p := &player{
		Job: j, engine: e, network: network.New(e, t), units: map[unit]sim.Time{}, ends: make([]sim.Time, j.ranks),
		left: len(j.operations), waits: make([]uint32, len(j.operations)), paths: make([]peerPath, j.ranks),
	}
	p.executor = ccl.NewExecutor(e, p.network)
	for r := range j.ranks {
		p.devices = append(p.devices, t.PE(r, 0, 0))
		p.paths[r].peer = -1
	}
	for i := range j.operations {
		p.waits[i] = j.operations[i].waits
	}
	if len(j.calls) > 0 {
		p.calls = newCalls(p, t)
	}
	return p
}

// start begins an operation for which all is there.
func (p *player) start(i uint32, now sim.Time) {
	o := &p.operations[i]
	if p.startsAt != nil {
		for _, to := range p.edges[p.startsAt[i]:p.edgeStart[i+1]] {
			p.open(to, now)
		}
	}
	switch {
	case o.kind == receive:
		p.ended = append(p.ended, i)
	case o.kind == group:
		p.calls.join(o, i, now)
	case o.kind == meetingReceive:
		p.open(o.mate, now)
	case o.kind == meetingSend && o.peer != o.rank:
		m := ccl.Message{From: p.devices[o.rank], To: p.devices[o.peer], Elems: int(o.amount), ElemSize: 1}
		p.executor.Send(m, p, uint64(i))
	case o.kind == send && o.peer != o.rank:
		p.network.Send(p.path(o), o.amount, p, uint64(i))
	case o.amount == 0 || o.kind == send || o.kind == meetingSend:
		p.ended = append(p.ended, i)
	case o.kind == pause:
		p.engine.At(now+sim.Time(o.amount), 0, p, uint64(i))
	default:
		at := unit{o.rank, o.unit}
		end := max(now, p.units[at]) + sim.Time(o.amount)
		p.units[at] = end
		p.engine.At(end, 0, p, uint64(i))
	}
}

func (p *player) path(o *operation) network.PathID {
	last := &p.paths[o.rank]
	if last.peer != o.peer {
		*last = peerPath{o.peer, p.network.Path(p.devices[o.rank], p.devices[o.peer])}
	}
	return last.path
}

// Delivered ends a send.
func (p *player) Delivered(now sim.Time, i uint64) { p.Handle(now, i) }

// Handle ends a calc or a send.
func (p *player) Handle(now sim.Time, i uint64) {
	p.ended = append(p.ended, uint32(i))
	p.settle(now)
}

// settle tells all that waits for what has ended. Operations without time end one another at once, in chains as long as
// the job: hence a list and no recursion.
func (p *player) settle(now sim.Time) {
	for k := 0; k < len(p.ended); k++ {
		i := p.ended[k]
		o := &p.operations[i]
		p.left--
		p.ends[o.rank] = max(p.ends[o.rank], now)
		switch {
		case o.kind == meetingSend:
			p.ended = append(p.ended, o.mate)
		case o.kind == send && o.mate != none:
			p.open(o.mate, now)
		}
		end := p.edgeStart[i+1]
		if p.startsAt != nil {
			end = p.startsAt[i]
		}
		for _, to := range p.edges[p.edgeStart[i]:end] {
			p.open(to, now)
		}
	}
	p.ended = p.ended[:0]
}

// open tells an operation that one of the things is there that it waits for.
func (p *player) open(i uint32, now sim.Time) {
	if p.waits[i]--; p.waits[i] == 0 {
		p.start(i, now)
	}
}
