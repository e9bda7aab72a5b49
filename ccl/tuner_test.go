package ccl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

func TestTunerChoosesTheFastest(t *testing.T) {
	for _, p := range topology.Presets() {
		topo := preset(t, p)
		if topo.Transport() != nil {
			continue // TestTunerChoosesProtocols
		}
		layout, devices := layoutOf(topo), firstPEs(topo)
		tuner := ccl.NewTuner(topo)
		for _, c := range collectives {
			layout.Root = int(c) % layout.World
			for _, elems := range []int{0, 1, 1 << 10, 100_003, 1 << 20, 1 << 24} {
				elems *= max(layout.World, blocksOf(c, layout.World))
				got, err := tuner.Select(c, layout, devices, elems, 2)
				if err != nil {
					t.Fatal(err)
				}
				want, least := fastest(topo, c, layout, devices, elems, 2)
				if got.Name() != want {
					t.Errorf("%s of %d f16 on %s: chose %s; %s takes least, %v", c, elems, p, got.Name(), want, least)
				}
			}
		}
	}
}

// The Tuner tries rooted collectives with rank 0 as the root. For the other roots that may be a little worse than the best.
func TestTunerChoosesForAllRoots(t *testing.T) {
	for _, p := range topology.Presets() {
		topo := preset(t, p)
		if topo.Transport() != nil {
			continue // TestTunerChoosesProtocols
		}
		layout, devices := layoutOf(topo), firstPEs(topo)
		tuner := ccl.NewTuner(topo)
		for _, c := range collectives {
			for layout.Root = range layout.World {
				if !c.Rooted() {
					break
				}
				elems := max(1, blocksOf(c, layout.World)) << (2 * (layout.Root % 9))
				got, err := tuner.Select(c, layout, devices, elems, 4)
				if err != nil {
					t.Fatal(err)
				}
				took := newFabric(topo).time(launch(got.Build(layout, int64(4*elems)), elems, 4, devices))
				if best, least := fastest(topo, c, layout, devices, elems, 4); took > least+least/10 {
					t.Errorf("%s of %d f32 on %s, root %d: %s takes %v, and %s only %v", c, elems, p, layout.Root, got.Name(), took, best, least)
				}
			}
		}
	}
}

// fastest tries all algorithms without thought.
func fastest(topo *topology.Topology, c collective.Kind, l ccl.Layout, devices []topology.DeviceID, elems, elemSize int) (name string, least sim.Time) {
	for _, a := range pointToPoint(c) {
		took := newFabric(topo).time(launch(a.Build(l, int64(elems*elemSize)), elems, elemSize, devices))
		if name == "" || took < least {
			name, least = a.Name(), took
		}
	}
	return name, least
}

// What suits depends on size and place, or there would be nothing to choose.
func TestTunerChoosesWithReason(t *testing.T) {
	for _, c := range []struct {
		preset string
		elems  int
		want   string
	}{
		{"sips8", 1, "one_shot"},                     // one message of latency
		{"sips16", 1 << 24, "torus_2d"},              // all four links of each SIP
		{"nodes2x8", 1 << 24, "hierarchical_direct"}, // an eighth of the vector crosses the NIC, while the rest is on the switch
		{"sips8", 1 << 24, "two_shot_staggered"},     // all seven links of each SIP, while it reduces
		{"default", 1 << 24, "bidirectional_ring"},   // both links of each SIP
	} {
		topo := preset(t, c.preset)
		got, err := ccl.NewTuner(topo).Select(collective.AllReduce, layoutOf(topo), firstPEs(topo), c.elems, 4)
		if err != nil || got.Name() != c.want {
			t.Errorf("%d elements on %s: got %v, %v, want %s", c.elems, c.preset, got, err, c.want)
		}
	}
}

// A world of thousands has algorithms with more steps than fit into memory. The Tuner must not build them.
func TestTunerLeavesHugeSchedulesAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("4,096 ranks take minutes under the race detector")
	}
	topo := ringOfSIPs(t, 4096)
	got, err := ccl.NewTuner(topo).Select(collective.AllReduce, layoutOf(topo), firstPEs(topo), 1<<10, 4)
	if err != nil {
		t.Fatal(err)
	}
	if name := got.Name(); strings.Contains(name, "ring") || strings.Contains(name, "shot") {
		t.Errorf("chose %s, which takes 16 million steps or more", name)
	}
}

func TestTunerRejects(t *testing.T) {
	topo := preset(t, "default")
	for _, c := range []struct {
		collective      collective.Kind
		world, devices  int
		elems, elemSize int
		want            string
	}{
		{9, 4, 4, 1, 4, "no algorithm for Collective(9)"},
		{collective.AllReduce, 3, 4, 1, 4, "4 devices, but the layout is of 3 ranks"},
		{collective.AllReduce, 0, 0, 1, 4, "layout is of 0 ranks"},
		{collective.AllReduce, 4, 4, -1, 4, "-1 elements"},
		{collective.Scatter, 4, 4, 4, 0, "elements of 0 bytes"},
		{collective.AllReduce, 4, 4, 1, 0, "elements of 0 bytes"},
	} {
		_, err := ccl.NewTuner(topo).Select(c.collective, ccl.Layout{World: c.world}, firstPEs(topo)[:c.devices], c.elems, c.elemSize)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want one that says %q", err, c.want)
		}
	}
}

// BenchmarkTuner is a choice that is made for the first time.
func TestTunerRejectsRoots(t *testing.T) {
	topo := preset(t, "default")
	for _, root := range []int{-1, 4} {
		for _, c := range collectives {
			_, err := ccl.NewTuner(topo).Select(c, ccl.Layout{World: 4, Root: root}, firstPEs(topo), 16, 4)
			if want := fmt.Sprintf("%s with root %d: there are 4 ranks", c, root); c.Rooted() != (err != nil) ||
				err != nil && err.Error() != want {
				t.Errorf("%s, root %d: got error %v", c, root, err)
			}
		}
	}
}

// Elements that make no equal blocks are as good as somewhat more that do.
func TestTunerTakesUnevenBlocks(t *testing.T) {
	topo := preset(t, "sips8")
	tuner := ccl.NewTuner(topo)
	for _, c := range []collective.Kind{collective.AllGather, collective.ReduceScatter, collective.Gather, collective.Scatter, collective.AllToAll} {
		blocks := blocksOf(c, 8)
		for _, elems := range [][2]int{{1, 1}, {blocks - 1, 1}, {blocks + 1, 2}, {1000*blocks - 7, 1024}, {1024*blocks + 1, 2048}} {
			got, err := tuner.Select(c, ccl.Layout{World: 8}, firstPEs(topo), elems[0], 4)
			want, err2 := tuner.Select(c, ccl.Layout{World: 8}, firstPEs(topo), elems[1]*blocks, 4)
			if err != nil || err2 != nil || got.Name() != want.Name() {
				t.Errorf("%s of %d elements: got %v, %v; of %d × %d: %v, %v", c, elems[0], got, err, blocks, elems[1], want, err2)
			}
		}
	}
}

func BenchmarkTuner(b *testing.B) {
	for _, world := range []int{8, 64, 256, 1024} {
		for _, elems := range []int{1 << 10, 1 << 22} {
			b.Run(fmt.Sprintf("%d×%dKiB", world, elems>>8), func(b *testing.B) {
				topo := ringOfSIPs(b, world)
				for b.Loop() {
					_, err := ccl.NewTuner(topo).Select(collective.AllReduce, ccl.Layout{World: world}, firstPEs(topo), elems, 4)
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// Among a thousand ranks a small vector takes few rounds: ring's two thousand are out of the question.
func TestAThousandRanksDoNotTakeTheRing(t *testing.T) {
	topo := parseTopology(t, "system: {sips: {count: 1024, connect: torus2d, w: 32, h: 32}}\n")
	a, err := ccl.NewTuner(topo).Select(collective.AllReduce, ccl.Layout{World: 1024, W: 32, H: 32}, firstPEs(topo), 64, 4)
	if err != nil || a.Name() == "ring" || a.Name() == "bidirectional_ring" {
		t.Errorf("got %v, %v", a, err)
	}
}

// With a transport the Tuner compares all algorithms by all protocols.
func TestTunerChoosesProtocols(t *testing.T) {
	topo := preset(t, "h200_8")
	layout, devices := layoutOf(topo), firstPEs(topo)
	tuner := ccl.NewTuner(topo)
	for _, c := range collectives {
		for _, elems := range []int{1, 1 << 10, 1 << 20, 1 << 24} {
			elems *= max(layout.World, blocksOf(c, layout.World))
			a, err := tuner.Select(c, layout, devices, elems, 2)
			if err != nil {
				t.Fatal(err)
			}
			l := launch(a.Build(layout, 0), elems, 2, devices)
			l.Carriage = tuner.Carriage(l)
			chosen := ccl.Repeat(topo, l, 1)
			for _, other := range pointToPoint(c) {
				for k := range topology.ProtocolKind(topology.Protocols) {
					l.Schedule, l.Carriage = other.Build(layout, 0), ccl.Carriage{Protocol: k}
					if took := ccl.Repeat(topo, l, 1); took < chosen {
						t.Errorf("%s of %d f16: chose %s, %v; %s by %s takes %v", c, elems, a.Name(), chosen, other.Name(), k, took)
					}
				}
			}
		}
	}
}

// Up to 64 ranks nothing is left out: the choice is the fastest of all.
func TestTunerChoosesTheFastestOf64(t *testing.T) {
	for _, c := range []struct {
		preset string
		world  int
		elems  int
	}{{"sips8", 34, 1 << 10}, {"sips16", 64, 1 << 8}, {"nodes2x8", 48, 1 << 12}} {
		topo := ofRanks(t, c.preset, c.world)
		devices := firstPEs(topo)[:c.world]
		layout := ccl.LayoutOf(topo, devices)
		elems := c.elems / c.world * c.world
		for _, kind := range collectives[:3] {
			got, err := ccl.NewTuner(topo).Choose(kind, layout, devices, elems, 4)
			want, least := fastest(topo, kind, layout, devices, elems, 4)
			if err != nil || got.Algorithm.Name() != want || got.Untried != nil {
				t.Errorf("%s on %s, %d ranks: got %s, %v, and did not try %v; %s takes least, %v", kind, c.preset, c.world,
					got.Algorithm.Name(), err, got.Untried, want, least)
			}
		}
	}
}

// Among hundreds of ranks direct algorithms of short vectors take too long to try, and the Tuner says so; of long ones
// their bounds say enough.
func TestTunerNamesWhatItDidNotTry(t *testing.T) {
	topo := ofRanks(t, "sips16", 256)
	devices := firstPEs(topo)
	layout := ccl.LayoutOf(topo, devices)
	tuner := ccl.NewTuner(topo)
	for elems, want := range map[int][]string{1 << 8: {"one_shot", "two_shot", "two_shot_staggered"}, 1 << 24: nil} {
		got, err := tuner.Choose(collective.AllReduce, layout, devices, elems, 4)
		if err != nil || !slices.Equal(got.Untried, want) {
			t.Errorf("%d elements: %v, did not try %v, want %v", elems, err, got.Untried, want)
		}
	}
}
