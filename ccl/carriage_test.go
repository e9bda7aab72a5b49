package ccl_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// carried is the coefficients of the test machine, in ns and GB/s, and its topology. Its links are wider than what the
// protocols make of them.
const (
	carriedLink   = 480.0
	carriedLaunch = 7618.0
	carriedSkew   = 4000.0
)

type coefficients struct {
	start, hop, op, bandwidth, channel, chunk, rooted, slices, sliceMin, finish float64
}

var carriedProtocols = map[topology.ProtocolKind]coefficients{
	topology.LL:     {0, 646, 0, 175, 13.6, 32768, 32768, 1, 1, 0.76},
	topology.LL128:  {7400, 1900, 0, 347, 0, 576000, 576000, 1, 1, 0.8},
	topology.Simple: {7425, 3620, 616, 377, 0, 2097152, 524288, 2, 32768, 0.68},
}

const carriedP2P = `{start: 2097, start_simple: 2358, channels: 32, channel_bandwidth: 91, chunk: 524288, finish: 0.65, ll_bytes: 524288, ll_share: 0.66}`

func carriedTopology(t testing.TB, sips int) *topology.Topology {
	t.Helper()
	text := fmt.Sprintf(`
name: carried
system: {sips: {count: %d, connect: switch, link: {bandwidth: %v, latency: 250}}}
sip: {cube_mesh: {w: 1, h: 1}, noc: {bandwidth: 5000}, io: {bandwidth: 5000}}
cube: {hbm: {bandwidth: 4800}, pe_layout: {pe_per_corner: 1, corners: [nw]}}
transport:
  sip:
    channels: 24
    launch: %v
    skew: %v
    p2p: %s
    unaligned: {ll_start: 2086, ll: 1.49, op: 2500, simple: {4: 1.4, 8: 0.7}, reduce: 0.6, p2p: {4: 115.2, 8: 76.8}}
    protocols:
`, sips, carriedLink, carriedLaunch, carriedSkew, carriedP2P)
	for k, p := range carriedProtocols {
		text += fmt.Sprintf("      %s: {start: %v, hop: %v, op: %v, bandwidth: %v, chunk: %.0f, rooted_chunk: %.0f, slices: %v, slice_min: %.0f, finish: %v",
			k, p.start, p.hop, p.op, p.bandwidth, p.chunk, p.rooted, p.slices, p.sliceMin, p.finish)
		if p.channel > 0 {
			text += fmt.Sprintf(", channel_bandwidth: %v", p.channel)
		}
		text += "}\n"
	}
	topo, err := topology.Parse("carried.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// rides is how long one of so many calls takes, in ns.
func rides(t testing.TB, c collective.Kind, algorithm string, n int, bytes int64, how ccl.Carriage, calls int) float64 {
	t.Helper()
	topo := carriedTopology(t, n)
	a, err := ccl.Lookup(c, algorithm)
	if err != nil {
		t.Fatal(err)
	}
	elems := int(bytes) / 4
	if c == collective.AllToAll {
		elems *= n
	}
	return float64(ccl.Repeat(topo, ccl.Launch{
		Schedule: a.Build(ccl.Layout{World: n}, 0), Elems: elems, ElemSize: 4, PartialSize: 4,
		Devices: firstPEs(topo)[:n], Carriage: how,
	}, calls)) / float64(sim.Nanosecond)
}

// within fails unless got is want, give or take a share of it.
func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got/want-1) > share {
		t.Errorf("%s: %.0f ns, want %.0f (%+.1f %%)", what, got, want, 100*(got/want-1))
	}
}

// skewOf is the expected lateness of the last of n ranks beyond that of two.
func skewOf(n int) float64 {
	return carriedSkew * (math.Sqrt(2*math.Log(float64(n))) - math.Sqrt(2*math.Log(2)))
}

// ringForm is the closed form of collectives that go round a ring: in each loop every hop takes t_op, and in the end
// each rank finishes what it does not send on.
func ringForm(c collective.Kind, n int, bytes float64, k topology.ProtocolKind, channels float64) float64 {
	p := carriedProtocols[k]
	hops := float64(n - 1)
	if c == collective.AllReduce {
		hops *= 2
	}
	rate := p.bandwidth
	if p.channel > 0 {
		rate = min(rate, channels*p.channel)
	}
	total := carriedLaunch + skewOf(n) + p.start
	for left := bytes; left > 0; {
		loop := min(left, float64(n)*channels*p.chunk)
		left -= loop
		b := loop / float64(n)
		pieces := math.Ceil(b / max(math.Ceil(b/p.slices), p.sliceMin*channels))
		piece := p.op + b/pieces/rate
		total += hops*max(pieces*piece, piece+p.hop) + p.finish*b/p.bandwidth
	}
	return total
}

func TestRingsTakeTheirClosedForm(t *testing.T) {
	nccl, err := ccl.LoadLibrary("nccl-2.28")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []collective.Kind{collective.AllReduce, collective.AllGather, collective.ReduceScatter} {
		for _, n := range []int{2, 3, 4, 8} {
			for k := range topology.ProtocolKind(topology.Protocols) {
				for bytes := int64(48 * n); bytes <= 1<<30; bytes *= 3 {
					channels := nccl.Channels(k, n, bytes)
					got := rides(t, c, "ring", n, bytes, ccl.Carriage{Protocol: k, Channels: channels}, 1)
					what := fmt.Sprintf("%s of %d bytes, %d ranks, %s, %d channels", c, bytes, n, k, channels)
					within(t, what, got, ringForm(c, n, float64(bytes), k, float64(channels)), 0.02)
				}
			}
		}
	}
}

// A chain of ranks hands on chunk by chunk, and the root does not wait for the others.
func TestChainsTakeTheirClosedForm(t *testing.T) {
	const calls = 20
	for _, c := range []collective.Kind{collective.Broadcast, collective.Reduce} {
		for _, n := range []int{2, 4, 8} {
			for k, p := range carriedProtocols {
				for _, bytes := range []int64{4096, 1 << 20, 64 << 20, 1 << 30} {
					got := rides(t, c, "chain", n, bytes, ccl.Carriage{Protocol: k}, calls)
					rate := p.bandwidth
					if p.channel > 0 {
						rate = min(rate, 24*p.channel)
					}
					loop := min(float64(bytes), 24*p.rooted)
					chunks := math.Ceil(float64(bytes) / (24 * p.rooted))
					want := carriedLaunch + skewOf(n) + p.start + chunks*p.op + float64(bytes)/rate +
						float64(n-2)*(p.op+loop/rate+p.hop)/calls
					within(t, fmt.Sprintf("%s of %d bytes, %d ranks, %s", c, bytes, n, k), got, want, 0.02)
				}
			}
		}
	}
}

func TestMessagesBetweenPairsTakeTheirClosedForm(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		for bytes := int64(n) * 600 << 10 * 4; bytes <= 1<<30; bytes *= 3 {
			got := rides(t, collective.AllToAll, "direct", n, bytes/int64(n*16)*int64(n*16), ccl.Carriage{}, 1)
			per := float64(bytes) / float64(n)
			channels := 32.0
			for channels*float64(n) > 32 {
				channels /= 2
			}
			channels = min(channels, math.Ceil(per/(64<<10)))
			for per/channels > 16<<20 && channels <= 16 {
				channels *= 2
			}
			all, p := min(channels*float64(n-1), 32), per*float64(n-1)
			want := carriedLaunch + skewOf(n) + 2097 + 2358 + p*(1/377.0+1/(91*all)) +
				0.65*min(p, 524288*channels*float64(n-1))/377
			within(t, fmt.Sprintf("all_to_all of %d bytes, %d ranks", bytes, n), got, want, 0.02)
		}
	}
}

// Ranks that send to a root, or receive from one, do not wait for one another: the time by which they start apart costs
// nothing. In an all_to_all it does.
func TestOnlyRanksThatWaitForOneAnotherPayForTheirSkew(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		for _, c := range []struct {
			kind collective.Kind
			skew float64
		}{{collective.Gather, 0}, {collective.Scatter, 0}, {collective.AllToAll, skewOf(n)}} {
			got := rides(t, c.kind, "direct", n, int64(64*n), ccl.Carriage{}, 1)
			within(t, fmt.Sprintf("%s among %d ranks", c.kind, n), got, carriedLaunch+c.skew+2097, 0.02)
		}
	}
}

// Off 16 bytes an all_gather is slower, but those blocks are not that happen to be in place; an all_reduce is not, for a
// library cuts it itself. Of what an all_gather's blocks take more, waiting hides a part. A reduce_scatter is slower only
// in its last step, and messages between pairs by the channels that they have.
func TestUnalignedBlocks(t *testing.T) {
	const n, bytes, block, pieces = 4, 64 << 20, 16 << 20, 2
	for _, c := range []struct {
		kind      collective.Kind
		algorithm string
		more      int64
		want      float64 // ns
		least     float64 // share of it
	}{
		{collective.AllGather, "ring", 4 * n, (n - 1) * (pieces*2500 + block*1.4/1000), 3.0 / 4},
		{collective.AllGather, "ring", 8 * n, (n - 1) * (pieces*2500 + block*0.7/1000), 1.0 / 2},
		{collective.AllGather, "ring", 16 * n, 0, 0},
		{collective.AllReduce, "ring", 4 * n, 0, 0},
		{collective.ReduceScatter, "ring", 4 * n, block * 0.6 / 1000, 1},
		{collective.ReduceScatter, "ring", 8 * n, block * 0.6 / 1000, 1},
		{collective.ReduceScatter, "ring", 16 * n, 0, 0},
		{collective.AllToAll, "direct", 4 * n, (n - 1) * block * 115.2 / (8 * (n - 1)) / 1000, 1},
		{collective.AllToAll, "direct", 8 * n, (n - 1) * block * 76.8 / (8 * (n - 1)) / 1000, 1},
		{collective.AllToAll, "direct", 16 * n, 0, 0},
	} {
		even := rides(t, c.kind, c.algorithm, n, bytes, ccl.Carriage{}, 1)
		off := rides(t, c.kind, c.algorithm, n, bytes+c.more, ccl.Carriage{}, 1)
		if more := off - even; more < c.least*c.want-50 || more > c.want+50 {
			t.Errorf("%s of blocks off by %d: %.0f ns more, want %.0f, or from %v of it on", c.kind, c.more/n, more, c.want, c.least)
		}
	}
}

// Two ranks give a message half of the channels there are, and one of more than 256 MiB all of them: off 16 bytes that is
// twice as fast.
func TestUnalignedMessagesTakeTheirChannels(t *testing.T) {
	for _, c := range []struct {
		bytes    int64
		channels float64
	}{{128 << 20, 16}, {1 << 30, 32}} {
		even := rides(t, collective.AllToAll, "direct", 2, c.bytes, ccl.Carriage{}, 1)
		off := rides(t, collective.AllToAll, "direct", 2, c.bytes+8, ccl.Carriage{}, 1)
		within(t, fmt.Sprintf("what %d bytes take more", c.bytes), off-even, float64(c.bytes)/2*115.2/c.channels/1000, 0.001)
	}
}

// Two collectives at a time share a link evenly, whatever their protocols make of it when they have it alone.
func TestProtocolsShareLinks(t *testing.T) {
	const bytes = 480 << 20
	topo := carriedTopology(t, 2)
	a, _ := ccl.Lookup(collective.Broadcast, "chain")
	for k, p := range carriedProtocols {
		e := sim.NewEngine()
		x := ccl.NewExecutor(e, network.New(e, topo))
		for range 2 {
			x.Start(ccl.Launch{
				Schedule: a.Build(ccl.Layout{World: 2}, 0), Elems: bytes / 4, ElemSize: 4, PartialSize: 4,
				Devices: firstPEs(topo), Carriage: ccl.Carriage{Protocol: k},
			}, ignoreRanks{})
		}
		for e.Run(1<<16) > 0 {
		}
		rate := p.bandwidth
		if p.channel > 0 {
			rate = min(rate, 24*p.channel)
		}
		within(t, k.String(), float64(e.Now())/1e3, p.start+carriedLaunch+2*bytes/rate, 0.05)
	}
}

type ignoreRanks struct{}

func (ignoreRanks) RankDone(int, sim.Time) {}

// Without a transport section nothing is carried: a Carriage changes nothing.
func TestOnlyATransportCarries(t *testing.T) {
	topo, err := topology.Load("sips8")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := ccl.Lookup(collective.AllReduce, "ring")
	l := ccl.Launch{
		Schedule: a.Build(ccl.Layout{World: 8}, 1<<20), Elems: 1 << 18, ElemSize: 4, PartialSize: 4, Devices: firstPEs(topo),
	}
	plain := ccl.Repeat(topo, l, 1)
	l.Carriage = ccl.Carriage{Protocol: topology.LL, Channels: 3}
	if got := ccl.Repeat(topo, l, 1); got != plain {
		t.Errorf("%v with a carriage, %v without", got, plain)
	}
}

func TestLibraryChooses(t *testing.T) {
	if _, err := ccl.LoadLibrary("nccl-9"); err == nil || !strings.Contains(err.Error(), `there is no library "nccl-9"; the libraries are nccl-2.28`) {
		t.Errorf("error %v", err)
	}
	nccl, err := ccl.LoadLibrary("nccl-2.28")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind  collective.Kind
		world int
		bytes int64
		want  string
	}{
		{collective.AllReduce, 2, 1024, "ring ll 1"},
		{collective.AllReduce, 2, 1 << 20, "ring ll 24"},
		{collective.AllReduce, 2, 2 << 20, "ring simple 24"},
		{collective.AllReduce, 4, 8 << 20, "ring ll128 24"},
		{collective.AllReduce, 8, 8 << 20, "ring ll128 24"},
		{collective.AllReduce, 6, 64 << 10, "ring ll 2"},
		{collective.AllReduce, 6, 2 << 20, "ring ll 24"},
		{collective.AllReduce, 6, 4 << 20, "ring ll128 24"},
		{collective.AllReduce, 6, 32 << 20, "ring simple 24"},
		{collective.AllReduce, 8, 128 << 10, "ring ll 4"},
		{collective.AllReduce, 8, 32 << 20, "ring ll128 24"},
		{collective.AllReduce, 8, 64 << 20, "ring simple 24"},
		{collective.AllReduce, 8, 1 << 30, "ring simple 24"},
		{collective.AllGather, 6, 8 << 20, "ring ll128 24"},
		{collective.AllGather, 8, 4 << 20, "ring ll 24"},
		{collective.AllGather, 8, 16 << 20, "ring ll128 24"},
		{collective.AllGather, 8, 32 << 20, "ring simple 24"},
		{collective.Broadcast, 8, 2 << 20, "chain simple 24"},
		{collective.AllGather, 4, 64 << 10, "ring ll 4"},
		{collective.AllGather, 4, 16 << 20, "ring simple 24"},
		{collective.Broadcast, 4, 1 << 20, "chain ll 24"},
		{collective.Reduce, 4, 512 << 20, "chain simple 24"},
		{collective.AllToAll, 4, 512 << 20, "direct simple 0"},
	} {
		name, how := nccl.Choose(c.kind, ccl.Layout{World: c.world}, c.bytes)
		if got := fmt.Sprint(name, " ", how.Protocol, " ", how.Channels); got != c.want {
			t.Errorf("%s of %d bytes, %d ranks: %s, want %s", c.kind, c.bytes, c.world, got, c.want)
		}
	}
}

// reports notes what a launch reports.
type reports struct {
	steps map[int]ccl.StepTimes
	twice bool
	ranks []sim.Time
}

func (r *reports) StepDone(step int, t ccl.StepTimes) {
	_, known := r.steps[step]
	r.twice = r.twice || known
	r.steps[step] = t
}

func (r *reports) RankDone(rank int, now sim.Time) { r.ranks[rank] = now }

func TestEveryStepIsReportedOnce(t *testing.T) {
	const n = 8
	topo := carriedTopology(t, n)
	for _, a := range pointToPoint() {
		for _, elems := range []int{0, 1, n + 1, 1 << 10, 100_003, 1 << 24} {
			for k := range topology.ProtocolKind(topology.Protocols) {
				elems := elems * max(1, blocksOf(a.Collective(), n))
				name := fmt.Sprintf("%s %s by %s, %d elements", a.Collective(), a.Name(), k, elems)
				l := launch(a.Build(ccl.Layout{World: n}, 0), elems, 4, firstPEs(topo))
				r := &reports{steps: map[int]ccl.StepTimes{}, ranks: make([]sim.Time, n)}
				l.Observer, l.Carriage = r, ccl.Carriage{Protocol: k}
				e := sim.NewEngine()
				ccl.NewExecutor(e, network.New(e, topo)).Start(l, r)
				for e.Run(1<<16) > 0 {
				}
				if len(r.steps) != len(l.Schedule.Steps) || r.twice {
					t.Fatalf("%s: %d of %d steps were reported, twice: %v", name, len(r.steps), len(l.Schedule.Steps), r.twice)
				}
				r.check(t, name, l.Schedule)
			}
		}
	}
}

// check wants the moments of each step in order, and no rank to be done before what it receives.
func (r *reports) check(t *testing.T, name string, s *ccl.Schedule) {
	t.Helper()
	for i, step := range s.Steps {
		at := r.steps[i]
		if !(at.Start <= at.Arrived && at.Arrived <= at.Combine && at.Combine <= at.End) || at.End > r.ranks[step.Dst] && at.Bytes > 0 {
			t.Fatalf("%s: step %d %+v; rank %d is done at %v", name, i, at, step.Dst, r.ranks[step.Dst])
		}
	}
}
