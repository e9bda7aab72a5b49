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
			list[i] = torchemu.Launch{"k", network.Kernel{Bytes: random.Int64N(1 << 28), Ops: random.Int64N(1 << 30)}, random.IntN(2) == 0}
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

// TestAutogradCostsTheHost looks at the clock of a host whose kernels autograd records in part, one by one and together.
func TestAutogradCostsTheHost(t *testing.T) {
	const launch, autograd = 5 * us, 3 * us // handy's
	for _, c := range []struct {
		recorded []bool
		want     sim.Time
	}{
		{nil, 0},
		{[]bool{false}, launch},
		{[]bool{true}, launch + autograd},
		{[]bool{true, true, false, true}, 4*launch + 3*autograd},
		{[]bool{false, true, true}, 3*launch + 2*autograd},
	} {
		for _, together := range []bool{false, true} {
			_, r := newHandy(t)
			var list []torchemu.Launch
			for _, recorded := range c.recorded {
				list = append(list, torchemu.Launch{"k", network.Kernel{Bytes: 1}, recorded})
			}
			issueSeries(t, r.Stream(), list, together)
			if r.Now() != c.want {
				t.Errorf("recorded %v, together %v: the host is at %v, not %v", c.recorded, together, r.Now(), c.want)
			}
		}
	}
	_, r := newHandy(t)
	r.BeginGraph()
	issueSeries(t, r.Stream(), []torchemu.Launch{{"k", network.Kernel{Bytes: 1}, true}}, true)
	if r.Now() != launch {
		t.Errorf("a kernel of a graph costs the host %v, not the launch of the graph, %v", r.Now(), launch)
	}
}
