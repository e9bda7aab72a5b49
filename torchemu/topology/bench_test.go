package topology_test

import (
	"runtime"
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

const torus4096 = "system: {sips: {count: 4096, connect: torus2d, w: 64, h: 64}}\n"

func BenchmarkParse4096(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := topology.Parse("t.yaml", []byte(torus4096)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRoute4096(b *testing.B) {
	top := parse(b, torus4096)
	src, dst := top.PE(0, 0, 0), top.PE(32*64+32, 15, 0)
	b.ReportAllocs()
	for b.Loop() {
		if len(top.Route(src, dst)) != 74 {
			b.Fatal("wrong route")
		}
	}
}

// What stays in memory must not grow with the system: a Topology is arithmetic, not tables.
func TestLargeSystemsTakeNoMoreMemory(t *testing.T) {
	kept := func(text string) int64 {
		const copies = 100
		var before, after runtime.MemStats
		tops := make([]*topology.Topology, copies)
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range tops {
			tops[i] = parse(t, text)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(tops)
		return int64(after.HeapAlloc-before.HeapAlloc) / copies
	}
	if large := kept(torus4096); large > 4096 {
		t.Errorf("4096 SIPs keep %d bytes", large)
	}
}
