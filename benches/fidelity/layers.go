package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// table reads the numbers of a CSV file with a header.
func table(file string) (header []string, rows [][]float64, err error) {
	texts, err := records(file)
	if err != nil {
		return nil, nil, err
	}
	for _, record := range texts[1:] {
		var row []float64
		for _, text := range record {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", file, err)
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	return texts[0], rows, nil
}

// layers compares an MLP in tensor parallel on 2, 3 and 4 H200: two products of a rank, then an all_reduce.
func layers(w io.Writer, folder string) error {
	preset, library, err := loadPreset()
	if err != nil {
		return err
	}
	_, rows, err := table(filepath.Join(folder, "h200_tp_mlp.csv"))
	if err != nil {
		return err
	}
	fmt.Fprint(w, "\n## An MLP in tensor parallel on H200\n\nfloat16, h → 4h → h, by the preset h200_8, of which nothing is fitted "+
		"to this. The step is the products and then the all_reduce.\n\n| | step | products | all_reduce |\n|---|---|---|---|\n")
	m := calibrate.NewMachine(preset, library)
	for world := 2.0; world <= 4; world++ {
		var step, compute, reduce calibrate.Errors
		for _, r := range rows {
			if r[0] != world {
				continue
			}
			products, sum, err := mlp(m, preset, int(r[0]), int(r[1]), int(r[2]))
			if err != nil {
				return err
			}
			step.Add(products+sum, r[3])
			compute.Add(products, r[4])
			reduce.Add(sum, r[5])
		}
		fmt.Fprintf(w, "| %.0f GPUs | %s | %s | %s |\n", world, &step, &compute, &reduce)
	}
	return nil
}

// mlp predicts the products of a rank and the all_reduce of an MLP, in µs.
func mlp(m *calibrate.Machine, t *topology.Topology, world, hidden, tokens int) (products, reduce float64, err error) {
	inner := 4 * hidden / world
	for _, p := range []network.Product{{M: tokens, N: inner, K: hidden}, {M: tokens, N: hidden, K: inner}} {
		products += calibrate.PredictProduct(t, calibrate.Product{Product: p, DType: dtype.F16})
	}
	c, err := m.Case(calibrate.Row{
		Collective: collective.AllReduce, World: world, Bytes: int64(2 * hidden * tokens), Micros: 1, Variant: "default",
		ElemSize: 2, Calls: ccl.MeasuredCalls,
	})
	if err != nil {
		return 0, 0, err
	}
	return products, m.Predict(&c, t.Transport()), nil
}
