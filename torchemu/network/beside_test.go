package network_test

import (
	"math"
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

type ends struct{ at []sim.Time }

func (e *ends) Delivered(now sim.Time, token uint64) { e.at[token] = now }

// A product takes 1/(1-p) as long while an engine copies, and the copy 1/(1-c) as long while it does.
func TestProductsAndCopiesTakeFromEachOther(t *testing.T) {
	const p, c = 0.25, 0.5
	top, err := topology.Parse("t.yaml", []byte("system: {sips: {count: 2, connect: fully_connected, link: {bandwidth: 100, latency: 0}}}\n"+
		"pe: {dma: {bandwidth: 100, setup: 0}}\nengines: {beside: {products: 0.25, copies: 0.5}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := sim.NewEngine()
	n := network.New(e, top)
	a, b := top.PE(0, 0, 0), top.PE(1, 0, 0)
	alone := n.KernelTime(network.Kernel{Ops: 1 << 40, Unit: network.MatrixF16})
	bytes := int64(float64(alone) / 1e12 * 100e9) // of a copy that alone takes as long
	x := &ends{at: make([]sim.Time, 2)}
	n.Occupy(a)
	n.Kernel(a, network.Kernel{Ops: 1 << 40, Unit: network.MatrixF16}, x, 0)
	n.SendOn(n.Lane(a, b, 100e9), bytes, x, 1)
	e.Run(1 << 20)
	product := float64(alone) / (1 - p)
	copied := product + (float64(alone) - product*(1-c)) // half as fast beside the product, and then as alone
	for i, want := range []float64{product, copied} {
		if got := float64(x.at[i]); math.Abs(got-want) > 1e-3*want {
			t.Errorf("%d took %v; want %v", i, sim.Time(got), sim.Time(want))
		}
	}
}
