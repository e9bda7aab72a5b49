package network_test

import (
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// relay is the traffic of a ring algorithm: what arrives at a rank goes on to the next.
type relay struct {
	n     *network.Network
	paths []network.PathID
	bytes int64
	odd   int64 // bytes that each rank's messages have more than those of the one before
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
	r.n.Send(r.paths[rank], r.bytes+int64(rank)*r.odd, r, rank)
}

// start lets every rank send its first message, and runs all that follows.
func (r *relay) start(e *sim.Engine) {
	for i := range min(len(r.paths), r.left) {
		r.Delivered(0, uint64(i))
	}
	for e.Run(1<<20) > 0 {
	}
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
	r.start(e)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkBothWays1024 has a ring in each direction: messages share the memories' links, which are wide enough.
func BenchmarkBothWays1024(b *testing.B) {
	const ranks = 1024
	e, t := sim.NewEngine(), sips(b, ranks)
	n := network.New(e, t)
	up := &relay{n: n, bytes: 1024, left: b.N / 2}
	down := &relay{n: n, bytes: 1024, left: b.N - b.N/2}
	for i := range ranks {
		up.paths = append(up.paths, n.Path(t.PE(i, 0, 0), t.PE((i+1)%ranks, 0, 0)))
		down.paths = append(down.paths, n.Path(t.PE(ranks-1-i, 0, 0), t.PE((2*ranks-2-i)%ranks, 0, 0)))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range min(ranks, down.left) {
		down.Delivered(0, uint64(i))
	}
	up.start(e)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// counter counts what arrives.
type counter int

func (c *counter) Delivered(sim.Time, uint64) { *c++ }

// BenchmarkAllToAll64 has 64 PEs on a ring send to all others at once: one operation is all 4032 messages.
func BenchmarkAllToAll64(b *testing.B) {
	benchmarkAllToAll(b, func(int, int) int64 { return 1 << 16 })
}

// BenchmarkUnevenAllToAll64 is the same with messages of 4032 sizes, so that every one leaves at a time of its own.
func BenchmarkUnevenAllToAll64(b *testing.B) {
	benchmarkAllToAll(b, func(i, j int) int64 { return 1<<16 + int64(i*64+j)*7919%4096 })
}

func benchmarkAllToAll(b *testing.B, size func(i, j int) int64) {
	const ranks = 64
	e, t := sim.NewEngine(), sips(b, ranks)
	n := network.New(e, t)
	b.ReportAllocs()
	for b.Loop() {
		arrived := counter(0)
		for i := range ranks {
			for j := range ranks {
				if i != j {
					n.Send(n.Path(t.PE(i, 0, 0), t.PE(j, 0, 0)), size(i, j), &arrived, 0)
				}
			}
		}
		for e.Run(1<<20) > 0 {
		}
		if arrived != ranks*(ranks-1) {
			b.Fatal(arrived)
		}
	}
	b.ReportMetric(float64(b.N)*ranks*(ranks-1)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkTorus64 has 64 PEs on a torus send to all others, each from a time of its own on, so that few messages come or
// leave at the same time: one operation is all 4032 messages.
func BenchmarkTorus64(b *testing.B) {
	const ranks = 64
	e := sim.NewEngine()
	t := parse(b, "name: test\nsystem: {sips: {count: 64, connect: torus2d, w: 8, h: 8}}\n")
	n := network.New(e, t)
	var messages []message
	for i := range ranks {
		start := sim.Time(i*7919%ranks) * sim.Microsecond / 20
		for j := range ranks - 1 {
			messages = append(messages, message{start, t.PE(i, 0, 0), t.PE((i+j+1)%ranks, 0, 0), 16384})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		start := e.Now()
		now := slices.Clone(messages)
		for i := range now {
			now[i].at += start
		}
		send(b, e, n, now)
	}
	b.ReportMetric(float64(b.N*len(messages))/b.Elapsed().Seconds(), "messages/s")
}

// chain starts a kernel on a SIP when the one before ends.
type chain struct {
	n      *network.Network
	at     topology.DeviceID
	kernel network.Kernel
	left   int
}

func (c *chain) Delivered(sim.Time, uint64) {
	if c.left > 0 {
		c.left--
		c.n.Kernel(c.at, c.kernel, c, 0)
	}
}

// BenchmarkKernels is one kernel after another: one operation is one kernel.
func BenchmarkKernels(b *testing.B) {
	e, t := sim.NewEngine(), sips(b, 4)
	c := &chain{network.New(e, t), t.PE(0, 0, 0), network.Kernel{Bytes: 1 << 20, Ops: 1 << 20}, b.N}
	b.ReportAllocs()
	b.ResetTimer()
	c.Delivered(0, 0)
	for e.Run(1<<20) > 0 {
	}
}

// BenchmarkRing1024BesideKernels is the ring while all SIPs run kernels, so that all messages and kernels are connected
// through the memories: one operation is one message. No two of them leave at the same time.
func BenchmarkRing1024BesideKernels(b *testing.B) {
	const ranks = 1024
	e, t := sim.NewEngine(), sips(b, ranks)
	r := &relay{n: network.New(e, t), bytes: 1024, odd: 1, left: b.N}
	for i := range ranks {
		r.paths = append(r.paths, r.n.Path(t.PE(i, 0, 0), t.PE((i+1)%ranks, 0, 0)))
		r.n.Kernel(t.PE(i, 0, 0), network.Kernel{Bytes: 1 << 40, Ops: 1 << 20}, new(counter), 0)
	}
	b.ReportAllocs()
	b.ResetTimer()
	r.start(e)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
