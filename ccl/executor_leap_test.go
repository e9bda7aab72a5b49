package ccl_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// script is a random program: a few launches again and again, most of them alone and from all ranks at once, and some beside
// messages, kernels, reductions and other launches, which begin at times of their own or when a rank is done. It writes
// down everything that ends.
type script struct {
	*fabric
	rng      *rand.Rand
	launches []ccl.Launch
	begun    int
	log      []string
}

// played is what a script comes to: all that ended and what links carried, and the events that it took.
func played(topo *topology.Topology, launches []ccl.Launch, seed uint64, stepwise bool) (log []string, events uint64) {
	s := &script{fabric: newFabric(topo), rng: rand.New(rand.NewPCG(seed, 1))}
	for range 4 {
		s.launches = append(s.launches, launches[s.rng.IntN(len(launches))])
	}
	s.engine.Stepwise = stepwise
	for _, a := range firstPEs(topo) { // what is used for the first time changes the network
		s.network.Kernel(a, network.Kernel{Bytes: 1, Ops: 1}, beside{s}, 0)
		for _, z := range firstPEs(topo) {
			s.network.Path(a, z)
		}
	}
	for range 80 {
		s.turn()
		s.engine.Run(1 << 30)
		s.note("idle", 0, s.engine.Now())
		for l := range topology.LinkID(topo.NumLinks()) {
			s.note("carried", int(l), sim.Time(s.network.LinkBytes(l)))
		}
	}
	return s.log, s.engine.Added()
}

func (s *script) note(what string, i int, at sim.Time) {
	s.log = append(s.log, fmt.Sprint(what, i, at))
}

// turn begins a launch, and perhaps something beside it.
func (s *script) turn() {
	start := s.engine.Now() + sim.Time(s.rng.IntN(3))*sim.Microsecond
	l := s.launches[s.rng.IntN(len(s.launches))]
	switch s.rng.IntN(8) {
	case 0: // one rank is late
		s.start(l, start, s.rng.IntN(l.Schedule.World), sim.Time(s.rng.IntN(2_000_000)), nil)
	case 1, 2: // something else happens some time
		s.start(l, start, 0, 0, nil)
		s.engine.At(start+sim.Time(s.rng.IntN(4_000_000)), 0, beside{s}, s.rng.Uint64())
	case 3: // something else happens when a rank is done
		then := s.rng.Uint64()
		s.start(l, start, 0, 0, func(now sim.Time) { beside{s}.Handle(now, then) })
	case 4: // at the same moment
		s.start(l, start, 0, 0, nil)
		s.engine.At(start, sim.Priority(s.rng.IntN(3)), beside{s}, s.rng.Uint64())
	default:
		s.start(l, start, 0, 0, nil)
	}
}

// start begins a launch, from all ranks but one at once. When half of them are done something may happen.
func (s *script) start(l ccl.Launch, at sim.Time, late int, by sim.Time, then func(now sim.Time)) {
	l.Ready = make([]sim.Time, l.Schedule.World)
	for r := range l.Ready {
		l.Ready[r] = at
	}
	l.Ready[late] += by
	s.begun++
	s.executor.Start(l, &scribe{script: s, launch: s.begun, then: then, half: l.Schedule.World / 2})
}

// scribe writes down when ranks are done.
type scribe struct {
	*script
	launch, half int
	then         func(now sim.Time)
}

func (w *scribe) RankDone(rank int, now sim.Time) {
	w.note(fmt.Sprint("launch ", w.launch, " rank "), rank, now)
	if w.half--; w.half == 0 && w.then != nil {
		w.then(now)
	}
}

// beside is what happens beside launches.
type beside struct{ *script }

func (b beside) Handle(now sim.Time, choice uint64) {
	rng := rand.New(rand.NewPCG(choice, 2))
	pes := firstPEs(b.topology)
	a, z := pes[rng.IntN(len(pes))], pes[rng.IntN(len(pes))]
	switch kind := rng.IntN(40); {
	case kind == 0:
		b.network.SlowSIP(rng.IntN(len(pes)), 1+rng.Float64())
	case kind < 8:
		b.start(b.launches[rng.IntN(len(b.launches))], now+sim.Time(rng.IntN(2)), 0, 0, nil)
	case kind < 16:
		b.network.Reduce(a, 1+rng.Int64N(1<<16), b, choice)
	case kind < 28:
		b.network.Kernel(a, network.Kernel{Bytes: rng.Int64N(1 << 20), Ops: rng.Int64N(1 << 20)}, b, choice)
	default:
		b.network.Send(b.network.Path(a, z), rng.Int64N(1<<16), b, choice)
	}
}

func (b beside) Delivered(now sim.Time, token uint64) { b.note("beside", int(token), now) }

// A run that leaps over what it knows ends as one that takes every step, whatever else goes on.
func TestLeapsChangeNothing(t *testing.T) {
	for _, yaml := range []string{
		"name: full\nsystem: {sips: {count: 18}}\n",
		"name: torus\nsystem: {sips: {count: 24, connect: torus2d, w: 6, h: 4}}\n",
		"name: nodes\nsystem: {nodes: {count: 3}, sips: {count: 18}, network: {nic: {bandwidth: 50, latency: 750}, latency: 300}}\n",
		"name: star\nsystem: {sips: {count: 20, connect: switch}}\npe: {dma: {engines: 1}}\n",
	} {
		topo := parseTopology(t, yaml)
		launches := leaping(topo)
		for seed := range uint64(4) {
			want, all := played(topo, launches, seed, true)
			got, events := played(topo, launches, seed, false)
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("%s, seed %d: %s, want %s", topo.Name, seed, got[i], want[i])
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%s, seed %d: %d ends, want %d", topo.Name, seed, len(got), len(want))
			}
			if events > all*9/10 {
				t.Errorf("%s, seed %d: %d events, of %d", topo.Name, seed, events, all)
			}
		}
	}
}

// leaping are some launches that are worth a leap.
func leaping(topo *topology.Topology) (list []ccl.Launch) {
	layout := layoutOf(topo)
	for _, a := range everyAlgorithm() {
		for _, elems := range []int{layout.World * layout.World, layout.World * layout.World * 100} {
			if s := a.Build(layout, 4*int64(elems)); len(s.Steps) >= 256 {
				list = append(list, launch(s, elems, 4, firstPEs(topo)))
			}
		}
	}
	return list
}
