package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// overlap compares a product and an all_gather beside each other on 2, 3 and 4 H200.
func overlap(w io.Writer, folder string) error {
	preset, library, err := loadPreset()
	if err != nil {
		return err
	}
	_, rows, err := table(filepath.Join(folder, "h200_overlap.csv"))
	if err != nil {
		return err
	}
	var gemm, gather, both calibrate.Errors
	for _, r := range rows {
		world, bytes := int(r[1]), int64(r[2])<<20
		alone, gathered, together, err := beside(preset, library, world, bytes)
		if err != nil {
			return err
		}
		gemm.Add(alone, r[3])
		gather.Add(gathered, r[4])
		both.Add(together, r[5])
	}
	fmt.Fprintf(w, "\n## A product beside an all_gather on H200\n\nbf16, 8192³, and 16 to 512 MiB on 2, 3 and 4 GPUs, four runs. "+
		"What a collective takes from the product is fitted to these times; the aim is 10.\n\n"+
		"| product alone | all_gather alone | both |\n|---|---|---|\n| %s | %s | %s |\n", &gemm, &gather, &both)
	return nil
}

// last notes when the last thing of several was done.
type last struct{ at sim.Time }

func (l *last) RankDone(_ int, now sim.Time)         { l.at = max(l.at, now) }
func (l *last) Delivered(now sim.Time, token uint64) { l.at = max(l.at, now) }

// beside predicts a product and an all_gather of so many bytes, alone and at once, in µs.
func beside(t *topology.Topology, library *ccl.Library, world int, bytes int64) (alone, gathered, both float64, err error) {
	name, how := library.Choose(collective.AllGather, ccl.Layout{World: world}, bytes)
	a, err := ccl.Lookup(collective.AllGather, name)
	if err != nil {
		return 0, 0, 0, err
	}
	const element = 4
	l := ccl.Launch{
		Schedule: a.Build(ccl.Layout{World: world}, 0), Elems: int(bytes) / element / world * world, ElemSize: element,
		PartialSize: element, Carriage: how,
	}
	for rank := range world {
		l.Devices = append(l.Devices, t.PE(rank, 0, 0))
	}
	cost := network.MatMulCost(t, dtype.BF16, network.Product{M: 8192, N: 8192, K: 8192})
	run := func(product, gather bool) float64 {
		e, done := sim.NewEngine(), &last{}
		n := network.New(e, t)
		if gather {
			ccl.NewExecutor(e, n).Start(l, done)
		}
		for _, device := range l.Devices {
			if product {
				n.Kernel(device, cost, done, 0)
			}
		}
		for e.Run(1<<16) > 0 {
		}
		return float64(done.at) / float64(sim.Microsecond)
	}
	return run(true, false), run(false, true), run(true, true), nil
}
