package torchemu_test

import (
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// TestKernelsAreAsManyCalls compares series of kernels with kernels that are issued one by one, on streams that share a
// device with others, and hosts that run ahead or fall behind.
func TestKernelsAreAsManyCalls(t *testing.T) {
	for seed := range uint64(50) {
		single, several := seriesTimes(t, seed, false), seriesTimes(t, seed, true)
		for i := range single {
			if single[i] != several[i] {
				t.Fatalf("seed %d: series %d ends at %d ps, its kernels one by one at %d ps", seed, i, several[i], single[i])
			}
		}
	}
}

// seriesTimes returns when series of random kernels end, on two streams of two ranks.
func seriesTimes(t *testing.T, seed uint64, together bool) []sim.Time {
	t.Helper()
	w, first := newHandy(t)
	second, err := w.Rank(1)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	streams := []*torchemu.Stream{first.Stream(), first.NewStream(), second.Stream()}
	var ends []*torchemu.Event
	for range 12 {
		s := streams[random.IntN(len(streams))]
		list := make([]torchemu.Launch, random.IntN(5))
		for i := range list {
			list[i] = torchemu.Launch{"k", network.Kernel{Bytes: random.Int64N(1 << 28), Ops: random.Int64N(1 << 30)}, sim.Time(random.IntN(2)) * us}
		}
		if random.IntN(4) == 0 {
			s.Rank().Spend(sim.Time(random.Int64N(1 << 27)))
		}
		if end := issueSeries(t, s, list, together); end != nil {
			ends = append(ends, end)
		}
	}
	for w.Engine.Run(1<<20) > 0 {
	}
	times := make([]sim.Time, len(ends))
	for i, e := range ends {
		if !e.Done() {
			t.Fatalf("seed %d: series %d does not end", seed, i)
		}
		times[i] = e.At()
	}
	return times
}

func issueSeries(t *testing.T, s *torchemu.Stream, list []torchemu.Launch, together bool) (end *torchemu.Event) {
	t.Helper()
	var err error
	if together {
		if end, err = s.Kernels(list); err != nil {
			t.Fatal(err)
		}
		return end
	}
	for _, l := range list {
		if end, err = s.Kernels([]torchemu.Launch{l}); err != nil {
			t.Fatal(err)
		}
	}
	return end
}

// TestHostsWorkBesideLaunches looks at the clock of a host that does something before some launches, one by one and together.
func TestHostsWorkBesideLaunches(t *testing.T) {
	const launch = 5 * us // handy's
	for _, c := range []struct {
		beside []sim.Time
		want   sim.Time
	}{
		{nil, 0},
		{[]sim.Time{0}, launch},
		{[]sim.Time{3 * us}, launch + 3*us},
		{[]sim.Time{3 * us, 3 * us, 0, 4 * us}, 4*launch + 10*us},
		{[]sim.Time{0, 1, 1}, 3*launch + 2},
	} {
		for _, together := range []bool{false, true} {
			_, r := newHandy(t)
			var list []torchemu.Launch
			for _, beside := range c.beside {
				list = append(list, torchemu.Launch{"k", network.Kernel{Bytes: 1}, beside})
			}
			issueSeries(t, r.Stream(), list, together)
			if r.Now() != c.want {
				t.Errorf("beside %v, together %v: the host is at %v, not %v", c.beside, together, r.Now(), c.want)
			}
		}
	}
	_, r := newHandy(t)
	r.BeginGraph()
	issueSeries(t, r.Stream(), []torchemu.Launch{{"k", network.Kernel{Bytes: 1}, 3 * us}}, true)
	if r.Now() != launch {
		t.Errorf("a kernel of a graph costs the host %v, not the launch of the graph, %v", r.Now(), launch)
	}
}
