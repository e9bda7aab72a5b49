package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// another compares a machine of another kind, of whose times nothing is fitted: 4 H100, whose links are an H200's.
func another(w io.Writer, folder string) error {
	preset, err := topology.Load("h200_8")
	if err != nil {
		return err
	}
	library, err := ccl.LoadLibrary("nccl-2.28")
	if err != nil {
		return err
	}
	m := calibrate.NewMachine(preset, library)
	cases, err := read(m, filepath.Join(folder, "h100_nccl.csv"))
	if err != nil {
		return err
	}
	apart, err := machinesApart(cases, filepath.Join(folder, "h200_nccl.csv"))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n## Collectives on a machine of another kind\n\n4 NVIDIA H100 of one host, NCCL 2.28.9, by the preset h200_8, of "+
		"which nothing is fitted to these times; gather,\nscatter and 16-bit floats are in no file that it is fitted to. Where both "+
		"machines were measured, their times are\n%s apart.\n\n| | below 1 MB | from 1 MB on |\n|---|---|---|\n", apart)
	for _, kind := range kindsOf(cases) {
		of := func(c *calibrate.Case) bool { return c.Collective == kind }
		fmt.Fprintf(w, "| %s | %s | %s |\n", kind, among(m, preset, cases, of, isSmall), among(m, preset, cases, of, isLarge))
	}
	every := func(*calibrate.Case) bool { return true }
	fmt.Fprintf(w, "| all | %s | %s |\n", among(m, preset, cases, every, isSmall), among(m, preset, cases, every, isLarge))
	return nil
}

func isSmall(c *calibrate.Case) bool { return !isLarge(c) }

func isLarge(c *calibrate.Case) bool { return c.Bytes >= 1<<20-4096 }

// among are the errors of a preset's predictions of the cases of which both hold.
func among(m *calibrate.Machine, preset *topology.Topology, cases []calibrate.Case, a, b func(*calibrate.Case) bool) *calibrate.Errors {
	return calibrate.Compare(m, preset.Transport(), cases, func(c *calibrate.Case) bool { return a(c) && b(c) })
}

// kindsOf lists the collectives of the cases, in the order of their table.
func kindsOf(cases []calibrate.Case) []collective.Kind {
	seen := map[collective.Kind]bool{}
	var kinds []collective.Kind
	for i := range cases {
		if k := cases[i].Collective; !seen[k] {
			seen[k] = true
			kinds = append(kinds, k)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// machinesApart is how much longer the cases took than the same calls in another file.
func machinesApart(cases []calibrate.Case, file string) (*calibrate.Errors, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rows, err := calibrate.Parse(file, data)
	if err != nil {
		return nil, err
	}
	type call struct {
		kind        collective.Kind
		world, size int
		bytes       int64
	}
	times := map[call]float64{}
	for _, r := range rows {
		if r.Variant == "default" {
			times[call{r.Collective, r.World, r.ElemSize, r.Bytes}] = r.Micros
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
