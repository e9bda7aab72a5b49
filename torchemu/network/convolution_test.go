package network_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// convolved is a topology of tiled that says what convolutions take.
func convolved(t *testing.T, kernels, convolution string) *topology.Topology {
	t.Helper()
	return parse(t, tiled+"kernels: {"+kernels+"small_tile: 9, split: 1000000000, convolution: {"+convolution+"}}\n")
}

// image is a convolution of two images of 10 by 10 with 40 channels, to 96 channels by kernels of 3 by 3.
var image = network.Convolution{
	Batch: 2, Inner: 40, Outer: 96, Side: 100, Result: 100, Taps: 9, Strides: 1, Groups: 1, Last: true, Rounded: true,
}

func with(change func(*network.Convolution)) network.Convolution {
	c := image
	change(&c)
	return c
}

// M, N and K of each pass, by hand. A step is 64 bytes: 32 channels of float16 and 16 of float32.
func TestShapesOfConvolutions(t *testing.T) {
	topo := convolved(t, "", "step: 64")
	grouped := func(groups, channels int) func(*network.Convolution) {
		return func(c *network.Convolution) { c.Groups, c.Inner, c.Outer = groups, channels, channels }
	}
	for _, c := range []struct {
		name   string
		d      dtype.DType
		of     network.Convolution
		passes [3]network.Product
	}{
		{"float16", dtype.F16, image, [3]network.Product{
			{Stack: 1, M: 200, N: 96, K: 9 * 64}, {Stack: 1, M: 200, N: 40, K: 9 * 96}, {Stack: 1, M: 96, N: 9 * 64, K: 200},
		}},
		{"float32", dtype.F32, image, [3]network.Product{
			{Stack: 1, M: 200, N: 96, K: 9 * 48}, {Stack: 1, M: 200, N: 40, K: 9 * 96}, {Stack: 1, M: 96, N: 9 * 48, K: 200},
		}},
		{"by strides of two", dtype.BF16, with(func(c *network.Convolution) { c.Strides, c.Result = 4, 25 }), [3]network.Product{
			{Stack: 1, M: 50, N: 96, K: 9 * 64}, {Stack: 4, M: 50, N: 40, K: 9 * 96 / 4}, {Stack: 1, M: 96, N: 9 * 64, K: 50},
		}},
		{"groups that share a tile", dtype.F16, with(grouped(8, 256)), [3]network.Product{
			{Stack: 4, M: 200, N: 64, K: 9 * 64}, {Stack: 4, M: 200, N: 64, K: 9 * 64}, {Stack: 4, M: 64, N: 9 * 64, K: 200},
		}},
		{"groups that fill a tile", dtype.F16, with(grouped(2, 256)), [3]network.Product{
			{Stack: 2, M: 200, N: 128, K: 9 * 128}, {Stack: 2, M: 200, N: 128, K: 9 * 128}, {Stack: 2, M: 128, N: 9 * 128, K: 200},
		}},
	} {
		for pass, want := range c.passes {
			c.of.Pass = network.Pass(pass)
			if got := network.ShapeOf(topo, c.d, c.of); got != want {
				t.Errorf("%s, pass %d: %+v, want %+v", c.name, pass, got, want)
			}
		}
	}
}

// The kernels beside products, by hand: 100 elements go by 4 squares of 32 rows, 40 channels by 2, 96 by 3 and 9 taps by 1.
func TestConversions(t *testing.T) {
	topo := convolved(t, "", "convert: 3, depthwise: {forward: 5, backward: 7}, channels_last: {forward: 11, backward: 13}")
	copied := func(elements, taken int64) network.Kernel {
		return network.Kernel{Bytes: 4 * elements, Ops: 3 * taken, Unit: network.Vector}
	}
	images, results := copied(2*100*40, 2*128*64), copied(2*100*96, 2*128*96)
	weights := copied(96*9*40, 96*32*64)
	for _, c := range []struct {
		name string
		of   network.Convolution
		want []network.Kernel
	}{
		{"channels last", image, nil},
		{"channel by channel", with(func(c *network.Convolution) { c.Last = false }), []network.Kernel{images, results, weights}},
		{"by weights", with(func(c *network.Convolution) { c.Last, c.Pass = false, network.Weight }), []network.Kernel{images, results, weights}},
		{"kernels of one element", with(func(c *network.Convolution) { c.Last, c.Taps, c.Strides, c.Result = false, 1, 4, 25 }), []network.Kernel{
			images, copied(2*25*96, 2*32*96),
		}},
		{"three channels, padded to eight", with(func(c *network.Convolution) { c.Inner = 3 }), []network.Kernel{copied(2*100*3, 2*100*8)}},
	} {
		got := network.ConvolutionCost(topo, dtype.F16, c.of)
		if last := len(got) - 1; last < 0 || got[last].Unit != network.MatrixF16 || last != len(c.want) || (last > 0 && !reflect.DeepEqual(got[:last], c.want)) {
			t.Errorf("%s: %+v, want %+v and a product", c.name, got, c.want)
		}
	}
	exact := with(func(c *network.Convolution) { c.Last, c.Rounded = false, false })
	if got := network.ConvolutionCost(topo, dtype.F32, exact); len(got) != 1 || got[0].Unit != network.MatrixF32 {
		t.Errorf("of float32 that is not rounded: %+v, want a product", got)
	}
	alone := with(func(c *network.Convolution) { c.Groups, c.Outer, c.Strides, c.Result = 40, 80, 4, 25 })
	for _, c := range []struct {
		last     bool
		pass     network.Pass
		elements int64
	}{
		{false, network.Forward, 5 * 80 * 25}, {false, network.Data, 7 * 80 * 100}, {false, network.Weight, 7 * 80 * 25},
		{true, network.Forward, 11 * 80 * 25}, {true, network.Data, 13 * 80 * 100}, {true, network.Weight, 13 * 80 * 25},
	} {
		alone.Last, alone.Pass = c.last, c.pass
		want := []network.Kernel{{Bytes: 2 * (2*40*100 + 2*80*25 + 80*9), Ops: 2 * 9 * c.elements, Unit: network.Vector}}
		if got := network.ConvolutionCost(topo, dtype.F16, alone); !reflect.DeepEqual(got, want) {
			t.Errorf("a group for each channel, %+v: %+v, want %+v", c, got, want)
		}
	}
}

// The times of products, by hand: an operation takes a picosecond on one of 10 PEs, and two where float32 is rounded. The
// gradient by weights has 18 tiles of 64 by 64, which in 16 pieces of depth 160 take 29 waves.
func TestTimesOfConvolutions(t *testing.T) {
	const full = 2 * 256 * 128 * 9 * 64 / 1000.0 // ns of a full tile of depth 9 · 64
	wide := network.Convolution{
		Batch: 10, Inner: 64, Outer: 128, Side: 256, Result: 256, Taps: 9, Strides: 1, Groups: 1, Last: true, Rounded: true,
	}
	small := wide
	small.Batch, small.Outer = 1, 40 // 4 by 2 blocks
	narrow := wide
	narrow.Taps, narrow.Inner = 1, 576
	for _, c := range []struct {
		name, kernels, convolution string
		d                          dtype.DType
		of                         network.Convolution
		pass                       network.Pass
		want                       float64
	}{
		{"forward", "", "step: 64", dtype.F16, wide, network.Forward, full},
		{"a tile's own time, by bytes", "", "step: 64, tile: 5000", dtype.F16, wide, network.Forward, full + 10000},
		{"launch", "launch: 1500, ", "step: 64", dtype.BF16, wide, network.Forward, full + 1500},
		{"power", "sustained: {drop: 0.5, after: 37748.736}, ", "step: 64", dtype.F16, wide, network.Forward, full * (1 + 0.5*(1-math.Exp(-1)))},
		{"by images", "", "step: 64", dtype.F16, wide, network.Data, full},
		{"by weights, split", "", "step: 64, split: 700", dtype.F16, wide, network.Weight, 29*2*64*64*160/1000.0 + 700},
		{"kernels of one element", "", "step: 64", dtype.F16, narrow, network.Forward, full},
		{"kernels of one element, rounded", "", "step: 64, tile: 100000, pointwise: {rounded: 3}", dtype.F32, narrow, network.Forward, 2 * full * 3},
		{"direct, in waves of blocks", "", "step: 64, tile: 100000, direct: 4", dtype.F16, small, network.Forward, 2 * 64 * 32 * 9 * 64 * 4 / 1000.0},
		{"direct", "", "step: 64, tile: 100000, direct: 4", dtype.F16, wide, network.Forward, 2 * 2560 * 128 * 9 * 64 * 4 / 10000.0},
	} {
		units := strings.Replace(tiled, "0.5}", "0.5, tf32_tflops: 0.5}, vector: {f32_tflops: 1}", 1)
		topo := parse(t, units+"kernels: {"+c.kernels+"small_tile: 9, split: 1000000000, convolution: {"+c.convolution+"}}\n")
		c.of.Pass = c.pass
		kernels := network.ConvolutionCost(topo, c.d, c.of)
		if len(kernels) != 1 {
			t.Errorf("%s: %+v", c.name, kernels)
			continue
		}
		if got := float64(network.New(sim.NewEngine(), topo).KernelTime(kernels[0])) / 1e3; math.Abs(got/c.want-1) > 1e-4 {
			t.Errorf("%s: %.1f ns, want %.1f", c.name, got, c.want)
		}
	}
}

func TestTopologiesThatSayNothingOfConvolutions(t *testing.T) {
	for _, kernels := range []string{"", "kernels: {launch: 1}\n"} {
		if got := network.ConvolutionCost(parse(t, tiled+kernels), dtype.F16, image); got != nil {
			t.Errorf("%q: %+v", kernels, got)
		}
	}
	if got := network.ConvolutionCost(convolved(t, "", "step: 64"), dtype.F64, image); got != nil {
		t.Errorf("float64: %+v", got)
	}
}
