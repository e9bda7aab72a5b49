package ccl_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// unevenSizes are sizes of blocks of which some are empty.
func unevenSizes(rng *rand.Rand, c collective.Kind, world int) []int {
	sizes := make([]int, blocksOf(c, world))
	for b := range sizes {
		sizes[b] = max(0, rng.IntN(30_000)-10_000)
	}
	return sizes
}

// withSizes is a launch of float32 blocks of those sizes.
func withSizes(s *ccl.Schedule, sizes []int, devices []topology.DeviceID) ccl.Launch {
	l := launch(s, sum(sizes), 4, devices)
	l.Sizes = sizes
	return l
}

// unevenBytes is what each step sends: it follows every block on its way, and names it s·World+d in an AllToAll. Of the
// Sub chunks of a block the first ones are the longer.
func unevenBytes(s *ccl.Schedule, sizes []int) []int64 {
	at := make([]map[int]int, s.World) // which block is where
	for r := range at {
		at[r] = map[int]int{}
		for c := range s.Chunks() {
			at[r][c] = c / s.Sub
			if s.Collective == collective.AllToAll {
				at[r][c] = r*s.World + (r+c/s.Sub)%s.World
			}
		}
	}
	bytes := make([]int64, len(s.Steps))
	for k, lo := range s.Rounds {
		hi := uint32(len(s.Steps))
		if k+1 < len(s.Rounds) {
			hi = s.Rounds[k+1]
		}
		before := make([]map[int]int, s.World)
		for r := range at {
			before[r] = map[int]int{}
			for c, b := range at[r] {
				before[r][c] = b
			}
		}
		for i := lo; i < hi; i++ {
			step := s.Steps[i]
			for place := step.Lo; place < step.Hi; place++ {
				c := s.Chunk(place)
				bytes[i] += 4 * int64((sizes[before[step.Src][c]]+s.Sub-1-c%s.Sub)/s.Sub)
				at[step.Dst][c] = before[step.Src][c]
			}
		}
	}
	return bytes
}

// Every link must have carried what the steps over it sent, whatever the sizes of the blocks.
func TestUnevenBlocksCrossLinks(t *testing.T) {
	const seed = 12
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, preset0 := range []string{"sips8", "nodes2x8"} {
		topo := preset(t, preset0)
		for _, a := range pointToPoint() {
			if blocksOf(a.Collective(), 2) == 0 {
				continue
			}
			layout := layoutOf(topo)
			layout.Root = rng.IntN(layout.World)
			s := a.Build(layout, 1<<20)
			l := withSizes(s, unevenSizes(rng, a.Collective(), layout.World), firstPEs(topo))
			f := newFabric(topo)
			f.time(l)
			want := make([]int64, topo.NumLinks())
			for i, bytes := range unevenBytes(s, l.Sizes) {
				if step := s.Steps[i]; step.Src != step.Dst {
					for _, id := range topo.Route(l.Devices[step.Src], l.Devices[step.Dst]) {
						want[id] += bytes
					}
				}
			}
			for id, bytes := range want {
				if got := f.network.LinkBytes(topology.LinkID(id)); got != bytes {
					t.Errorf("seed %d: %s %s on %s: link %s carried %d bytes, want %d",
						seed, a.Collective(), a.Name(), preset0, topo.LinkName(topology.LinkID(id)), got, bytes)
				}
			}
		}
	}
}

// Equal blocks take the same time whether their sizes are given or not.
func TestEqualSizesMakeNoDifference(t *testing.T) {
	topo := preset(t, "sips8")
	for _, a := range pointToPoint() {
		blocks := blocksOf(a.Collective(), 8)
		if blocks == 0 {
			continue
		}
		s := a.Build(ccl.Layout{World: 8}, 1<<20)
		even := launch(s, 1000*blocks, 4, firstPEs(topo))
		given := withSizes(s, slices.Repeat([]int{1000}, blocks), firstPEs(topo))
		want, _ := observe(topo, even)
		if got, _ := observe(topo, given); !reflect.DeepEqual(got, want) {
			t.Errorf("%s %s: steps took other times", a.Collective(), a.Name())
		}
		f := newFabric(topo)
		before := f.time(even)
		other := withSizes(s, slices.Repeat([]int{1, 0}, blocks/2), firstPEs(topo))
		f.time(other)
		other.Sizes[0], other.Sizes[1] = 0, 1 // a caller may use the slice again
		f.time(other)
		if got := f.time(even); got != before {
			t.Errorf("%s %s: took %v after other sizes, %v before", a.Collective(), a.Name(), got, before)
		}
	}
}

// Where everyone reaches everyone, a rank of a pairwise exchange sends its blocks one after another, undisturbed; those
// without elements take no time. A rank is done when it has sent and received all.
func TestUnevenPairwiseTimes(t *testing.T) {
	const seed = 13
	rng := rand.New(rand.NewPCG(seed, 1))
	system := system(t, "{count: 8, connect: fully_connected}")
	devices := firstPEs(system)
	c := costOf(system, devices)
	a, err := ccl.Lookup(collective.AllToAll, "pairwise")
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		sizes := unevenSizes(rng, collective.AllToAll, 8)
		want := make(finished, 8)
		for src := range 8 {
			now := sim.Time(0)
			for far := 1; far < 8; far++ {
				dst := (src + far) % 8
				if n := sizes[src*8+dst]; n > 0 {
					now += c.a + c.b(4*int64(n))
				}
				want[src], want[dst] = max(want[src], now), max(want[dst], now)
			}
		}
		_, got := observe(system, withSizes(a.Build(ccl.Layout{World: 8}, 0), sizes, devices))
		if !slices.Equal(got, want) {
			t.Errorf("seed %d, sizes %v: done at %v, want %v", seed, sizes, got, want)
		}
	}
}

// Blocks that are all empty take no time, however many of them wait for one another.
func TestEmptyBlocksTakeNoTime(t *testing.T) {
	topo := ringOfSIPs(t, 64)
	for _, a := range pointToPoint() {
		l := withSizes(a.Build(ccl.Layout{World: 64}, 0), make([]int, blocksOf(a.Collective(), 64)), firstPEs(topo))
		if len(l.Sizes) == 0 {
			l.Sizes = nil
		}
		if took := newFabric(topo).time(l); took != 0 {
			t.Errorf("%s %s: took %v", a.Collective(), a.Name(), took)
		}
	}
}

func TestStartRejectsSizes(t *testing.T) {
	topo := preset(t, "default")
	for _, c := range []struct {
		collective collective.Kind
		elems      int
		sizes      []int
		want       string
	}{
		{collective.AllReduce, 4, []int{1, 1, 1, 1}, "all_reduce takes no sizes"},
		{collective.Broadcast, 4, []int{}, "broadcast takes no sizes"},
		{collective.AllGather, 3, []int{1, 1, 1}, "all_gather of 4 ranks has 4 blocks, but got the sizes of 3"},
		{collective.AllToAll, 4, []int{1, 1, 1, 1}, "all_to_all of 4 ranks has 16 blocks, but got the sizes of 4"},
		{collective.Scatter, 3, []int{1, 1, -1, 2}, "scatter: the size of block 2 is -1 elements"},
		{collective.Gather, 5, []int{1, 1, 1, 1}, "gather of 5 elements got blocks of 4"},
		{collective.Gather, 5, nil, "gather of 5 elements cannot have 4 equal blocks"},
		{collective.AllToAll, 20, nil, "all_to_all of 20 elements cannot have 16 equal blocks"},
	} {
		l := launch(ccl.Algorithms(c.collective)[0].Build(ccl.Layout{World: 4}, 0), c.elems, 4, firstPEs(topo))
		l.Sizes = c.sizes
		if got := panicText(func() { newFabric(topo).executor.Start(l, finished{}) }); !strings.Contains(got, c.want) {
			t.Errorf("%s: want a panic with %q, got %q", c.collective, c.want, got)
		}
	}
}

// In a schedule sent in turn no two messages of a rank overlap in time, even where nothing else holds the second back.
func TestTurnsDoNotOverlap(t *testing.T) {
	topo := preset(t, "nodes2x8")
	for _, a := range pointToPoint() {
		layout := layoutOf(topo)
		l := launch(a.Build(layout, 1<<22), 1<<20, 4, firstPEs(topo))
		seen, _ := observe(topo, l)
		busy := make([]sim.Time, layout.World)
		overlap := false
		for i, step := range l.Schedule.Steps {
			if step.Src != step.Dst {
				overlap = overlap || seen.steps[i].Start < busy[step.Src]
				busy[step.Src] = seen.steps[i].Arrived
			}
		}
		if l.Schedule.InTurn && overlap {
			t.Errorf("%s %s: messages of one rank overlap", a.Collective(), a.Name())
		}
		if direct := a.Name() == "direct" && a.Collective() == collective.AllToAll; direct && (l.Schedule.InTurn || !overlap) {
			t.Error("a direct exchange sends one message after another")
		}
	}
}
