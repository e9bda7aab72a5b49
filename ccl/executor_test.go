package ccl_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// A record is what an Observer sees.
type record struct {
	steps []ccl.StepTimes
	order []int // as they completed
}

func (r *record) StepDone(step int, t ccl.StepTimes) {
	r.steps[step] = t
	r.order = append(r.order, step)
}

// observe runs one launch alone, from time 0.
func observe(t *topology.Topology, l ccl.Launch) (*record, finished) {
	r := &record{steps: make([]ccl.StepTimes, len(l.Schedule.Steps))}
	l.Observer = r
	f := newFabric(t)
	done := make(finished, l.Schedule.World)
	f.executor.Start(l, done)
	f.engine.Run(1 << 40)
	return r, done
}

// preset is one of the topologies in the binary.
func preset(tb testing.TB, name string) *topology.Topology {
	tb.Helper()
	t, err := topology.Load(name)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// layoutOf is what a process group would know of the first PEs of a topology.
func layoutOf(t *topology.Topology) ccl.Layout {
	l := ccl.Layout{World: t.SIPs()}
	l.W, l.H = t.Grid()
	if t.Nodes() > 1 {
		for s := range t.SIPs() {
			l.Group = append(l.Group, t.Device(t.PE(s, 0, 0)).Node)
		}
	}
	return l
}

// eachLaunch calls f for all algorithms on all presets, with vectors from nothing to megabytes of float32.
func eachLaunch(t *testing.T, f func(name string, topo *topology.Topology, l ccl.Launch)) {
	for _, p := range topology.Presets() {
		topo := preset(t, p)
		if topo.Transport() != nil {
			continue // TestEveryStepIsReportedOnce
		}
		layout := layoutOf(topo)
		for _, a := range pointToPoint() {
			for _, elems := range []int{0, 1, layout.World + 1, 1 << 10, 100_003, 1 << 20} {
				elems *= max(1, blocksOf(a.Collective(), layout.World))
				name := fmt.Sprintf("%s %s on %s, %d elements", a.Collective(), a.Name(), p, elems)
				f(name, topo, launch(a.Build(layout, 4*int64(elems)), elems, 4, firstPEs(topo)))
			}
		}
	}
}

// bytesOf is what a step sends, when blocks are equal.
func bytesOf(l ccl.Launch, step ccl.Step) int64 {
	elems := l.Elems
	if l.Schedule.Collective == collective.AllToAll {
		elems /= l.Schedule.World
	}
	total := 0
	for place := step.Lo; place < step.Hi; place++ {
		lo, hi := l.Schedule.Span(l.Schedule.Chunk(place), elems)
		total += hi - lo
	}
	return int64(total) * int64(l.ElemSize)
}

func TestStepsKeepTheirOrder(t *testing.T) {
	eachLaunch(t, func(name string, topo *topology.Topology, l ccl.Launch) {
		if l.Elems > 1<<15 {
			return
		}
		for r := range l.Schedule.World { // half of them early, half of them late
			l.Ready = append(l.Ready, sim.Time(r%2)*3*sim.Microsecond)
		}
		seen, done := observe(topo, l)
		if err := keepsOrder(l, seen, done); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
}

// keepsOrder checks what the model promises of every step, and of every rank.
func keepsOrder(l ccl.Launch, seen *record, done finished) error {
	s := l.Schedule
	if len(seen.order) != len(s.Steps) {
		return fmt.Errorf("%d of %d steps were done", len(seen.order), len(s.Steps))
	}
	last := slices.Clone(l.Ready)
	turn := map[[2]int32]sim.Time{} // when what each rank sent last, to whom, has arrived
	for i, step := range s.Steps {
		at := seen.steps[i]
		if at.Start < l.Ready[step.Src] || at.Arrived < at.Start || at.Combine < max(at.Arrived, l.Ready[step.Dst]) || at.End < at.Combine {
			return fmt.Errorf("step %d has times %+v, its ranks were ready at %v and %v", i, at, l.Ready[step.Src], l.Ready[step.Dst])
		}
		if at.Bytes != bytesOf(l, step) {
			return fmt.Errorf("step %d sent %d bytes, want %d", i, at.Bytes, bytesOf(l, step))
		}
		if at.Bytes == 0 && at.Start != at.Arrived {
			return fmt.Errorf("step %d sent nothing, and took until %v", i, at.Arrived)
		}
		inSwitch := step.Kind == ccl.Multicast || step.Kind == ccl.ReduceInSwitch
		if (s.InTurn || s.Queued) && (inSwitch || step.Src != step.Dst) {
			queue := [2]int32{step.Src, step.Dst}
			switch {
			case s.InTurn:
				queue[1] = -1
			case inSwitch:
				queue[1] = -2 - 2*int32(step.Group) - int32(step.Kind-ccl.Multicast)
			}
			if at.Start < turn[queue] {
				return fmt.Errorf("step %d started at %v, rank %d's turn came at %v", i, at.Start, step.Src, turn[queue])
			}
			turn[queue] = at.Arrived
		}
		ranks := []int32{step.Src, step.Dst}
		if inSwitch {
			ranks = s.Groups[step.Group]
		}
		for _, r := range ranks {
			if last[r] = max(last[r], at.End); inSwitch && at.Start < l.Ready[r] {
				return fmt.Errorf("step %d started at %v, rank %d was ready at %v", i, at.Start, r, l.Ready[r])
			}
		}
		for _, e := range s.Edges[s.EdgeStart[i]:s.EdgeStart[i+1]] {
			to := seen.steps[e.To()]
			if e.Gate() == ccl.GateSend && to.Start < at.End || e.Gate() == ccl.GateCombine && to.Combine < at.End {
				return fmt.Errorf("step %d did not wait for step %d", e.To(), i)
			}
		}
	}
	if !slices.Equal(last, done) {
		return fmt.Errorf("ranks were done at %v, want %v", done, last)
	}
	return nil
}

// Read the values off the edges alone, in the order in which the steps happened to complete: whatever the links do, the
// bits are Evaluate's.
func TestTimingNeverChangesBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	slow := system(t, "{count: 6, connect: ring, link: {bandwidth: 0.5, latency: 1}}")
	fast := system(t, "{count: 6, connect: fully_connected, link: {bandwidth: 900, latency: 5000}}")
	for _, a := range pointToPoint(collective.AllReduce, collective.Reduce) {
		const elems = 40
		v := ccl.Values{Op: tensor.Sum, DType: dtype.F16, Inputs: randomInputs(rng, dtype.F16, 6, elems)}
		s := a.Build(ccl.Layout{World: 6, Group: []int{0, 0, 0, 1, 1, 1}, Root: rng.IntN(6)}, 1<<22)
		want := evaluate(t, s, v)
		for _, topo := range []*topology.Topology{slow, fast} {
			l := launch(s, elems, 2, firstPEs(topo))
			for range 6 {
				l.Ready = append(l.Ready, sim.Time(rng.IntN(5000))*sim.Nanosecond)
			}
			seen, _ := observe(topo, l)
			for r, got := range replay(s, v, seen.order) {
				if want[r] != nil && !slices.Equal(got, want[r].Bytes()) {
					t.Errorf("%s on %s: rank %d has other bits than Evaluate", a.Name(), topo.Name, r)
				}
			}
		}
	}
}

// replay carries the steps out in any order that the edges allow. Every write makes a new version of a chunk; a step
// reads the version made by the last of the steps that its gate waits for.
func replay(s *ccl.Schedule, v ccl.Values, order []int) [][]byte {
	size := v.DType.Size()
	n := len(v.Inputs[0]) / size
	type version struct {
		gate ccl.Gate
		step int
	}
	causes := make([][]version, len(s.Steps))
	for i := range s.Steps {
		for _, e := range s.Edges[s.EdgeStart[i]:s.EdgeStart[i+1]] {
			causes[e.To()] = append(causes[e.To()], version{e.Gate(), i})
		}
	}
	made := make([]map[int][]byte, len(s.Steps)) // by step and chunk
	read := func(i, rank, chunk int, gate ccl.Gate) []byte {
		lo, hi := s.Span(chunk, n)
		value := v.Inputs[rank][lo*size : hi*size]
		for _, c := range causes[i] { // in ascending order
			if made, ok := made[c.step][chunk]; ok && c.gate == gate {
				value = made
			}
		}
		return value
	}
	for _, i := range order {
		step := s.Steps[i]
		made[i] = map[int][]byte{}
		for place := step.Lo; place < step.Hi; place++ {
			c := s.Chunk(place)
			value := slices.Clone(read(i, int(step.Src), c, ccl.GateSend))
			if step.Kind == ccl.Reduce {
				tensor.Combine(v.Op, v.DType, value, value, read(i, int(step.Dst), c, ccl.GateCombine))
			}
			made[i][c] = value
		}
	}
	return lastVersions(s, v, made)
}

func lastVersions(s *ccl.Schedule, v ccl.Values, made []map[int][]byte) [][]byte {
	size := v.DType.Size()
	results := make([][]byte, s.World)
	for r := range results {
		results[r] = slices.Clone(v.Inputs[r])
	}
	for i, step := range s.Steps {
		for c, value := range made[i] {
			lo, _ := s.Span(c, len(v.Inputs[0])/size)
			copy(results[step.Dst][lo*size:], value)
		}
	}
	return results
}

func TestRanksWithoutWorkAreDoneWhenReady(t *testing.T) {
	topo := preset(t, "default")
	alone := launch(ringSchedule(t, 1), 100, 4, firstPEs(topo)[:1])
	empty := launch(ringSchedule(t, 4), 0, 4, firstPEs(topo))
	alone.Ready = []sim.Time{5}
	empty.Ready = []sim.Time{7, 7, 7, 7}
	for _, l := range []ccl.Launch{alone, empty} {
		if _, done := observe(topo, l); !slices.Equal(done, finished(l.Ready)) {
			t.Errorf("%d ranks, %d elements: done at %v, want %v", l.Schedule.World, l.Elems, done, l.Ready)
		}
	}
}

// Two ranks exchange halves, the first long before the second is there. What the first sent waits for the second, which
// joins, sends its half, and a reduction g later sends the sum back over the same link. From then on the two messages share
// it: of the second one's half, b-g is still to go, at half the speed. It arrives at g + 2(b-g) + a, is reduced in g, and
// the sum goes back in a+b; altogether 2a + 3b.
func TestLateRankDelaysTheOther(t *testing.T) {
	topo := preset(t, "sips2")
	devices := firstPEs(topo)
	c := costOf(topo, devices)
	l := launch(ringSchedule(t, 2), 2000, 4, devices)
	f := newFabric(topo)
	for range 2 { // nothing of the first time is left
		late := f.engine.Now() + 50*sim.Microsecond
		l.Ready = []sim.Time{f.engine.Now(), late}
		done := make(finished, 2)
		f.executor.Start(l, done)
		f.engine.Run(1 << 20)
		want := late + 2*c.a + 3*c.b(4000)
		if done[0] != want || done[1] != want {
			t.Errorf("done at %v, want %v", done, want)
		}
	}
}

// A rank whose time is not known at the start joins later, by itself.
func TestJoinLater(t *testing.T) {
	topo := preset(t, "default")
	l := launch(ringSchedule(t, 4), 4000, 4, firstPEs(topo))
	l.Ready = []sim.Time{0, 9000, 5 * sim.Microsecond, 0}
	_, want := observe(topo, l)

	f := newFabric(topo)
	got := make(finished, 4)
	l.Ready = []sim.Time{0, 9000, ccl.NotReady, 0}
	joiner := f.executor.Start(l, got)
	f.engine.Run(1 << 20)
	if slices.ContainsFunc(got, func(t sim.Time) bool { return t != 0 }) {
		t.Fatalf("ranks were done at %v without rank 2", got)
	}
	joiner.Join(2, 5*sim.Microsecond)
	f.engine.Run(1 << 20)
	if !slices.Equal(got, want) {
		t.Errorf("done at %v, want %v", got, want)
	}
}

// chained starts a second launch from the first one's RankDone.
type chained struct {
	finished
	f      *fabric
	next   ccl.Launch
	second finished
}

func (c *chained) RankDone(rank int, now sim.Time) {
	c.finished.RankDone(rank, now)
	if rank == 0 {
		c.f.executor.Start(c.next, c.second)
	}
}

func TestWatcherStartsAnotherLaunch(t *testing.T) {
	topo := preset(t, "default")
	l := launch(ringSchedule(t, 4), 4000, 4, firstPEs(topo))
	f := newFabric(topo)
	c := &chained{finished: make(finished, 4), f: f, next: l, second: make(finished, 4)}
	f.executor.Start(l, c)
	f.engine.Run(1 << 20)
	for r := range c.finished { // a symmetric ring: all ranks are done at once
		if c.second[r] != 2*c.finished[r] || c.second[r] == 0 {
			t.Errorf("rank %d was done at %v, then at %v", r, c.finished[r], c.second[r])
		}
	}
}

func TestSameRunsSameTimes(t *testing.T) {
	topo := preset(t, "nodes2x8")
	for _, a := range pointToPoint() {
		build := func() ccl.Launch { return launch(a.Build(layoutOf(topo), 1<<22), 1<<20, 4, firstPEs(topo)) }
		first, _ := observe(topo, build())
		second, _ := observe(topo, build())
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s %s: two runs of one launch took other times", a.Collective(), a.Name())
		}
	}
}

// The memory of a run is used again, for whatever comes next.
func TestRunsLeaveNothingBehind(t *testing.T) {
	topo := preset(t, "nodes2x8")
	a, err := ccl.Lookup(collective.AllReduce, "two_shot")
	if err != nil {
		t.Fatal(err)
	}
	s := a.Build(ccl.Layout{World: 16}, 0)
	launches := []ccl.Launch{launch(s, 1<<12, 2, firstPEs(topo))}
	vary := func(change func(l *ccl.Launch)) {
		l := launches[0]
		change(&l)
		launches = append(launches, l)
	}
	vary(func(l *ccl.Launch) { l.Elems = 77 })
	vary(func(l *ccl.Launch) { l.PartialSize = 4 })
	vary(func(l *ccl.Launch) { l.ElemSize, l.PartialSize = 8, 8 })
	vary(func(l *ccl.Launch) { l.Devices = shuffled(l.Devices) })
	vary(func(l *ccl.Launch) { l.Ready = make([]sim.Time, 16); l.Ready[5] = sim.Second })
	vary(func(l *ccl.Launch) { l.Observer = &record{steps: make([]ccl.StepTimes, len(s.Steps))} })
	vary(func(*ccl.Launch) {})
	f := newFabric(topo)
	for range 2 {
		for i, l := range launches {
			if got, want := f.time(l), newFabric(topo).time(l); got != want {
				t.Errorf("launch %d took %v after others, %v alone", i, got, want)
			}
		}
	}
}

// A launch may end at the moment at which its last rank joins, when all that is sent to that rank has arrived before. Two
// launches that are in flight at once afterwards are two all the same.
func TestALaunchThatEndsWhenItsLastRankJoins(t *testing.T) {
	topo := preset(t, "default")
	a, err := ccl.Lookup(collective.Broadcast, "direct")
	if err != nil {
		t.Fatal(err)
	}
	l := launch(a.Build(ccl.Layout{World: 3}, 0), 9, 8, firstPEs(topo)[:3])
	alone := newFabric(topo).time(l)

	f := newFabric(topo)
	late := l
	late.Ready = []sim.Time{0, 0, sim.Millisecond}
	done := make(finished, 3)
	f.executor.Start(late, done)
	f.engine.Run(1 << 20)
	if done[2] != sim.Millisecond {
		t.Fatalf("the late rank was done at %v, want %v", done[2], sim.Millisecond)
	}
	first, second := make(finished, 3), make(finished, 3)
	f.executor.Start(l, first)
	then := l
	then.Ready = slices.Repeat([]sim.Time{3 * sim.Millisecond}, 3)
	f.executor.Start(then, second)
	f.engine.Run(1 << 20)
	if want := sim.Millisecond + alone; slices.Max(first) != want {
		t.Errorf("the first launch was done at %v, want %v", first, want)
	}
	if want := 3*sim.Millisecond + alone; slices.Max(second) != want {
		t.Errorf("the second launch was done at %v, want %v", second, want)
	}
}

func shuffled(devices []topology.DeviceID) []topology.DeviceID {
	list := slices.Clone(devices)
	rand.New(rand.NewPCG(9, 1)).Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	return list
}

// Messages arrive at rank 0 at one instant, when some ranks have yet to join. They are reduced in the schedule's order,
// not in that of ranks.
func TestTiesGoByTheSchedule(t *testing.T) {
	topo := system(t, "{count: 5, connect: fully_connected}")
	b := ccl.NewBuilder(collective.AllReduce, "ties", 5, 3, 1)
	for chunk, src := range []int{2, 1, 3} {
		b.Reduce(src, 0, chunk, chunk+1)
	}
	l := launch(b.Schedule(), 3000, 4, firstPEs(topo))
	l.Ready = []sim.Time{0, 0, 0, 0, sim.Second}
	seen, _ := observe(topo, l)
	for i := 1; i < 3; i++ {
		if first, second := seen.steps[i-1], seen.steps[i]; first.Arrived != second.Arrived || first.End >= second.End {
			t.Errorf("steps had times %+v, %+v: want both to arrive at once, and the first to be reduced first", first, second)
		}
	}
}

func TestDataDoesNotChangeTimes(t *testing.T) {
	topo := preset(t, "sips8")
	rng := rand.New(rand.NewPCG(7, 1))
	for _, a := range pointToPoint(collective.AllReduce) {
		l := launch(a.Build(ccl.Layout{World: 8}, 4000), 1000, 4, firstPEs(topo))
		alone := newFabric(topo).time(l)
		f := newFabric(topo)
		f.executor.Start(l, make(finished, 8))
		evaluate(t, l.Schedule, ccl.Values{DType: dtype.F32, Inputs: randomInputs(rng, dtype.F32, 8, 1000)})
		f.engine.Run(1 << 20)
		if f.engine.Now() != alone {
			t.Errorf("%s: took %v with data, %v without", a.Name(), f.engine.Now(), alone)
		}
	}
}

func TestRelabellingChangesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	complete := preset(t, "sips8")
	ring := system(t, "{count: 8, connect: ring}")
	for _, a := range pointToPoint() {
		s := a.Build(ccl.Layout{World: 8}, 1<<20)
		compare := func(t *testing.T, topo *topology.Topology, relabel func([]topology.DeviceID)) {
			l := launch(s, 1<<18, 4, firstPEs(topo))
			want, _ := observe(topo, l)
			relabel(l.Devices)
			if got, _ := observe(topo, l); !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s on %v devices %v: steps took other times", a.Collective(), a.Name(), topo.Name, l.Devices)
			}
		}
		compare(t, complete, func(d []topology.DeviceID) {
			rng.Shuffle(len(d), func(i, k int) { d[i], d[k] = d[k], d[i] })
		})
		compare(t, ring, func(d []topology.DeviceID) { // by turning it
			k := 1 + rng.IntN(7)
			copy(d, append(slices.Clone(d[k:]), d[:k]...))
		})
	}
}

func TestStartRejects(t *testing.T) {
	topo := preset(t, "default")
	good := func() ccl.Launch { return launch(ringSchedule(t, 4), 8, 4, firstPEs(topo)) }
	for want, spoil := range map[string]func(l *ccl.Launch){
		"for 4 ranks names 3 devices": func(l *ccl.Launch) { l.Devices = l.Devices[:3] },
		"2 times":                     func(l *ccl.Launch) { l.Ready = make([]sim.Time, 2) },
		"-1 elements":                 func(l *ccl.Launch) { l.Elems = -1 },
		"elements of 0 bytes":         func(l *ccl.Launch) { l.ElemSize = 0 },
		"partial sums of 0":           func(l *ccl.Launch) { l.PartialSize = 0 },
		"all_gather of 9 elements": func(l *ccl.Launch) {
			a, err := ccl.Lookup(collective.AllGather, "ring")
			if err != nil {
				t.Fatal(err)
			}
			l.Schedule, l.Elems = a.Build(ccl.Layout{World: 4}, 0), 9
		},
	} {
		l := good()
		spoil(&l)
		if got := panicText(func() { newFabric(topo).executor.Start(l, finished{}) }); !strings.Contains(got, want) {
			t.Errorf("want a panic with %q, got %q", want, got)
		}
	}
}

// Steady state must not allocate: a step that did would be paid millions of times.
func TestLaunchesDoNotAllocate(t *testing.T) {
	topo := preset(t, "default")
	l := launch(ringSchedule(t, 4), 4000, 4, firstPEs(topo))
	f := newFabric(topo)
	w := make(finished, 4)
	run := func() {
		f.executor.Start(l, w)
		f.engine.Run(1 << 20)
	}
	run()
	if got := testing.AllocsPerRun(20, run); got > 2 {
		t.Errorf("%v allocations a launch, want at most 2 for %d steps", got, len(l.Schedule.Steps))
	}
}

// In a one-shot all-reduce every rank sends to every other, in a ring to one.
func TestPairs(t *testing.T) {
	for name, want := range map[string]int{"one_shot": 9 * 8, "ring": 9} {
		a, err := ccl.Lookup(collective.AllReduce, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Build(ccl.Layout{World: 9}, 1<<10).Pairs(); got != want {
			t.Errorf("%s: %d pairs, want %d", name, got, want)
		}
	}
}
