package ccl_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// ringOfSIPs is a system of one node whose SIPs form a ring.
func ringOfSIPs(tb testing.TB, sips int) *topology.Topology {
	return parseTopology(tb, fmt.Sprintf("name: ring\nsystem: {sips: {count: %d, connect: ring}}\n", sips))
}

func parseTopology(tb testing.TB, yaml string) *topology.Topology {
	tb.Helper()
	t, err := topology.Parse("test.yaml", []byte(yaml))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// firstPEs is the first PE of each SIP.
func firstPEs(t *topology.Topology) []topology.DeviceID {
	list := make([]topology.DeviceID, t.SIPs())
	for s := range list {
		list[s] = t.PE(s, 0, 0)
	}
	return list
}

// fabric is an idle network with an Executor.
type fabric struct {
	topology *topology.Topology
	engine   *sim.Engine
	network  *network.Network
	executor *ccl.Executor
}

func newFabric(t *topology.Topology) *fabric {
	e := sim.NewEngine()
	n := network.New(e, t)
	return &fabric{t, e, n, ccl.NewExecutor(e, n)}
}

// finished notes when each rank was done.
type finished []sim.Time

func (f finished) RankDone(rank int, now sim.Time) { f[rank] = now }

// time runs one launch alone, and returns how long it took. The times at which ranks are ready count from its start.
func (f *fabric) time(l ccl.Launch) sim.Time {
	start := f.engine.Now()
	l.Ready = slices.Clone(l.Ready)
	for r := range l.Ready {
		l.Ready[r] += start
	}
	f.executor.Start(l, make(finished, l.Schedule.World))
	for f.engine.Step() {
	}
	return f.engine.Now() - start
}

// BenchmarkAllReduceTiming is the timing of a ring all-reduce of float32, without its data.
func BenchmarkAllReduceTiming(b *testing.B) {
	for _, c := range []struct{ world, bytes int }{{8, 4 << 10}, {8, 16 << 20}, {1024, 1 << 20}} {
		b.Run(fmt.Sprintf("%d×%dKiB", c.world, c.bytes>>10), func(b *testing.B) {
			t := ringOfSIPs(b, c.world)
			f := newFabric(t)
			l := launch(ringSchedule(b, c.world), c.bytes/4, 4, firstPEs(t))
			f.time(l)
			b.ResetTimer()
			for range b.N {
				f.time(l)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms")
		})
	}
}

// BenchmarkAllReduce is timing and data of a ring all-reduce of float32.
func BenchmarkAllReduce(b *testing.B) {
	for _, c := range []struct{ world, bytes int }{{8, 4 << 10}, {8, 16 << 20}, {1024, 1 << 20}} {
		b.Run(fmt.Sprintf("%d×%dKiB", c.world, c.bytes>>10), func(b *testing.B) { benchmarkAllReduce(b, c.world, c.bytes) })
	}
}

func benchmarkAllReduce(b *testing.B, world, bytes int) {
	t := ringOfSIPs(b, world)
	f := newFabric(t)
	l := launch(ringSchedule(b, world), bytes/4, 4, firstPEs(t))
	inputs := storages(b, world, bytes)
	defer releaseAll(inputs)
	v := ccl.Values{Op: tensor.Sum, DType: dtype.F32, Inputs: refill(inputs)}
	releaseAll(evaluate(b, l.Schedule, v))
	f.time(l)
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		v.Inputs = refill(inputs)
		b.StartTimer()
		f.time(l)
		releaseAll(evaluate(b, l.Schedule, v))
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms")
}

// BenchmarkCollectives is timing and data of 64 ranks with 4 KiB each of float32, or for each other: the second and later
// times.
func BenchmarkCollectives(b *testing.B) {
	t := ringOfSIPs(b, 64)
	for _, a := range pointToPoint() {
		s := a.Build(ccl.Layout{World: 64}, 4<<10)
		sizes := slices.Repeat([]int{1024}, blocksOf(a.Collective(), 64))
		v := ccl.Values{Op: tensor.Sum, DType: dtype.F32, Inputs: make([][]byte, 64)}
		for r := range v.Inputs {
			if elems, ok := startElems(s, r, 1024, sizes); ok {
				v.Inputs[r] = make([]byte, 4*elems)
			}
		}
		b.Run(a.Collective().String()+"/"+a.Name(), func(b *testing.B) {
			f := newFabric(t)
			l := launch(s, max(1024, sum(sizes)), 4, firstPEs(t))
			f.time(l)
			for b.Loop() {
				f.time(l)
				for _, result := range evaluate(b, s, v) {
					if result != nil {
						result.Release()
					}
				}
			}
		})
	}
}

func launch(s *ccl.Schedule, elems, elemSize int, devices []topology.DeviceID) ccl.Launch {
	return ccl.Launch{Schedule: s, Elems: elems, ElemSize: elemSize, PartialSize: elemSize, Devices: devices}
}

// Ranks that do not join in together make the messages of an all_to_all come and go one by one, and each changes the
// rates of others. One op is an all_to_all of 64 ranks on a torus.
func BenchmarkRaggedAllToAll(b *testing.B) {
	f := newFabric(parseTopology(b, "name: torus\nsystem: {sips: {count: 64, connect: torus2d, w: 8, h: 8}}\n"))
	algorithm, err := ccl.Lookup(collective.AllToAll, "direct")
	if err != nil {
		b.Fatal(err)
	}
	const blocks = 64 * 64
	rng := rand.New(rand.NewPCG(1, 1))
	ready := make([]sim.Time, 64)
	for r := range ready {
		ready[r] = sim.Time(rng.Int64N(int64(2 * sim.Microsecond)))
	}
	for _, block := range []int{1, 1024} {
		b.Run(fmt.Sprint(4*block), func(b *testing.B) {
			l := ccl.Launch{
				Schedule: algorithm.Build(ccl.Layout{World: 64, W: 8, H: 8}, 4*int64(block)),
				Elems:    blocks * block, ElemSize: 4, PartialSize: 4, Devices: firstPEs(f.topology), Ready: ready,
			}
			for b.Loop() {
				f.time(l)
			}
		})
	}
}

// Ranks on a ring that come to a one-shot all_reduce one after another, as hosts do that have waited for the one before:
// every message crosses up to 32 links and shares each of them with a hundred others. One op is an all_reduce of 64 ranks.
func BenchmarkRaggedOneShot(b *testing.B) {
	f := newFabric(ringOfSIPs(b, 64))
	algorithm, err := ccl.Lookup(collective.AllReduce, "one_shot")
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	l := launch(algorithm.Build(ccl.Layout{World: 64}, 64), 16, 4, firstPEs(f.topology))
	l.Ready = make([]sim.Time, 64)
	for r := range l.Ready {
		l.Ready[r] = sim.Time(rng.Int64N(int64(10 * sim.Nanosecond)))
	}
	for b.Loop() {
		f.time(l)
	}
}
