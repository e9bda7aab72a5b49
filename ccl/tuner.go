package ccl

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Tuner chooses the algorithm that a collective takes least simulated time with, by trying them: on an idle network of
// its own, with all ranks ready at once. It remembers what it chose. Like an Engine it belongs to one goroutine.
type Tuner struct {
	topology *topology.Topology
	choices  map[tunerKey]Choice
	crowded  map[crowdKey]bool // of too many pairs for a trial, whatever the size
	floors   map[floorKey]floor
	bench    *testBench // nil when it has to be made anew
}

// tunerKey is all that a choice depends on.
type tunerKey struct {
	collective      collective.Kind
	elems, elemSize int
	placement       string // layout and devices
}

// What is more than this is not tried, but named: see [Choice]. Every pair of ranks that talk to each other takes a path
// through the topology, and where messages share links, each that comes or goes changes the rates of others. A schedule is
// contended when its busiest link is occupied for longer than the longest chain of its steps takes: then a step takes up
// to a thousand times as long to simulate, in a trial as in earnest.
const (
	maxTrialBytes     = 256 << 20
	maxContendedSteps = 1 << 17
)

// maxKeptBytes is how large a schedule may be to be kept between its lower bound and its trial; others are built twice.
const maxKeptBytes = 32 << 20

// NewTuner returns a Tuner for collectives on t.
func NewTuner(t *topology.Topology) *Tuner {
	return &Tuner{
		topology: t, choices: make(map[tunerKey]Choice), crowded: make(map[crowdKey]bool), floors: make(map[floorKey]floor),
	}
}

// Choice is what the Tuner chose for a call.
type Choice struct {
	Algorithm Algorithm

	// Untried are the names of algorithms that might be faster: to simulate them takes too much memory or host time, and
	// their lower bounds do not say that they are slower.
	Untried []string
}

// Select returns the algorithm of [Tuner.Choose].
func (t *Tuner) Select(c collective.Kind, l Layout, devices []topology.DeviceID, elems, elemSize int) (Algorithm, error) {
	choice, err := t.Choose(c, l, devices, elems, elemSize)
	return choice.Algorithm, err
}

// Choose returns the fastest algorithm for a vector of elems elements (as in [Launch]) on the devices, rank by rank;
// of equally fast ones the first that [Algorithms] lists. Blocks are taken as equal; where the elements do not make equal
// ones, as larger: up to twice, so that calls with ever new sizes have choices in common. Whichever rank the root is, the
// choice is that for rank 0, as in libraries for real machines: trials for each root would take longer than they gain. The
// error says what is wrong with the arguments.
func (t *Tuner) Choose(c collective.Kind, l Layout, devices []topology.DeviceID, elems, elemSize int) (Choice, error) {
	candidates := offered(c, l)
	switch {
	case len(candidates) == 0:
		return Choice{}, fmt.Errorf("there is no algorithm for %s", c)
	case len(devices) != l.World || l.World < 1:
		return Choice{}, fmt.Errorf("%s on %d devices, but the layout is of %d ranks", c, len(devices), l.World)
	case c.Rooted() && (l.Root < 0 || l.Root >= l.World):
		return Choice{}, fmt.Errorf("%s with root %d: there are %d ranks", c, l.Root, l.World)
	case elems < 0 || elemSize < 1:
		return Choice{}, fmt.Errorf("%s of %d elements of %d bytes", c, elems, elemSize)
	}
	l.Root = 0
	if blocks := c.Blocks(l.World); blocks > 0 && elems%blocks != 0 {
		elems = blocks << bits.Len(uint(elems/blocks))
	}
	key := tunerKey{c, elems, elemSize, placementKey(l, devices)}
	choice, known := t.choices[key]
	if !known {
		choice = t.choose(candidates, trial{layout: l, placement: key.placement, launch: Launch{
			Elems: elems, ElemSize: elemSize, PartialSize: elemSize, Devices: devices,
		}})
		t.choices[key] = choice
	}
	return choice, nil
}

// placementKey is the layout and the devices as the key of a map.
func placementKey(l Layout, devices []topology.DeviceID) string {
	key := binary.AppendVarint(nil, int64(l.W))
	key = binary.AppendVarint(key, int64(l.H))
	key = strconv.AppendBool(strconv.AppendBool(key, l.Switch.Multicast), l.Switch.Reduce)
	for _, d := range devices {
		key = binary.AppendVarint(key, int64(d))
	}
	for _, g := range l.Group {
		key = binary.AppendVarint(key, int64(g))
	}
	return string(key)
}

// trial is what candidates are tried on; launch lacks the schedule.
type trial struct {
	layout    Layout
	placement string
	launch    Launch
}

// crowdKey is what the pairs of ranks that talk to each other depend on.
type crowdKey struct {
	collective           collective.Kind
	algorithm, placement string
}

// crowdKey is the contender's.
func (c *contender) crowdKey(on trial) crowdKey {
	return crowdKey{c.Collective(), c.Name(), on.placement}
}

func (t trial) bytes() int64 { return int64(t.launch.Elems) * int64(t.launch.ElemSize) }

// contender is a candidate that is worth a trial.
type contender struct {
	Algorithm
	listed    int // place in the list of algorithms
	bytes     int // of memory, about
	schedule  *Schedule
	estimated bool     // it was built once for its lower bound
	heavy     bool     // slow to simulate
	time      sim.Time // at first a lower bound
}

// compare orders by time, then by place.
func (c *contender) compare(b *contender) int {
	return cmp.Or(cmp.Compare(c.time, b.time), cmp.Compare(c.listed, b.listed))
}

// choose always turns to the candidate with the least lower bound: if that is one that was known without its schedule,
// the candidate is built for a better one, and if not it is tried. It ends when no bound beats the best time.
func (t *Tuner) choose(candidates []Algorithm, on trial) Choice {
	if on.bytes() == 0 || on.layout.World == 1 {
		return Choice{Algorithm: candidates[0]} // none takes any time
	}
	field, leftOut := t.enter(candidates, on)
	smallest, best := field[0], (*contender)(nil)
	for len(field) > 0 {
		slices.SortFunc(field, (*contender).compare)
		c := field[0]
		switch {
		case best != nil && c.compare(best) > 0:
			return chosen(best, leftOut)
		case c.heavy:
			field, leftOut = field[1:], append(leftOut, c)
		case !c.estimated:
			t.estimate(c, on)
		case best == nil && len(field) == 1 && len(leftOut) == 0:
			return Choice{Algorithm: c.Algorithm}
		default:
			field = field[1:]
			best = t.try(c, best, on)
		}
	}
	if best == nil {
		best = smallest
		best.time = never
	}
	return chosen(best, leftOut)
}

// chosen is the best contender, and those of the ones left out whose lower bounds are below its time.
func chosen(best *contender, leftOut []*contender) Choice {
	choice := Choice{Algorithm: best.Algorithm}
	for _, c := range leftOut {
		if c != best && c.compare(best) < 0 {
			choice.Untried = append(choice.Untried, c.Name())
		}
	}
	slices.Sort(choice.Untried)
	return choice
}

// enter lists the candidates by their size, and apart those that take too much memory for a trial: as long as something
// else is left.
func (t *Tuner) enter(candidates []Algorithm, on trial) (field, leftOut []*contender) {
	field = make([]*contender, len(candidates))
	for i, a := range candidates {
		field[i] = &contender{Algorithm: a, listed: i}
		t.appraise(field[i], on)
	}
	slices.SortStableFunc(field, func(a, b *contender) int { return cmp.Compare(a.bytes, b.bytes) })
	for i, c := range field {
		if i > 0 && c.bytes > maxTrialBytes {
			return field[:i], slices.Clone(field[i:])
		}
	}
	return field, nil
}

// appraise finds what is known of a candidate without its schedule: about how many bytes that would take while it is
// built and tried, whether it is crowded for certain, and a lower bound.
func (t *Tuner) appraise(c *contender, on trial) {
	const perStep, perChunkAndRank = 60, 4
	p, ok := c.Algorithm.(plan)
	if !ok {
		return // nothing: build it early
	}
	depth := p.Depth(on.layout, on.bytes())
	chunks := on.layout.World
	if p.shape != nil {
		blocks, sub := p.shape(on.layout, depth)
		chunks = blocks * sub
	}
	work := p.steps(on.layout, depth)
	c.bytes = perStep*work.steps + perChunkAndRank*chunks*on.layout.World
	c.heavy = t.isCrowded(c, work.pairs, on)
	c.time = max(sim.Time(max(work.hops, 1))*t.leastAlpha(), t.floors[floorKey{c.crowdKey(on), depth}].of(on.launch))
	if c.heavy && work.steps <= maxBoundedSteps && c.bytes <= maxTrialBytes && work.pairs*t.reach(on) <= maxExchangeHops {
		t.estimate(c, on)
	}
}

// leastAlpha is what every message takes at least: the set-up, and the latencies of the memories at both ends.
func (t *Tuner) leastAlpha() sim.Time {
	if t.topology.Transport() != nil {
		return 0
	}
	return sim.Time(t.topology.DMA().Setup + 2*t.topology.Memory().Latency)
}

// A floor is a lower bound for a schedule. It holds for longer vectors and larger elements as well, since no step moves
// less then.
type floor struct {
	elems, elemSize int
	time            sim.Time
}

// of is what the floor says about a launch.
func (f floor) of(l Launch) sim.Time {
	if l.Elems < f.elems || l.ElemSize < f.elemSize {
		return 0
	}
	return f.time
}

// floorKey is what a schedule depends on.
type floorKey struct {
	crowdKey
	depth int
}

// estimate builds a candidate's schedule for its lower bound.
func (t *Tuner) estimate(c *contender, on trial) {
	c.estimated = true
	on.launch.Schedule = t.build(c, on)
	if c.bytes <= maxKeptBytes {
		c.schedule = on.launch.Schedule
	}
	crowded := t.isCrowded(c, on.launch.Schedule.Pairs(), on)
	if c.heavy = crowded; t.topology.Transport() != nil {
		return // its protocols are other than the bounds know
	}
	if crowded {
		c.time = max(c.time, t.carries(on.launch))
		c.schedule = nil
		return
	}
	chain, busy := t.lowerBounds(on.launch)
	c.time = max(chain, busy)
	c.heavy = busy > chain && len(on.launch.Schedule.Steps) > maxContendedSteps
	key := floorKey{c.crowdKey(on), c.Depth(on.layout, on.bytes())}
	t.floors[key] = floor{on.launch.Elems, on.launch.ElemSize, c.time}
}

// maxTrialHops bounds the links on all paths of a schedule; an all-to-all, whose ranks all have something to say to each
// other, may have more.
const (
	maxTrialHops    = 1 << 19
	maxExchangeHops = 1 << 22
)

// maxBoundedSteps is how many steps a schedule may have that is built only to see that it is slower than others.
const maxBoundedSteps = 1 << 19

// reach is about how many links a message crosses.
func (t *Tuner) reach(on trial) int {
	l := on.launch
	return len(t.topology.Route(l.Devices[0], l.Devices[len(l.Devices)/2]))
}

// isCrowded says whether more pairs of ranks talk to each other, of which there are so many, than is worth a trial.
func (t *Tuner) isCrowded(c *contender, pairs int, on trial) bool {
	key := c.crowdKey(on)
	if !t.crowded[key] {
		most := maxTrialHops
		if c.Collective().Exchanges() {
			most = maxExchangeHops
		}
		t.crowded[key] = pairs*t.reach(on) > most
	}
	return t.crowded[key]
}

// try times a contender and returns the better one of it and the best so far, if there is one.
func (t *Tuner) try(c, best *contender, on trial) *contender {
	limit := never
	if best != nil {
		limit = best.time
	}
	if c.schedule == nil {
		c.schedule = t.build(c, on)
	}
	on.launch.Schedule = c.schedule
	c.schedule = nil // may be big, and the best one is kept
	if c.time, _ = t.time(on.launch, limit); best == nil || c.compare(best) < 0 {
		return c
	}
	return best
}

// never is later than any trial ends.
const never sim.Time = 1<<63 - 1

// testBench is an idle network to try schedules on.
type testBench struct {
	engine  *sim.Engine
	network *network.Network
}

// idle returns the test bench.
func (t *Tuner) idle() *testBench {
	if t.bench == nil {
		e := sim.NewEngine()
		t.bench = &testBench{e, network.New(e, t.topology)}
	}
	return t.bench
}

// simulate is how long a launch takes; more than limit is as good as any.
func (t *Tuner) simulate(l Launch, limit sim.Time) sim.Time {
	b := t.idle()
	start := b.engine.Now()
	NewExecutor(b.engine, b.network).Start(l, ignore{})
	const events = 256
	for b.engine.Run(events) == events {
		if b.engine.Now()-start > limit {
			t.bench = nil // it is not idle
			return never
		}
	}
	return b.engine.Now() - start
}

// ignore is a Watcher that does not care.
type ignore struct{}

func (ignore) RankDone(int, sim.Time) {}
