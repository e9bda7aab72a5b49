package network_test

import (
	"math"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// tiled has 10 PEs of 1 TFLOPS and 100 GB/s of memory a TFLOPS.
const tiled = `
name: tiled
system: {sips: {count: 1}}
sip: {cube_mesh: {w: 1, h: 1}}
cube: {hbm: {bandwidth: 100000}, pe_layout: {pe_per_corner: 5, corners: [nw, ne]}}
pe: {matrix: {f8_tflops: 1, f16_tflops: 1, f32_tflops: 0.5}}
`

// productTime is how long a product takes alone, in ns.
func productTime(t *testing.T, kernels string, d dtype.DType, m, n, k int) float64 {
	t.Helper()
	topo := parse(t, tiled+"kernels: "+kernels+"\n")
	return float64(network.New(sim.NewEngine(), topo).KernelTime(network.MatMulCost(topo, d, network.Product{M: m, N: n, K: k}))) / 1e3
}

// The times of tiles, by hand: an operation takes a picosecond on a PE, and half of the float32 rate.
func TestTilesInWaves(t *testing.T) {
	const full = 2 * 256 * 128 * 1024 / 1000.0 // ns of a full tile of depth 1024
	for _, c := range []struct {
		name, kernels string
		d             dtype.DType
		m, n, k       int
		want          float64
	}{
		{"one wave", "{small_tile: 9, split: 1000000000}", dtype.F16, 2560, 128, 1024, full},
		{"a tile more", "{small_tile: 9, split: 1000000000}", dtype.F16, 2561 + 7, 128, 1024, 2 * full},
		{"every tile", "{tile: 500, small_tile: 9, split: 1000000000}", dtype.F16, 5120, 128, 1024, 2 * (full + 500)},
		{"launch", "{launch: 1500, small_tile: 9, split: 1000000000}", dtype.BF16, 2560, 128, 1024, full + 1500},
		{"float32", "{small_tile: 9, split: 1000000000}", dtype.F32, 1280, 128, 1024, full},
		{"small tiles at no cost", "{split: 1000000000}", dtype.F16, 640, 64, 1024, full / 8},
		{"small tiles", "{small_tile: 0.5, split: 1000000000}", dtype.F32, 640, 64, 1024, full / 4 * 1.5},
		{"the depth is split", "{small_tile: 9, split: 700}", dtype.F16, 256, 128, 16384, 16*full/8 + 700},
		{"even", "{small_tile: 9, split: 1000000000, unaligned: {2: 3, 1: 5}}", dtype.F16, 2560, 128, 1022, 3 * full * 1022 / 1024},
		{"odd", "{small_tile: 9, split: 1000000000, unaligned: {2: 3, 1: 5}}", dtype.F16, 2560, 128, 1023, 5 * full * 1023 / 1024},
		{"even, beside a tile's own time", "{tile: 500, small_tile: 9, split: 1000000000, unaligned: {2: 3}}", dtype.F16, 2560, 128, 1022, 3*full*1022/1024 + 500},
		{"odd, beside the depth's split", "{small_tile: 9, split: 700, unaligned: {1: 5}}", dtype.F16, 256, 128, 16383, 5*16*full/8 + 700},
		{"power is there for slow ones", "{small_tile: 9, split: 1000000000, sustained: {drop: 0.5, after: 1}, unaligned: {2: 3}}", dtype.F16, 2560, 128, 1022, 3 * full * 1022 / 1024},
		{"float32 is not misshapen", "{small_tile: 9, split: 1000000000, unaligned: {2: 3, 1: 5}}", dtype.F32, 1280, 128, 1023, full * 1023 / 1024},
		{"power", "{small_tile: 9, split: 1000000000, sustained: {drop: 0.5, after: 67108.864}}", dtype.F16, 2560, 128, 1024, full * (1 + 0.5*(1-math.Exp(-1)))},
		{"nothing", "{launch: 1500}", dtype.F16, 0, 128, 1024, 1500 + 128*1024*2/100000.0},
	} {
		if got := productTime(t, c.kernels, c.d, c.m, c.n, c.k); math.Abs(got/c.want-1) > 1e-4 {
			t.Errorf("%s: %.1f ns, want %.1f", c.name, got, c.want)
		}
	}
}

// Products of a stack share waves: three of them have 30 tiles, which 10 PEs make in 3 waves, and a stack of 15 that have 2
// tiles each takes as long.
func TestStacksShareWaves(t *testing.T) {
	const wave = 2 * 256 * 128 * 1024 / 1000.0
	topo := parse(t, tiled+"kernels: {small_tile: 9, split: 1000000000}\n")
	for _, p := range []network.Product{
		{Stack: 3, M: 2560, N: 128, K: 1024}, {Stack: 15, M: 512, N: 128, K: 1024}, {Stack: 21, M: 256, N: 128, K: 1024},
	} {
		cost := network.MatMulCost(topo, dtype.F16, p)
		if got := float64(network.New(sim.NewEngine(), topo).KernelTime(cost)) / 1e3; math.Abs(got/(3*wave)-1) > 1e-4 {
			t.Errorf("%+v takes %.1f ns, want %.1f", p, got, 3*wave)
		}
		alone := p
		alone.Stack = 0
		if one := network.MatMulCost(topo, dtype.F16, alone); cost.Bytes != int64(p.Stack)*one.Bytes {
			t.Errorf("%+v moves %d bytes, one of them %d", p, cost.Bytes, one.Bytes)
		}
	}
}

// Rows in memory are what has to be a multiple of 8 elements, by hand for each layout: of M, N and K one is not.
func TestRowsOfProducts(t *testing.T) {
	const kernels = "kernels: {small_tile: 9, split: 1000000000, unaligned: {2: 3, 1: 5, result: 7}}\n"
	topo := parse(t, tiled+kernels)
	slower := func(p network.Product, layout string) float64 {
		p, err := p.WithLayout(layout)
		if err != nil {
			t.Fatal(err)
		}
		whole := network.Product{M: (p.M + 7) &^ 7, N: (p.N + 7) &^ 7, K: (p.K + 7) &^ 7}
		took, least := network.MatMulCost(topo, dtype.F16, p), network.MatMulCost(topo, dtype.F16, whole)
		return float64(took.Ops) / float64(least.Ops)
	}
	for _, c := range []struct {
		name           string
		p              network.Product
		nn, nt, tn, tt float64
	}{
		{"even M", network.Product{M: 2558, N: 128, K: 8192}, 1, 1, 3, 3},
		{"odd M", network.Product{M: 2559, N: 128, K: 8192}, 1, 1, 5, 5},
		{"even N", network.Product{M: 2560, N: 126, K: 8192}, 3, 3, 3, 3},
		{"odd N", network.Product{M: 2560, N: 127, K: 8192}, 5, 7, 5, 7},
		{"even K", network.Product{M: 2560, N: 128, K: 8190}, 3, 3, 1, 3},
		{"odd K", network.Product{M: 2560, N: 128, K: 8191}, 5, 5, 1, 5},
		{"odd N and K", network.Product{M: 2560, N: 127, K: 8191}, 5, 5, 5, 5},
		{"a column", network.Product{M: 2560, N: 1, K: 8192}, 1, 1, 1, 1},
	} {
		for layout, want := range map[string]float64{"nn": c.nn, "nt": c.nt, "tn": c.tn, "tt": c.tt} {
			if got := slower(c.p, layout); math.Abs(got/want-1) > 1e-3 {
				t.Errorf("%s, %s: %.3f times as long, want %v", c.name, layout, got, want)
			}
		}
	}
}

// Every kernel takes the launch's time, also in the simulation.
func TestKernelsTakeTheirLaunch(t *testing.T) {
	topo := parse(t, tiled+"kernels: {launch: 1645}\n")
	for _, k := range []network.Kernel{{}, {Bytes: 1 << 20}, {Ops: 1 << 30}, {Bytes: 1 << 20, Ops: 1 << 30, Unit: network.MatrixF16}} {
		e := sim.NewEngine()
		n := network.New(e, topo)
		done := &arrivals{}
		n.Kernel(topo.PE(0, 0, 0), k, done, 0)
		for e.Run(1<<10) > 0 {
		}
		if done.last != n.KernelTime(k) || done.last < 1645*sim.Nanosecond {
			t.Errorf("%+v took %v, its time is %v", k, done.last, n.KernelTime(k))
		}
	}
}

// arrivals notes the last one.
type arrivals struct{ last sim.Time }

func (a *arrivals) Delivered(now sim.Time, _ uint64) { a.last = now }
