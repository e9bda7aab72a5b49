package ccl

import (
	"math"
	"math/bits"
	"slices"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// ride is one launch in flight that is carried: see DESIGN.md, Transport. A rank has one serial engine, which stands for
// all its channels. The vector goes in loops, in each of which the engine does the rank's itinerary once.
type ride struct {
	executor  *Executor
	network   *network.Network
	schedule  *Schedule
	itinerary *itinerary
	launch    Launch
	watcher   Watcher

	pairs    []carrier        // by wiring.pairs
	lanes    []network.PathID // the same
	bytes    []int64          // by step, of the whole vector
	off      []misalignment   // by step, of what it moves; nil where blocks are aligned
	arrived  []uint32         // pieces of each step, of all loops so far
	sendings []moment         // of the piece that each rank is sending
	engines  []engine
	start    sim.Time
	total    int64 // bytes of the vector
	loop     int64 // bytes of one loop
	loops    int32
	running  int
	times    []StepTimes // nil without an observer
}

// engine is how far a rank has come.
type engine struct {
	task  uint32
	loop  int32
	piece int64
	begun bool // its first operation may start
	busy  bool
	done  bool
}

// moment is what happens when a piece has left.
type moment struct {
	pair  uint32
	step  uint32
	extra sim.Time // that the engine is occupied beside the transmission
}

// The events of a ride; the argument holds the kind above, the rank or step below.
const (
	rideJoin uint64 = iota << 32
	rideBegin
	rideFree
	rideArrival
	rideKind uint64 = 0xffffffff << 32
)

// carries says whether a launch is carried: the topology has a transport, all ranks are on SIPs of their own, and no switch
// does their work.
func (x *Executor) carries(l Launch) bool {
	if x.topology.Transport() == nil || len(l.Schedule.Groups) > 0 {
		return false
	}
	seen := make(map[int]bool, len(l.Devices))
	for _, d := range l.Devices {
		sip := x.topology.Device(d).SIP
		if seen[sip] {
			return false
		}
		seen[sip] = true
	}
	return true
}

// newRide makes a ride ready for a launch.
func (x *Executor) newRide(l Launch, w Watcher) *ride {
	s := l.Schedule
	r := &ride{
		executor: x, network: x.network, schedule: s, itinerary: s.itinerary(), launch: l, watcher: w,
		arrived: make([]uint32, len(s.Steps)), sendings: make([]moment, s.World), engines: make([]engine, s.World),
		running: s.World, total: int64(l.Elems) * int64(l.ElemSize),
	}
	for rank := range r.engines {
		r.engines[rank].task = r.itinerary.rankStart[rank]
	}
	r.measure()
	c := newCall(x.topology, l)
	c.largest = slices.Max(append(r.bytes, 0))
	if c.aligned < 16 {
		r.findMisaligned(c)
	}
	r.findCarriers(c)
	r.start = sim.Time(c.start())
	r.loop = min(c.loop(), max(r.total, 1))
	r.loops = int32(ceilDiv(r.total, r.loop))
	if l.Observer != nil {
		r.times = make([]StepTimes, len(s.Steps))
	}
	return r
}

// measure works out what each step moves in all.
func (r *ride) measure() {
	s, l := r.schedule, &r.launch
	var v volumes
	v.fit(l)
	var stages []partial
	if l.PartialSize != l.ElemSize && s.Collective.Reduces() {
		stages = s.stages()
	}
	r.bytes = make([]int64, len(s.Steps))
	for i := range s.Steps {
		size := int64(l.ElemSize)
		if stages != nil && stages[i].sent() == 1 {
			size = int64(l.PartialSize)
		}
		r.bytes[i] = v.of(uint32(i), &s.Steps[i]) * size
	}
}

// findMisaligned works out which steps move blocks that do not begin at multiples of 16 bytes. Messages between pairs
// are all taken for that: one that its sender has in place is not in its receiver's.
func (r *ride) findMisaligned(c *call) {
	s := r.schedule
	r.off = make([]misalignment, len(s.Steps))
	whole := s.cut(r.launch.Elems, r.launch.Sizes)
	for i := range s.Steps {
		place := int64(c.aligned)
		if !c.pairwise() {
			lo, _ := whole.chunk(s.Chunk(s.Steps[i].Lo))
			place = int64(lo) * int64(r.launch.ElemSize)
		}
		r.off[i] = misalignmentOf(place)
	}
}

// findCarriers works out how data moves between each pair of ranks.
func (r *ride) findCarriers(c *call) {
	pairs, devices := r.schedule.wiring().pairs, r.launch.Devices
	most := make([]int64, len(pairs))
	for i, k := range r.schedule.wiring().pair {
		if step := &r.schedule.Steps[i]; step.Src != step.Dst {
			most[k] = max(most[k], r.bytes[i])
		}
	}
	peers := make([]int, r.schedule.World) // that each rank sends anything to
	for k, p := range pairs {
		if most[k] > 0 {
			peers[p.src]++
		}
	}
	for k, p := range pairs {
		link := c.transport.SIP
		if t := r.executor.topology; t.Device(devices[p.src]).Node != t.Device(devices[p.dst]).Node {
			link = c.transport.Network
		}
		narrowest := r.network.Narrowest(devices[p.src], devices[p.dst])
		one := c.carrier(link, narrowest, most[k], peers[p.src])
		r.pairs = append(r.pairs, one)
		r.lanes = append(r.lanes, r.network.Lane(devices[p.src], devices[p.dst], one.wireRate()))
	}
}

// Join lets a rank join the launch at a time that is not past.
func (r *ride) Join(rank int, at sim.Time) {
	r.executor.engine.At(at, joinPriority, r, rideJoin|uint64(rank))
}

// Handle is a rank's joining or beginning, the end of what occupied an engine, or the arrival of a piece.
func (r *ride) Handle(now sim.Time, arg uint64) {
	which := uint32(arg)
	switch arg & rideKind {
	case rideJoin:
		r.join(which, now)
	case rideBegin:
		r.engines[which].begun = true
		r.network.Occupy(r.launch.Devices[which])
		r.advance(which, now)
	case rideFree:
		r.free(which, now)
	case rideArrival:
		r.arrive(which, now)
	}
}

// join lets a rank begin after the time that a call takes to start; at once when there is nothing to move.
func (r *ride) join(rank uint32, now sim.Time) {
	if r.total == 0 || r.schedule.World == 1 {
		r.finish(rank, now)
		return
	}
	r.executor.engine.At(now+r.start, beginPriority, r, rideBegin|uint64(rank))
}

// Delivered takes the network's word that the last byte of the piece has left that a rank was sending.
func (r *ride) Delivered(now sim.Time, rank uint64) {
	m := r.sendings[rank]
	if m.extra > 0 {
		r.executor.engine.At(now+m.extra, joinPriority, r, rideFree|rank)
	}
	hop := sim.Time(r.pairs[m.pair].hop)
	r.executor.engine.At(now+m.extra+hop, joinPriority, r, rideArrival|uint64(m.step))
	if m.extra == 0 {
		r.free(uint32(rank), now)
	}
}

// arrive counts a piece of a step.
func (r *ride) arrive(step uint32, now sim.Time) {
	r.arrived[step]++
	if r.times != nil {
		r.times[step].Arrived, r.times[step].Combine = now, now
		if !r.itinerary.kept[step] && r.arrived[step] == r.piecesUpTo(step, r.loops) {
			r.stepDone(step, now)
		}
	}
	r.advance(uint32(r.schedule.Steps[step].Dst), now)
}

// stepDone tells the observer of a step.
func (r *ride) stepDone(step uint32, now sim.Time) {
	t := &r.times[step]
	t.End = now
	r.launch.Observer.StepDone(int(step), *t)
	t.End = told
}

// told marks the times of a step that the observer knows of.
const told sim.Time = -1

// tellRest tells the observer, in the end, of the steps that had nothing to move.
func (r *ride) tellRest(now sim.Time) {
	for i := range r.times {
		if t := &r.times[i]; t.End != told {
			*t = StepTimes{Start: now, Arrived: now, Combine: now}
			r.stepDone(uint32(i), now)
		}
	}
}

// free ends what occupied an engine.
func (r *ride) free(rank uint32, now sim.Time) {
	e := &r.engines[rank]
	e.busy = false
	e.piece++
	if t := &r.itinerary.tasks[e.task]; t.receipt && r.times != nil && e.loop == r.loops-1 &&
		e.piece == min(2, r.pieces(t.step, e.loop)) {
		r.stepDone(t.step, now)
	}
	r.advance(rank, now)
}

// advance starts what a rank's engine can do next.
func (r *ride) advance(rank uint32, now sim.Time) {
	e := &r.engines[rank]
	for e.begun && !e.busy && !e.done {
		if e.task == r.itinerary.rankStart[rank+1] {
			e.task, e.loop = r.itinerary.rankStart[rank], e.loop+1
		}
		if e.loop >= r.loops || e.task == r.itinerary.rankStart[rank+1] {
			r.finish(rank, now)
			return
		}
		t := &r.itinerary.tasks[e.task]
		pieces := r.pieces(t.step, e.loop)
		if e.piece >= pieces || t.receipt && e.piece > 1 {
			e.task, e.piece = e.task+1, 0
			continue
		}
		if !r.ready(t, e, pieces) {
			return
		}
		e.busy = true
		r.do(rank, t, pieces, now)
	}
}

// ready says whether what the engine's next piece is made of has arrived. A receipt begins with the first piece; it ends
// with the last one, which takes no time of its own.
func (r *ride) ready(t *task, e *engine, pieces int64) bool {
	of := e.piece + 1
	if t.receipt && e.piece > 0 {
		of = pieces
	}
	for _, step := range r.itinerary.needs[t.first:t.end] {
		need := uint32(ceilDiv(of*r.pieces(step, e.loop), pieces))
		if r.arrived[step] < r.piecesUpTo(step, e.loop)+need {
			return false
		}
	}
	return true
}

// do occupies a rank's engine with a piece.
func (r *ride) do(rank uint32, t *task, pieces int64, now sim.Time) {
	e, pair := &r.engines[rank], r.schedule.wiring().pair[t.step]
	c, bytes := &r.pairs[pair], r.part(t.step, e.loop)
	if t.receipt {
		took := sim.Time(0)
		if e.piece == 0 {
			took = c.finishing(bytes, e.loop, r.where(t.step))
		}
		r.executor.engine.At(now+took, joinPriority, r, rideFree|uint64(rank))
		return
	}
	bytes = bytes*(e.piece+1)/pieces - bytes*e.piece/pieces
	r.sendings[rank] = moment{pair, t.step, sim.Time(c.op + c.off.piece(bytes, r.where(t.step)))}
	if r.times != nil && e.loop == 0 && e.piece == 0 {
		r.times[t.step].Start, r.times[t.step].Bytes = now, r.bytes[t.step]
	}
	wire := int64(max(1, math.Round(float64(bytes)*c.wire)))
	r.network.SendOn(r.lanes[pair], wire, r, uint64(rank))
}

// where is where the block begins that a step moves.
func (r *ride) where(step uint32) misalignment {
	if r.off == nil {
		return aligned
	}
	return r.off[step]
}

// finishing is how long a rank takes for bytes that it does not send on.
func (c *carrier) finishing(bytes int64, loop int32, where misalignment) sim.Time {
	took := float64(min(bytes, c.finishes)) * c.finish
	if loop > 0 {
		took *= c.next
	}
	if where != aligned {
		took += float64(bytes) * c.off.kept
	}
	return sim.Time(math.Round(took))
}

// part is how many bytes a step moves in a loop.
func (r *ride) part(step uint32, loop int32) int64 {
	lo := int64(loop) * r.loop
	return r.upTo(step, min(lo+r.loop, r.total)) - r.upTo(step, lo)
}

// upTo is how many bytes a step moves of the first so many of the vector.
func (r *ride) upTo(step uint32, of int64) int64 {
	if of == r.total {
		return r.bytes[step]
	}
	hi, lo := bits.Mul64(uint64(r.bytes[step]), uint64(of))
	part, _ := bits.Div64(hi, lo, uint64(r.total))
	return int64(part)
}

// pieces is how many pieces a step is sent in in a loop. All loops but the last are alike.
func (r *ride) pieces(step uint32, loop int32) int64 {
	if loop < r.loops-1 {
		loop = 0
	}
	return r.pairs[r.schedule.wiring().pair[step]].pieces(r.part(step, loop))
}

// piecesUpTo is how many pieces a step is sent in before a loop.
func (r *ride) piecesUpTo(step uint32, loop int32) uint32 {
	if loop == 0 {
		return 0
	}
	n := int64(loop) * r.pieces(step, 0)
	if loop == r.loops {
		n += r.pieces(step, r.loops-1) - r.pieces(step, 0)
	}
	return uint32(n)
}

// finish ends a rank's part.
func (r *ride) finish(rank uint32, now sim.Time) {
	r.engines[rank].done = true
	if r.engines[rank].begun {
		r.network.Vacate(r.launch.Devices[rank])
	}
	if r.running--; r.running == 0 && r.times != nil {
		r.tellRest(now)
	}
	r.watcher.RankDone(int(rank), now)
}
