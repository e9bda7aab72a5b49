package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// judgedLayers is how many layers at the end of h200_recurrent.csv the preset is judged by, and not read off.
const judgedLayers = 60

// recurrent compares LSTM, GRU and RNN, and their gradients, on one H200.
func recurrent(w io.Writer, folder string) error {
	preset, rows, err := recorded(folder, "h200_recurrent.csv")
	if err != nil {
		return err
	}
	fmt.Fprint(w, "\n## LSTM, GRU and RNN on H200\n\nCalls of PyTorch with cuDNN 9.19, and calls with their gradients, by the preset h200_8, whose figures are read off\n"+
		"the first of these times. cuDNN makes a kernel or two for every step; where layers are small, and not of bfloat16, one for\nall steps.\n\n"+
		"| | bfloat16 | float16 | float32 |\n|---|---|---|---|\n")
	chosen := rows[:len(rows)-2*judgedLayers]
	for _, part := range []struct {
		name string
		rows [][]string
	}{{"read off", chosen}, {"drawn at random, to which nothing is fitted", rows[len(chosen):]}} {
		for at, of := range []string{"results", "with gradients"} {
			kinds := map[dtype.DType]*calibrate.Errors{dtype.BF16: {}, dtype.F16: {}, dtype.F32: {}}
			for _, record := range part.rows {
				if strings.HasSuffix(record[0], gradients) != (at == 1) {
					continue
				}
				if err := addRecurrent(kinds, preset, record); err != nil {
					return err
				}
			}
			fmt.Fprintf(w, "| %s, %s | %s | %s | %s |\n", part.name, of, kinds[dtype.BF16], kinds[dtype.F16], kinds[dtype.F32])
		}
	}
	return nil
}

// addRecurrent compares one call.
func addRecurrent(kinds map[dtype.DType]*calibrate.Errors, t *topology.Topology, record []string) error {
	micros, err := strconv.ParseFloat(record[1], 64)
	if err != nil {
		return err
	}
	of, d, err := parseRecurrent(strings.TrimSuffix(record[0], gradients))
	if err != nil {
		return err
	}
	took := lasting(t, rounded(t, d, network.RecurrentCost(t, d, of)))
	if strings.HasSuffix(record[0], gradients) {
		of.Backward = true
		took += lasting(t, rounded(t, d, network.RecurrentCost(t, d, of)))
	}
	kinds[d].Add(took, micros)
	return nil
}

// parseRecurrent reads a call's name: kind, dtype, steps, batch, inner, width, layers, and perhaps one word more.
func parseRecurrent(name string) (r network.Recurrent, d dtype.DType, err error) {
	words := strings.Fields(name)
	if len(words) < 7 {
		return r, d, fmt.Errorf("%q is no recurrent layer", name)
	}
	var sizes [5]int
	for i := range sizes {
		if sizes[i], err = strconv.Atoi(words[2+i]); err != nil {
			return r, d, err
		}
	}
	r = network.Recurrent{
		Gates: map[string]int{"LSTM": 4, "GRU": 3, "RNN": 1}[words[0]], Steps: sizes[0], Rows: sizes[0] * sizes[1], Inner: sizes[2],
		Width: sizes[3], Layers: sizes[4], Directions: 1, Rounded: true,
	}
	if len(words) > 7 {
		switch words[7] {
		case "bidirectional":
			r.Directions = 2
		case "projected":
			r.Projected = r.Width / 2
		case "packed":
			r.Packed, r.Rows = true, 0
			for i := range sizes[1] { // as packed in recurrent.py
				r.Rows += sizes[0] - i*3*sizes[0]/4/sizes[1]
			}
		}
	}
	return r, dtypes[words[1]], nil
}
