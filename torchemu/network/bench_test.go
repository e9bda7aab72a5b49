package network_test

import (
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// relay is the traffic of a ring algorithm: what arrives at a rank goes on to the next.
type relay struct {
	n     *network.Network
	paths []network.PathID
	bytes int64
	left  int
}

func (r *relay) Delivered(_ sim.Time, rank uint64) {
	if r.left == 0 {
		return
	}
	r.left--
	rank++
	if rank == uint64(len(r.paths)) {
		rank = 0
	}
	r.n.Send(r.paths[rank], r.bytes, r, rank)
}

// BenchmarkRing1024 is the traffic of ring all-reduces of 1 MiB among 1024 ranks: one operation is one message.
func BenchmarkRing1024(b *testing.B) {
	const ranks = 1024
	e, t := sim.NewEngine(), sips(b, ranks)
	r := &relay{n: network.New(e, t), bytes: 1024, left: b.N}
	for i := range ranks {
		r.paths = append(r.paths, r.n.Path(t.PE(i, 0, 0), t.PE((i+1)%ranks, 0, 0)))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range min(ranks, b.N) {
		r.Delivered(0, uint64(i))
	}
	for e.Step() {
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
