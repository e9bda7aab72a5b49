package ccl

import (
	"math"
	"slices"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Programs call the same collectives again and again. When one begins with all ranks at once, on a network where nothing else
// is under way, the same will happen as the last time, up to the moment at which the first rank has done its part: before
// that nobody else can do anything, unless something else was pending. So the simulation leaps to just before that moment.
// What follows is simulated, because whoever hears of the first rank may use the network meanwhile.
//
// The first call of a kind is timed, the second keeps what the network and the run are before that moment, and the third
// leaps. The decision is made a picosecond after the beginning: until then those who wait for the same moment may act.

// knowledge is what an Executor knows of launches that leap, the last used last.
type knowledge struct{ kinds []*kind }

// maxKinds bounds the launches that an Executor knows, and with maxLeapSteps their memory: a Still has tens of bytes a
// step.
const (
	maxKinds     = 32
	minLeapSteps = 256
	maxLeapSteps = 1 << 14
)

// kind is launches that go alike.
type kind struct {
	leapKey
	first sim.Time // from the beginning until a rank has done its part; 0 when that is not known
	still *network.Still
	waits []waits // of the run, at the same moment
	left  []uint32
}

// leapKey is what decides how a launch goes that has the network to itself.
type leapKey struct {
	schedule                     *Schedule
	elems, elemSize, partialSize int
	devices                      string
	version                      network.Version
}

// leap is how a run comes to one.
type leap struct {
	key     leapKey // without a schedule: it does not
	start   sim.Time
	others  int // events of others that are pending
	own     int // messages that began at once
	next    sim.Time
	kind    *kind
	tally   []int64
	keeping bool
}

// isAlone says whether a launch that is to begin now has all ranks and the network to itself, and is worth a leap.
func (r *run) isAlone() bool {
	steps := len(r.steps)
	return len(r.joining) == len(r.joined) && minLeapSteps <= steps && steps <= maxLeapSteps &&
		r.launch.Sizes == nil && r.times == nil && r.network.Rests() && !r.executor.engine.Stepwise &&
		r.executor.topology.Engines().Products == 0
}

// mayLeap prepares the decision, after the first steps were sent.
func (r *run) mayLeap(now sim.Time) {
	if r.network.InUse() == 0 || r.network.Alpha(r.paths[0]) < 2 {
		return // it may have ended by then
	}
	x := r.executor
	r.leap = leap{
		key: leapKey{
			r.launch.Schedule, r.launch.Elems, r.launch.ElemSize, r.launch.PartialSize,
			placementKey(Layout{}, r.launch.Devices), r.network.Version(),
		},
		start: now, own: r.network.InUse(),
	}
	for _, e := range x.engine.Events() {
		if !r.network.Owns(e) {
			r.leap.others++
		}
	}
	x.engine.At(now+1, joinPriority, r, leaping)
}

// tryLeap leaps, if it is known how this launch goes and nobody else can do anything meanwhile.
func (r *run) tryLeap(now sim.Time) {
	l := &r.leap
	if l.key.schedule == nil || l.start+1 != now || !r.isUndisturbed() {
		l.key.schedule = nil
		return
	}
	l.kind = r.executor.known.find(l.key)
	switch k := l.kind; {
	case k.first == 0: // to be timed
	case k.first < 3 || l.start+k.first >= l.next:
		l.key.schedule = nil
	case k.still == nil:
		l.tally, l.keeping = r.network.Tally(), true
		r.executor.engine.At(l.start+k.first-1, joinPriority, r, keeping)
	default:
		l.key.schedule = nil
		r.network.Leap(k.still, l.start, r)
		r.waits = append(r.waits[:0], k.waits...)
		r.left = append(r.left[:0], k.left...)
	}
}

// isUndisturbed says that nobody else has done anything since the launch began, and finds when somebody may.
func (r *run) isUndisturbed() bool {
	l := &r.leap
	if r.network.InUse() != l.own || r.network.Version() != l.key.version || r.running < len(r.joined) {
		return false
	}
	others := 0
	l.next = math.MaxInt64
	for _, e := range r.executor.engine.Events() {
		if !r.network.Owns(e) {
			others++
			l.next = min(l.next, e.Time)
		}
	}
	return others == l.others
}

// keepStill keeps what there is now for launches to come.
func (r *run) keepStill(now sim.Time) {
	l := &r.leap
	if !l.keeping || l.start+l.kind.first-1 != now || r.running < len(r.joined) {
		return
	}
	l.keeping, l.key.schedule = false, nil
	if l.kind.still = r.network.Still(l.start, l.tally); l.kind.still != nil {
		l.kind.waits, l.kind.left = slices.Clone(r.waits), slices.Clone(r.left)
	}
}

// noteFirst notes when the first rank has done its part.
func (r *run) noteFirst(now sim.Time) {
	l := &r.leap
	if l.kind != nil && now < l.next && l.kind.first == 0 {
		l.kind.first = now - l.start
	}
	l.key.schedule = nil
}

// find returns the kind of a launch.
func (k *knowledge) find(key leapKey) *kind {
	i := slices.IndexFunc(k.kinds, func(known *kind) bool { return known.leapKey == key })
	if i >= 0 {
		found := k.kinds[i]
		k.kinds = append(slices.Delete(k.kinds, i, i+1), found)
		return found
	}
	if len(k.kinds) == maxKinds {
		k.kinds = slices.Delete(k.kinds, 0, 1)
	}
	found := &kind{leapKey: key}
	k.kinds = append(k.kinds, found)
	return found
}
