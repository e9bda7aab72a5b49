package main

import (
	"encoding/csv"
	"os"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

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
