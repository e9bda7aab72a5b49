package ccl

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// run is one launch in flight. Its slices are kept from one launch of a schedule to the next: a step allocates
// nothing and looks nothing up by key, because a ring of 1024 ranks has two million of them.
type run struct {
	wiring   *wiring
	executor *Executor
	network  *network.Network
	launch   Launch
	watcher  Watcher

	steps     []Step // of the schedule, as are the next two
	edges     []Edge
	edgeStart []uint32
	next      []uint32 // of wiring

	waits   []waits             // what each step still waits for
	paths   []network.PathID    // along each of wiring.pairs
	devices []topology.DeviceID // those that paths are for
	volumes volumes             // elements that each step moves
	sizes   [2]int64            // bytes of an element that is not, that is a partial sum
	partial []partial           // which steps move partial sums; nil when that makes no difference
	left    []uint32            // steps that each rank has yet to see complete
	joined  []bool              // ranks that have come to this launch
	joining []uint32            // ranks that came at this instant
	held    [][]uint32          // steps that arrived at a rank before it joined; nil until there is one
	done    []uint32            // completed steps whose successors have not been told; and turns, see settle
	times   []StepTimes         // nil without an observer
	absent  int                 // ranks that have not joined
	running int                 // ranks that are not done

	apart  []uint32 // by group, the members that have not joined
	begins sim.Time // what the launch takes before its first step
}

// combination is the event that a step's value has been reduced.
type combination run

// prepare makes the run ready for a launch.
func (r *run) prepare(l Launch) {
	s := l.Schedule
	r.waits = append(r.waits[:0], r.wiring.waits...)
	r.left = append(r.left[:0], r.wiring.steps...)
	r.joined = append(r.joined[:0], make([]bool, s.World)...)
	r.running, r.absent = s.World, s.World
	r.joining = r.joining[:0]
	r.steps, r.edges, r.edgeStart, r.next = s.Steps, s.Edges, s.EdgeStart, r.wiring.next
	r.volumes.fit(&l)
	r.sizes = [2]int64{int64(l.ElemSize), int64(l.PartialSize)}
	r.partial = nil
	if l.PartialSize != l.ElemSize && s.Collective.Reduces() {
		r.partial = s.stages()
	}
	r.times = nil
	if l.Observer != nil {
		r.times = make([]StepTimes, len(s.Steps))
	}
	r.launch = l
	r.findPaths(l.Devices)
	r.begins = r.start()
	r.apart = r.apart[:0]
	for _, members := range s.Groups {
		r.apart = append(r.apart, uint32(len(members)))
	}
}

// findPaths resolves the paths, unless the last launch had the same devices.
func (r *run) findPaths(devices []topology.DeviceID) {
	if r.devices != nil && slices.Equal(r.devices, devices) {
		return
	}
	r.devices = append(r.devices[:0], devices...)
	r.paths = r.paths[:0]
	for _, p := range r.wiring.pairs {
		r.paths = append(r.paths, r.launch.Schedule.path(r.network, p, devices))
	}
}

// Join lets a rank join the launch at a time that is not past.
func (r *run) Join(rank int, at sim.Time) {
	r.executor.engine.At(at+r.begins, joinPriority, r, uint64(rank))
}

// start is what the launch takes before its first step. No protocol of a transport carries what a switch does: only a
// library's time to begin a call is that of its large ones.
func (r *run) start() sim.Time {
	switch {
	case r.launch.Elems == 0:
		return 0
	case r.inLibrary():
		l := r.launch
		l.Carriage = Carriage{Protocol: topology.Simple, ByProtocol: true}
		return sim.Time(newCall(r.executor.topology, l).start())
	}
	return sim.Time(r.executor.topology.Engines().Collective)
}

// Handle is the moment at which a rank joins, or, with the argument begin, at which those that joined begin.
func (r *run) Handle(now sim.Time, rank uint64) {
	if rank == begin {
		if r.running == 0 {
			return // the last ranks to join found all that was sent to them, and the launch ended with that
		}
		r.sendFirst(now)
	} else {
		r.join(uint32(rank), now)
	}
	r.settle(now)
}

const begin = 1 << 32 // no rank

func (r *run) join(rank uint32, now sim.Time) {
	r.joined[rank] = true
	r.absent--
	r.occupy(int(rank), r.network.Occupy)
	if r.left[rank] == 0 {
		r.rankDone(int(rank), now)
		return
	}
	if r.held != nil {
		for _, i := range r.held[rank] {
			r.open(i, GateCombine, now)
		}
		r.held[rank] = r.held[rank][:0]
	}
	if len(r.joining) == 0 {
		r.executor.engine.At(now, beginPriority, r, begin)
	}
	r.joining = append(r.joining, rank)
}

// sendFirst sends what waits for nothing but the ranks that have just joined. It goes in the order of the schedule,
// not rank by rank: so what is sent and arrives at one instant is reduced in this order, alike at all ranks.
func (r *run) sendFirst(now sim.Time) {
	for _, i := range r.firstSteps() {
		r.send(i, now)
	}
	r.joining = r.joining[:0]
}

func (r *run) firstSteps() []uint32 {
	if len(r.joining) == len(r.joined) && len(r.apart) == 0 {
		return r.wiring.first
	}
	var steps []uint32
	for _, rank := range r.joining {
		steps = append(steps, r.wiring.firstOf(rank)...)
		if len(r.apart) > 0 {
			steps = r.joinGroups(rank, steps)
		}
	}
	slices.Sort(steps)
	return steps
}

// Delivered takes the network's word that a step's message is through.
func (r *run) Delivered(now sim.Time, step uint64) {
	if i := uint32(step); r.arrive(i, now) {
		r.release(i, now)
	}
	if len(r.done) > 0 || r.running == 0 {
		r.settle(now)
	}
}

// Handle completes a step.
func (c *combination) Handle(now sim.Time, step uint64) {
	r := (*run)(c)
	r.release(uint32(step), now)
	if len(r.done) > 0 || r.running == 0 {
		r.settle(now)
	}
}

// send starts the transfer of a step whose value is there. Its source has joined: either it did just now, or the
// value was made at it, which only happens after it joined.
func (r *run) send(i uint32, now sim.Time) {
	step := &r.steps[i]
	bytes := r.bytes(i, step, partial.sent)
	if r.times != nil {
		r.times[i].Start, r.times[i].Bytes = now, bytes
	}
	if bytes > 0 && step.crosses() {
		r.network.Send(r.paths[r.wiring.pair[i]], bytes, r, uint64(i))
	} else if r.arrive(i, now) {
		r.done = append(r.done, i)
	}
}

// bytes is the size of the value that a step sends or makes.
func (r *run) bytes(i uint32, step *Step, which func(partial) int) int64 {
	elems := r.volumes.of(i, step)
	if r.partial == nil {
		return elems * r.sizes[0]
	}
	return elems * r.sizes[which(r.partial[i])]
}

// arrive takes a message in, when its destination has a buffer for it: not before that rank joined. The result says
// whether the step is complete, as with countArrival.
func (r *run) arrive(i uint32, now sim.Time) bool {
	if r.times != nil {
		r.times[i].Arrived = now
	}
	if r.next != nil && r.next[i] != 0 {
		r.done = append(r.done, r.next[i]|turn)
	}
	if r.absent > 0 && !r.joined[r.steps[i].Dst] {
		r.hold(i)
		return false
	}
	return r.countArrival(i, now)
}

func (r *run) hold(i uint32) {
	if r.held == nil {
		r.held = make([][]uint32, len(r.joined))
	}
	dst := r.steps[i].Dst
	r.held[dst] = append(r.held[dst], i)
}

// countArrival notes that one of those is there that are to be combined.
func (r *run) countArrival(i uint32, now sim.Time) bool {
	r.waits[i].combine--
	return r.waits[i].combine == 0 && r.combine(i, now)
}

// combine puts a value that arrived together with the local operand, if it is to be reduced; if not, it is complete.
func (r *run) combine(i uint32, now sim.Time) bool {
	if r.times != nil {
		r.times[i].Combine = now
	}
	step := &r.steps[i]
	if step.Kind != Reduce {
		return true
	}
	bytes := r.bytes(i, step, partial.made)
	if bytes > 0 {
		r.network.Reduce(r.devices[step.Dst], bytes, (*combination)(r), uint64(i))
	}
	return bytes == 0
}

// This bit in the list of what is done tells a step whose turn it is to be sent from one that is complete.
const turn = 1 << 31

// settle tells all that has happened to all that waits for it, and ends the run after the last rank. Steps without
// bytes complete one another at once, in chains as long as the schedule: hence a list and no recursion.
func (r *run) settle(now sim.Time) {
	for k := 0; k < len(r.done); k++ {
		if i := r.done[k]; i&turn != 0 {
			r.open(i&^turn, GateSend, now)
		} else {
			r.release(i, now)
		}
	}
	r.done = r.done[:0]
	if r.running == 0 {
		r.watcher, r.launch.Observer = nil, nil
		r.executor.give(r)
	}
}

// release opens the gates that a completed step holds back.
func (r *run) release(i uint32, now sim.Time) {
	if r.times != nil {
		r.times[i].End = now
		r.launch.Observer.StepDone(int(i), r.times[i])
	}
	for _, e := range r.edges[r.edgeStart[i]:r.edgeStart[i+1]] {
		r.open(uint32(e.To()), e.Gate(), now)
	}
	step := &r.steps[i]
	if step.Kind.inSwitch() {
		for _, member := range r.launch.Schedule.Groups[step.Group] {
			r.countDown(member, now)
		}
		return
	}
	r.countDown(step.Src, now)
	if step.Dst != step.Src {
		r.countDown(step.Dst, now)
	}
}

// open tells a step that one of the things is there that its gate waits for.
func (r *run) open(i uint32, g Gate, now sim.Time) {
	if g == GateCombine {
		if r.countArrival(i, now) {
			r.done = append(r.done, i)
		}
		return
	}
	if r.waits[i].send--; r.waits[i].send == 0 {
		r.send(i, now)
	}
}

func (r *run) countDown(rank int32, now sim.Time) {
	if r.left[rank]--; r.left[rank] == 0 {
		r.rankDone(int(rank), now)
	}
}

func (r *run) rankDone(rank int, now sim.Time) {
	r.running--
	r.occupy(rank, r.network.Vacate)
	r.watcher.RankDone(rank, now)
}

// occupy tells the network that a rank's units are at work on the launch, or no more, where the topology says what that
// takes from products.
func (r *run) occupy(rank int, tell func(topology.DeviceID)) {
	if r.executor.topology.Engines().Products > 0 || r.inLibrary() {
		tell(r.launch.Devices[rank])
	}
}
