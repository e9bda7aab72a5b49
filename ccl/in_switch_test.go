package ccl_test

import (
	"fmt"
	"math/rand/v2"
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

// inNetwork is SIPs at a switch that multicasts and reduces. A byte takes 10 ps on a SIP's link. %s is more keys.
const inNetworkYAML = `
name: in_network
system:
  sips: {count: %d, connect: switch, link: {bandwidth: 100, latency: 250}}
  switch: {latency: 150, in_network: {multicast: true, reduce: [sum, max]%s}}
sip: {cube_mesh: {w: 1, h: 1}, io: {bandwidth: 1000, latency: 40}}
cube: {hbm: {bandwidth: 2000, latency: 100}}
pe: {dma: {engines: 8, bandwidth: 500, setup: 300}}
`

func inNetwork(tb testing.TB, n int, more string) *topology.Topology {
	tb.Helper()
	return parseTopology(tb, fmt.Sprintf(inNetworkYAML, n, more))
}

// inNetworkAlpha is what a multicast takes beside its transmission: set-up, memory, port and link there; switch, link, port
// and memory back.
const inNetworkAlpha = (300 + 100 + 40 + 250 + 150 + 250 + 40 + 100) * sim.Nanosecond

// byNVLS is the launch of a collective of so many float32, and its layout.
func byNVLS(tb testing.TB, t *topology.Topology, c collective.Kind, elems int) ccl.Launch {
	tb.Helper()
	a, err := ccl.Lookup(c, "nvls")
	if err != nil {
		tb.Fatal(err)
	}
	l := ccl.LayoutOf(t, firstPEs(t))
	if err := ccl.Offered(a, l); err != nil {
		tb.Fatal(err)
	}
	return launch(a.Build(l, int64(elems)*4), elems, 4, firstPEs(t))
}

// How long a switch takes, with s bytes on n ranks, B the rate of a SIP's link, a the time that a piece takes beside its
// transmission and x what a reduction takes more:
//
//   - broadcast and all_gather multicast s bytes in all, which each rank gets on its one link: s/B + a.
//   - reduce and reduce_scatter reduce s bytes, which each rank sends on its one link: s/B + a + x.
//   - all_reduce does both with k pieces of each block, of p = s/(n·k) bytes. The n reductions of the first pieces share
//     the ways to the switch: n·p/B + a. Then, k-1 times, n reductions and a multicast share each of them, and n multicasts
//     and a reduction each way back: (n+1)·p/B + a. In the end there are n multicasts: n·p/B + a.
//
// For large s, when k grows as well, an all_reduce takes (1 + 1/n)·s/B, where a ring takes 2·(n-1)/n·s/B.
func TestTimesInTheSwitchEqualClosedForms(t *testing.T) {
	for _, c := range []struct {
		more string
		rate int64 // ps a byte
		x    sim.Time
	}{
		{"", 10, 0},
		{", latency: 60", 10, 60 * sim.Nanosecond},
		{", bandwidth: 50", 20, 0},
	} {
		for _, n := range []int64{2, 3, 4, 8, 16} {
			top := inNetwork(t, int(n), c.more)
			over := func(bytes int64) sim.Time { return sim.Time(bytes * c.rate) }
			for _, elems := range []int64{n, 1000 * n, 1 << 18 * n, 1 << 22 * n} {
				s := 4 * elems
				forms := map[collective.Kind]sim.Time{
					collective.Broadcast: over(s) + inNetworkAlpha, collective.AllGather: over(s) + inNetworkAlpha,
					collective.Reduce: over(s) + inNetworkAlpha + c.x, collective.ReduceScatter: over(s) + inNetworkAlpha + c.x,
				}
				k := int64(byNVLS(t, top, collective.AllReduce, int(elems)).Schedule.Sub)
				if piece := s / n / k; c.x == 0 {
					forms[collective.AllReduce] = 2*over(n*piece) + sim.Time(k-1)*over((n+1)*piece) + sim.Time(k+1)*inNetworkAlpha
				}
				for kind, want := range forms {
					if got := newFabric(top).time(byNVLS(t, top, kind, int(elems))); got != want {
						t.Errorf("%s of %d bytes on %d ranks%s, %d pieces: took %v, want %v", kind, s, n, c.more, k, got, want)
					}
				}
			}
		}
	}
}

// An all_reduce of 1 GiB on 8 ranks takes 9/8 of the time of the bytes on a link, and little more; a ring 14/8.
func TestSwitchBeatsRing(t *testing.T) {
	top := inNetwork(t, 8, "")
	const elems = 1 << 28
	once := sim.Time(4 * elems * 10)
	ring, err := ccl.Lookup(collective.AllReduce, "ring")
	if err != nil {
		t.Fatal(err)
	}
	bySwitch := newFabric(top).time(byNVLS(t, top, collective.AllReduce, elems))
	byRing := newFabric(top).time(launch(ring.Build(ccl.Layout{World: 8}, 4*elems), elems, 4, firstPEs(top)))
	if bySwitch < once*9/8 || bySwitch > once*9/8*105/100 || byRing < once*14/8 {
		t.Errorf("the switch takes %v, a ring %v, and the bytes alone %v", bySwitch, byRing, once)
	}
}

// Every link of a SIP carries what the collective's definition asks for, and no byte more.
func TestBytesByTheSwitch(t *testing.T) {
	for _, n := range []int{2, 5, 8} {
		top := inNetwork(t, n, "")
		block := int64(4 * 1001)
		s := int64(n) * block
		for kind, want := range map[collective.Kind][2]func(rank int) int64{
			collective.AllReduce:     {always(s + block), always(s + block)},
			collective.AllGather:     {always(block), always(s)},
			collective.ReduceScatter: {always(s), always(block)},
			collective.Broadcast:     {onlyRoot(s), always(s)},
			collective.Reduce:        {always(s), onlyRoot(s)},
		} {
			f := newFabric(top)
			f.time(byNVLS(t, top, kind, int(s/4)))
			for r := range n {
				pe := top.PE(r, 0, 0)
				for side, route := range [2][]topology.LinkID{top.ToSwitch(pe), top.FromSwitch(pe)} {
					for _, l := range route {
						if got := f.network.LinkBytes(l); got != want[side](r) {
							t.Errorf("%s, %d ranks: %s carried %d bytes, want %d", kind, n, top.LinkName(l), got, want[side](r))
						}
					}
				}
			}
		}
	}
}

func always(bytes int64) func(int) int64 { return func(int) int64 { return bytes } }

func onlyRoot(bytes int64) func(int) int64 {
	return func(rank int) int64 {
		if rank == 0 {
			return bytes
		}
		return 0
	}
}

// A switch begins when the last of its ranks has come, whatever the order, and takes as long from then on.
func TestSwitchWaitsForAll(t *testing.T) {
	top := inNetwork(t, 6, "")
	rng := rand.New(rand.NewPCG(21, 1))
	for _, kind := range []collective.Kind{collective.AllReduce, collective.AllGather, collective.ReduceScatter, collective.Broadcast, collective.Reduce} {
		alone := newFabric(top).time(byNVLS(t, top, kind, 6*1000))
		for range 20 {
			l, last := byNVLS(t, top, kind, 6*1000), sim.Time(0)
			for range l.Schedule.World {
				l.Ready = append(l.Ready, sim.Time(rng.IntN(5))*sim.Microsecond)
				last = max(last, l.Ready[len(l.Ready)-1])
			}
			f := newFabric(top)
			for again := range 2 { // what a launch leaves behind changes nothing
				if got := f.time(l); got != last+alone {
					t.Errorf("%s, ready at %v, time %d: took %v, want %v", kind, l.Ready, again, got, last+alone)
				}
			}
			seen, done := observe(top, l)
			if err := keepsOrder(l, seen, done); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// What a switch reduces is written out here: in the order of ranks; floats of less than 32 bits in float32, rounded once.
func TestBitsOfTheSwitch(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 1))
	for _, kind := range []collective.Kind{collective.AllReduce, collective.ReduceScatter, collective.Reduce} {
		a, err := ccl.Lookup(kind, "nvls")
		if err != nil {
			t.Fatal(err)
		}
		for _, world := range []int{1, 2, 3, 5, 8, 16} {
			for _, d := range dtype.All() {
				for _, op := range []tensor.ReduceOp{tensor.Sum, tensor.Min, tensor.Max, tensor.Avg} {
					if op.Check(d) != nil || d.IsComplex() {
						continue
					}
					for _, n := range []int{0, 1, 7, 33} {
						if kind == collective.ReduceScatter {
							n *= world
						}
						v := ccl.Values{Op: op, DType: d, Inputs: randomInputs(rng, d, world, n)}
						root := rng.IntN(world)
						s := a.Build(ccl.Layout{World: world, Root: root}, int64(rng.IntN(2))<<24)
						all := reducedByRank(v)
						for r, got := range evaluate(t, s, v) {
							want := all
							switch {
							case kind == collective.ReduceScatter:
								want = all[r*len(all)/world : (r+1)*len(all)/world]
							case kind == collective.Reduce && r != root:
								continue
							}
							if !slices.Equal(got.Bytes(), want) {
								t.Errorf("%s of %d %s by %s, rank %d of %d: got % x, want % x", kind, n, d, op, r, world, got.Bytes(), want)
							}
						}
					}
				}
			}
		}
	}
}

// reducedByRank is the result of a reduction of all inputs.
func reducedByRank(v ccl.Values) []byte {
	size, in := v.DType.Size(), v.DType
	narrow := v.DType.IsFloat() && size < 4
	if narrow {
		in = dtype.F32
	}
	out := make([]byte, len(v.Inputs[0]))
	for at := 0; at < len(out); at += size {
		load := func(r int) uint64 {
			x := getBits(v.Inputs[r][at:], size)
			if narrow {
				return encode(dtype.F32, decode(v.DType, x))
			}
			return x
		}
		all := load(0)
		for r := 1; r < len(v.Inputs); r++ {
			all = combineBits(v.Op, in, all, load(r))
		}
		if v.Op == tensor.Avg {
			all = divideBits(in, all, len(v.Inputs))
		}
		if narrow {
			all = encode(v.DType, decode(dtype.F32, all))
		}
		putBits(out[at:], size, all)
	}
	return out
}

// One rounding is not a rounding of each partial sum: 1 + 2⁻⁸ + 2⁻⁸ is a bfloat16, and 1 + 2⁻⁸ is 1.
func TestSwitchRoundsOnce(t *testing.T) {
	in := func(f float32) []byte { b := make([]byte, 2); putBits(b, 2, encode(dtype.BF16, f)); return b }
	v := ccl.Values{Op: tensor.Sum, DType: dtype.BF16, Inputs: [][]byte{in(1), in(1. / 256), in(1. / 256)}}
	for name, want := range map[string]float32{"nvls": 1 + 1./128, "one_shot": 1} {
		a, err := ccl.Lookup(collective.AllReduce, name)
		if err != nil {
			t.Fatal(err)
		}
		for r, got := range evaluate(t, a.Build(ccl.Layout{World: 3}, 1), v) {
			if x := decode(dtype.BF16, getBits(got.Bytes(), 2)); x != want {
				t.Errorf("%s, rank %d: %v, want %v", name, r, x, want)
			}
		}
	}
}

// Where the switch does not do all that an algorithm needs, or not for all ranks, nobody is offered it.
func TestOffered(t *testing.T) {
	full := inNetwork(t, 4, "")
	onlyReduces := parseTopology(t, "system: {sips: {count: 4, connect: switch}, switch: {in_network: {reduce: [max]}}}")
	nodes := parseTopology(t, "system: {nodes: {count: 2}, sips: {count: 4, connect: switch}, switch: {in_network: {multicast: true, reduce: [sum]}}, network: {nic: {bandwidth: 1, latency: 1}}}")
	for _, c := range []struct {
		name string
		t    *topology.Topology
		pes  []topology.DeviceID
		op   tensor.ReduceOp
		want ccl.Switching
	}{
		{"sum", full, firstPEs(full), tensor.Sum, ccl.Switching{Multicast: true, Reduce: true}},
		{"avg", full, firstPEs(full), tensor.Avg, ccl.Switching{Multicast: true, Reduce: true}},
		{"min", full, firstPEs(full), tensor.Min, ccl.Switching{Multicast: true}},
		{"prod", full, firstPEs(full), tensor.Prod, ccl.Switching{Multicast: true}},
		{"a part of the node", full, firstPEs(full)[1:3], tensor.Sum, ccl.Switching{Multicast: true, Reduce: true}},
		{"two on a SIP", full, []topology.DeviceID{full.PE(0, 0, 0), full.PE(1, 0, 0), full.PE(1, 0, 1)}, tensor.Sum, ccl.Switching{}},
		{"reduces by max", onlyReduces, firstPEs(onlyReduces), tensor.Max, ccl.Switching{Reduce: true}},
		{"sums elsewhere", onlyReduces, firstPEs(onlyReduces), tensor.Sum, ccl.Switching{}},
		{"one node", nodes, firstPEs(nodes)[2:], tensor.Sum, ccl.Switching{Multicast: true, Reduce: true}},
		{"two nodes", nodes, firstPEs(nodes), tensor.Sum, ccl.Switching{}},
		{"none", preset(t, "sips8"), firstPEs(preset(t, "sips8")), tensor.Sum, ccl.Switching{}},
	} {
		if got := ccl.SwitchingOf(c.t, c.pes, c.op); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	a, err := ccl.Lookup(collective.AllReduce, "nvls")
	if err != nil {
		t.Fatal(err)
	}
	for want, l := range map[string]ccl.Layout{
		"all_reduce by nvls: the 4 ranks are not on SIPs of one node whose switch multicasts and reduces by this operation (system.switch.in_network in topology.yaml)": {World: 4},
		"whose switch reduces by this operation (": {World: 4, Switch: ccl.Switching{Multicast: true}},
		"whose switch multicasts (":                {World: 3, Switch: ccl.Switching{Reduce: true}},
	} {
		if err := ccl.Offered(a, l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if err := ccl.Offered(a, ccl.Layout{World: 1}); err != nil {
		t.Errorf("one rank needs no switch: %v", err)
	}
}

// The Tuner has the switch work where that is fastest, and not in calls by whose operation it does not reduce.
func TestTunerKnowsTheSwitch(t *testing.T) {
	top := inNetwork(t, 8, "")
	devices := firstPEs(top)
	tuner := ccl.NewTuner(top)
	for _, op := range []tensor.ReduceOp{tensor.Sum, tensor.Min} {
		l := ccl.LayoutOf(top, devices)
		l.Switch = ccl.SwitchingOf(top, devices, op)
		for _, kind := range []collective.Kind{collective.AllReduce, collective.ReduceScatter, collective.Broadcast} {
			a, err := tuner.Select(kind, l, devices, 1<<24, 4)
			if err != nil {
				t.Fatal(err)
			}
			took := newFabric(top).time(launch(a.Build(l, 1<<26), 1<<24, 4, devices))
			for _, other := range ccl.Algorithms(kind) {
				if ccl.Offered(other, l) != nil {
					continue
				}
				if least := newFabric(top).time(launch(other.Build(l, 1<<26), 1<<24, 4, devices)); least < took {
					t.Errorf("%s by %s: %s takes %v, %s only %v", kind, op, a.Name(), took, other.Name(), least)
				}
			}
			if op == tensor.Sum && kind == collective.AllReduce && a.Name() != "nvls" || op == tensor.Min && kind != collective.Broadcast && a.Name() == "nvls" {
				t.Errorf("%s by %s: chose %s", kind, op, a.Name())
			}
		}
	}
}

// Two groups at a switch, and a part of the ranks, do what they should with values and links.
func TestGroupsAtASwitch(t *testing.T) {
	b := ccl.NewBuilder(collective.AllGather, "two groups", 4, 4, 1)
	low, high := []int{0, 1}, []int{2, 3}
	for r := range 4 {
		b.Multicast(r, [][]int{low, high}[r/2], r, r+1)
	}
	b.EndRound()
	for r := range 4 {
		b.Copy(r, (r+2)%4, r/2*2, r/2*2+2)
	}
	s := b.Schedule()
	if len(s.Groups) != 2 {
		t.Fatalf("groups are %v", s.Groups)
	}
	rng := rand.New(rand.NewPCG(23, 1))
	v := ccl.Values{DType: dtype.U8, Inputs: randomInputs(rng, dtype.U8, 4, 5)}
	for r, got := range evaluate(t, s, v) {
		if want := slices.Concat(v.Inputs...); !slices.Equal(got.Bytes(), want) {
			t.Errorf("rank %d has % x, want % x", r, got.Bytes(), want)
		}
	}
	top := inNetwork(t, 4, "")
	l := launch(s, 4*1000, 4, firstPEs(top))
	l.Ready = []sim.Time{0, 0, 9 * sim.Microsecond, 0}
	seen, done := observe(top, l)
	if err := keepsOrder(l, seen, done); err != nil {
		t.Error(err)
	}
	first := inNetworkAlpha + 2*4000*10
	for i, at := range seen.steps[:4] {
		if want := l.Ready[i/2*2] + first; at.End != want {
			t.Errorf("multicast %d ended at %v, want %v: when both of its group were there", i, at.End, want)
		}
	}
}

func TestBuilderRejectsGroups(t *testing.T) {
	for want, f := range map[string]func(b *ccl.Builder){
		"rank 2 is none of the group [0 1]": func(b *ccl.Builder) { b.Multicast(2, []int{0, 1}, 0, 1) },
		"rank 0 follows rank 1 in a group":  func(b *ccl.Builder) { b.Multicast(1, []int{1, 0}, 0, 1) },
		"rank 1 follows rank 1 in a group":  func(b *ccl.Builder) { b.ReduceInSwitch([]int{1, 1}, 1, 0, 1) },
		"rank 3: there are 3 ranks":         func(b *ccl.Builder) { b.ReduceInSwitch([]int{1, 3}, 1, 0, 1) },
		"there are 3 chunks":                func(b *ccl.Builder) { b.Multicast(0, []int{0, 1}, 0, 4) },
		"x: both ranks and a switch reduce": func(b *ccl.Builder) { b.ReduceInSwitch([]int{0, 1}, 1, 0, 1); b.Reduce(0, 2, 0, 1); b.Schedule() },
	} {
		if got := panicText(func() { f(ccl.NewBuilder(collective.AllReduce, "x", 3, 3, 1)) }); !strings.Contains(got, want) {
			t.Errorf("got a panic with %q, want %q", got, want)
		}
	}
}

// One rank stands for others only where each does something by itself.
func TestNoFoldAtASwitch(t *testing.T) {
	top := inNetwork(t, 4, "")
	s := byNVLS(t, top, collective.AllReduce, 400).Schedule
	if _, err := s.Fold(ccl.Folding{Of: []int{0, 0, 0, 0}, Way: func(int, int) int { return 0 }}, 400); err == nil ||
		!strings.Contains(err.Error(), "a switch works for all of them") {
		t.Errorf("got %v", err)
	}
}
