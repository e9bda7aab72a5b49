package ccl

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// A lower bound above the true time would hide the best algorithm. Where nothing is shared the bound is the time.
func TestLowerBounds(t *testing.T) {
	for _, preset := range topology.Presets() {
		topo, err := topology.Load(preset)
		if err != nil {
			t.Fatal(err)
		}
		if topo.Transport() != nil {
			continue // the bounds are not for that
		}
		var devices []topology.DeviceID
		for s := range topo.SIPs() {
			devices = append(devices, topo.PE(s, 0, 0))
		}
		tuner := NewTuner(topo)
		for _, c := range []collective.Kind{collective.AllReduce, collective.AllGather, collective.ReduceScatter} {
			for _, a := range offered(c, Layout{World: len(devices)}) {
				for _, elems := range []int{16, 1 << 10, 1 << 20} {
					s := a.Build(Layout{World: len(devices)}, 4*int64(elems))
					l := Launch{Schedule: s, Elems: elems, ElemSize: 4, PartialSize: 4, Devices: devices}
					chain, busy := tuner.lowerBounds(l)
					took := tuner.simulate(l, never)
					if max(chain, busy) > took {
						t.Errorf("%s %s on %s, %d elements: bounds %v, %v, took %v", c, a.Name(), preset, elems, chain, busy, took)
					}
					alone := a.Name() == "ring" && topo.Nodes() == 1 || a.Name() == "two_shot" && preset == "sips8"
					if alone && chain != took {
						t.Errorf("%s %s on %s, %d elements: bound %v, took %v", c, a.Name(), preset, elems, chain, took)
					}
				}
			}
		}
	}
}

func TestSimulateGivesUp(t *testing.T) {
	topo, err := topology.Load("default")
	if err != nil {
		t.Fatal(err)
	}
	tuner := NewTuner(topo)
	devices := []topology.DeviceID{topo.PE(0, 0, 0), topo.PE(1, 0, 0), topo.PE(2, 0, 0), topo.PE(3, 0, 0)}
	l := Launch{Schedule: allReduceDoubleBinaryTree().Build(Layout{World: 4}, 1<<24), Elems: 1 << 22, ElemSize: 4, PartialSize: 4, Devices: devices}
	took := tuner.simulate(l, never)
	if got := tuner.simulate(l, took/2); got != never {
		t.Errorf("took %v, which is more than the limit %v", got, took/2)
	}
	if got := tuner.simulate(l, took); got != took {
		t.Errorf("took %v after a trial that was given up, %v before", got, took)
	}
}

// What is said of algorithms before they are built must hold: no chunk gets through with fewer messages, there are no
// fewer pairs, and what bounds a vector bounds a longer one of larger elements.
func TestWhatIsKnownBeforehandHolds(t *testing.T) {
	topo, err := topology.Parse("bare.yaml", []byte(bare))
	if err != nil {
		t.Fatal(err)
	}
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 40 {
		l := randomLayout(rng, 1+rng.IntN(16))
		for c := collective.AllReduce; len(Algorithms(c)) > 0; c++ {
			for _, a := range offered(c, l) {
				about := fmt.Sprintf("seed %d: %s %s, %+v", seed, c, a.Name(), l)
				checkForeknowledge(t, about, topo, a, l)
			}
		}
	}
}

// bare is a system in which a message takes hardly more than any message must.
const bare = `
system: {sips: {count: 16, connect: fully_connected, link: {bandwidth: 100000, latency: 0}}}
sip: {cube_mesh: {w: 1, h: 1}, noc: {bandwidth: 100000, latency: 0}, io: {bandwidth: 100000, latency: 0}}
cube: {hbm: {bandwidth: 100000, latency: 100}}
pe: {vector: {reduce_bandwidth: 100000}, dma: {bandwidth: 100000}}
`

// randomLayout draws a layout in which groups may differ in size, and may be mixed.
func randomLayout(rng *rand.Rand, world int) Layout {
	l := Layout{World: world, Root: rng.IntN(world)}
	if rng.IntN(2) == 0 {
		l.Group = make([]int, world)
		groups := 1 + rng.IntN(world)
		for r := range l.Group {
			l.Group[r] = rng.IntN(groups)
		}
	}
	if d := 1 + rng.IntN(world); world%d == 0 {
		l.W, l.H = d, world/d
	}
	return l
}

func checkForeknowledge(t *testing.T, about string, topo *topology.Topology, a Algorithm, l Layout) {
	t.Helper()
	var devices []topology.DeviceID
	for s := range l.World {
		devices = append(devices, topo.PE(s, 0, 0))
	}
	tuner := NewTuner(topo)
	floors := map[int]floor{} // by depth
	for _, size := range []struct{ elems, elemSize int }{{1, 1}, {1, 2}, {3, 2}, {1 << 10, 4}, {1 << 20, 8}} {
		elems := size.elems * max(1, a.Collective().Blocks(l.World))
		bytes := int64(elems * size.elemSize)
		depth := a.Depth(l, bytes)
		work := a.(plan).steps(l, depth)
		launch := Launch{
			Schedule: a.Build(l, bytes), Elems: elems, ElemSize: size.elemSize, PartialSize: size.elemSize, Devices: devices,
		}
		if got := launch.Schedule.Pairs(); got < work.pairs {
			t.Errorf("%s: %d pairs, at least %d were expected", about, got, work.pairs)
		}
		if l.World == 1 {
			continue
		}
		chain, busy := tuner.lowerBounds(launch)
		if least := sim.Time(work.hops) * tuner.leastAlpha(); chain < least {
			t.Errorf("%s, %+v: takes %v at least, less than %d messages: %v", about, size, chain, work.hops, least)
		}
		if f, ok := floors[depth]; ok && f.of(launch) > max(chain, busy) {
			t.Errorf("%s, %+v: takes %v at least, less than %+v", about, size, max(chain, busy), f)
		}
		floors[depth] = floor{elems, size.elemSize, max(chain, busy)}
	}
}

func TestAFloorSaysNothingAboutLess(t *testing.T) {
	f := floor{elems: 10, elemSize: 2, time: 7}
	for _, k := range []struct {
		elems, elemSize int
		want            sim.Time
	}{{10, 2, 7}, {11, 4, 7}, {9, 4, 0}, {100, 1, 0}} {
		if got := f.of(Launch{Elems: k.elems, ElemSize: k.elemSize}); got != k.want {
			t.Errorf("%d elements of %d bytes: %v, want %v", k.elems, k.elemSize, got, k.want)
		}
	}
}
