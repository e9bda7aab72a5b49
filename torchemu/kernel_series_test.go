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
			list[i] = torchemu.Launch{"k", network.Kernel{Bytes: random.Int64N(1 << 28), Ops: random.Int64N(1 << 30)}}
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
		if end, err = s.Kernel(l.Name, l.Kernel); err != nil {
			t.Fatal(err)
		}
	}
	return end
}
