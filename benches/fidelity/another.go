package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// another compares a machine of another kind, of whose times nothing is fitted: 4 H100, whose links are an H200's.
func another(w io.Writer, folder string) error {
	preset, library, err := loadPreset()
	if err != nil {
		return err
	}
	m := calibrate.NewMachine(preset, library)
	cases, err := read(m, filepath.Join(folder, "h100_nccl.csv"))
	if err != nil {
		return err
	}
	apart, err := machinesApart(m, cases, filepath.Join(folder, "h200_nccl.csv"))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n## Collectives on a machine of another kind\n\n4 NVIDIA H100 of one host, NCCL 2.28.9, by the preset h200_8, of "+
		"which nothing is fitted to these times; gather,\nscatter and 16-bit floats are in no file that it is fitted to. Where both "+
		"machines were measured, their times are\n%s apart.\n\n", apart)
	calibrate.Table(w, m, preset.Transport(), cases, plain)
	return nil
}

// loadPreset loads the H200's preset, and the library of what was measured.
func loadPreset() (*topology.Topology, *ccl.Library, error) {
	preset, err := topology.Load("h200_8")
	if err != nil {
		return nil, nil, err
	}
	library, err := ccl.LoadLibrary("nccl-2.28")
	return preset, library, err
}

// machinesApart is how much longer the cases took than the same calls in another file.
func machinesApart(m *calibrate.Machine, cases []calibrate.Case, file string) (*calibrate.Errors, error) {
	others, err := read(m, file)
	if err != nil {
		return nil, err
	}
	type call struct {
		kind        collective.Kind
		world, size int
		bytes       int64
	}
	times := map[call]float64{}
	for _, c := range others {
		if c.Plain() {
			times[call{c.Collective, c.World, c.ElemSize, c.Bytes}] = c.Micros
		}
	}
	apart := &calibrate.Errors{}
	for _, c := range cases {
		if there, ok := times[call{c.Collective, c.World, c.ElemSize, c.Bytes}]; ok {
			apart.Add(c.Micros, there)
		}
	}
	return apart, nil
}
