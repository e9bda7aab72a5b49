package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// messages compares messages between two H200, in both directions at once.
func messages(w io.Writer, folder string) error {
	preset, err := topology.Load("h200_8")
	if err != nil {
		return err
	}
	rows, err := records(filepath.Join(folder, "h200_nccl.csv"))
	if err != nil {
		return err
	}
	var small, large calibrate.Errors
	for _, row := range rows {
		if row[0] != "default" || row[2] != "sendrecv" {
			continue
		}
		bytes, err := strconv.Atoi(row[4])
		if err != nil {
			return err
		}
		measured, err := strconv.ParseFloat(row[5], 64)
		if err != nil {
			return err
		}
		of := &small
		if bytes >= 1<<20 {
			of = &large
		}
		of.Add(exchange(preset, bytes), measured)
	}
	fmt.Fprintf(w, "\n## Messages between two H200\n\nsend and recv in both directions at once (sendrecv of nccl-tests), by the "+
		"preset h200_8, of which nothing is fitted to this.\n\n| below 1 MB | from 1 MB on |\n|---|---|\n| %s | %s |\n", &small, &large)
	return nil
}

// exchange is how long two ranks take to send each other so many bytes, in µs.
func exchange(t *topology.Topology, bytes int) float64 {
	e := sim.NewEngine()
	x := ccl.NewExecutor(e, network.New(e, t))
	var end last
	for from, to := range []int{1, 0} {
		x.Send(ccl.Message{From: t.PE(from, 0, 0), To: t.PE(to, 0, 0), Elems: bytes / 4, ElemSize: 4}, &end, 0)
	}
	e.Run(math.MaxInt)
	return float64(end.at) / float64(sim.Microsecond)
}
