package main

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// dtypes are those of the recorded calls, by the names that these have.
var dtypes = map[string]dtype.DType{"f32": dtype.F32, "bf16": dtype.BF16, "f16": dtype.F16}

// recorded is the preset h200_8, and what a file has recorded of it: the rows without the names of the columns.
func recorded(folder, file string) (preset *topology.Topology, rows [][]string, err error) {
	if preset, err = topology.Load("h200_8"); err != nil {
		return nil, nil, err
	}
	if rows, err = records(filepath.Join(folder, file)); err != nil {
		return nil, nil, err
	}
	return preset, rows[1:], nil
}

// records reads the rows of a file, of which the first has the names of the columns.
func records(file string) ([][]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return csv.NewReader(f).ReadAll()
}

// lasting is how long kernels take one after the other, in µs.
func lasting(t *topology.Topology, kernels []network.Kernel) float64 {
	n, took := network.New(sim.NewEngine(), t), sim.Time(0)
	for _, k := range kernels {
		took += n.KernelTime(k)
	}
	return float64(took) / 1e6
}

// rounded is kernels of products whose operands of float32 are rounded, which are counted at the rate of such.
func rounded(t *topology.Topology, d dtype.DType, kernels []network.Kernel) []network.Kernel {
	units := t.Compute()
	for i := range kernels {
		if k := &kernels[i]; d == dtype.F32 && k.Unit == network.MatrixF32 {
			k.Ops = int64(math.Round(float64(k.Ops) * float64(units.MatrixF32) / float64(units.MatrixTF32)))
		}
	}
	return kernels
}
