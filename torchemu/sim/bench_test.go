package sim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// hold is the classic load for event lists: every event that runs adds one more.
type hold struct {
	e      *sim.Engine
	delays []sim.Time
	next   int
}

func (h *hold) Handle(now sim.Time, arg uint64) {
	d := h.delays[h.next&(len(h.delays)-1)]
	h.next++
	h.e.At(now+d, 0, h, arg)
}

func benchmarkHold(b *testing.B, pending int, delays []sim.Time) {
	e := sim.NewEngine()
	h := &hold{e: e, delays: delays}
	for i := range pending {
		h.Handle(0, uint64(i))
	}
	e.Run(10 * pending)
	b.ReportAllocs()
	b.ResetTimer()
	e.Run(b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkEngineRandom1000(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	delays := make([]sim.Time, 1<<14)
	for i := range delays {
		delays[i] = sim.Time(rng.Int64N(int64(sim.Microsecond)))
	}
	benchmarkHold(b, 1000, delays)
}

// BenchmarkEngineEqualTimes runs 1000 ranks in step: each round's events fall on one instant.
func BenchmarkEngineEqualTimes(b *testing.B) {
	benchmarkHold(b, 1000, []sim.Time{sim.Nanosecond})
}

// BenchmarkEngineSameInstant adds every event at the present time.
func BenchmarkEngineSameInstant(b *testing.B) {
	benchmarkHold(b, 1000, []sim.Time{0})
}
