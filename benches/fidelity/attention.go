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

// attention compares fused attention and its gradients on one H200.
func attention(w io.Writer, folder string) error {
	preset, rows, err := recorded(folder, "h200_layers.csv")
	if err != nil {
		return err
	}
	fmt.Fprint(w, "\n## Attention on H200\n\nscaled_dot_product_attention of PyTorch, 49 to 8192 rows of depth 32 to 128, causal and not, by the preset h200_8, whose figures\n"+
		"are read off these times. Nothing is fitted to the attention among the calls of shapes.py.\n\n| | results | with gradients |\n|---|---|---|\n")
	for _, d := range []dtype.DType{dtype.BF16, dtype.F32} {
		var passes [2]calibrate.Errors
		for _, record := range rows {
			of, kind, known := parseAttention(record[0])
			if !known || kind != d {
				continue
			}
			micros, err := strconv.ParseFloat(record[1], 64)
			if err != nil {
				return err
			}
			took, pass := attended(preset, d, of), 0
			if strings.HasSuffix(record[0], gradients) {
				of.Backward, pass = true, 1
				took += attended(preset, d, of)
			}
			passes[pass].Add(took, micros)
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", d.Name(), &passes[0], &passes[1])
	}
	return nil
}

const gradients = ", with gradients"

// parseAttention reads a call's name: "attention causal bf16 64 12 197 64"; others are no attention.
func parseAttention(name string) (of network.Attention, d dtype.DType, known bool) {
	words := strings.Fields(strings.TrimSuffix(name, gradients))
	if words[0] != "attention" {
		return of, d, false
	}
	if of.Causal = words[1] == "causal"; of.Causal {
		words = words[1:]
	}
	sizes := [4]int{}
	for i, text := range words[2:] {
		sizes[i], _ = strconv.Atoi(text)
	}
	of.Heads, of.Rows, of.Columns, of.Depth, of.ValueDepth = sizes[0]*sizes[1], sizes[2], sizes[2], sizes[3], sizes[3]
	return of, dtypes[words[1]], true
}

// attended is how long the kernels of an attention take, in µs.
func attended(t *topology.Topology, d dtype.DType, of network.Attention) float64 {
	return lasting(t, network.AttentionCost(t, d, of))
}
