package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// convolution is a row of h200_convolutions.csv.
type convolution struct {
	network.Convolution
	dtype  dtype.DType
	micros float64
}

// convolutions compares convolutions and their gradients on one H200.
func convolutions(w io.Writer, folder string) error {
	preset, err := topology.Load("h200_8")
	if err != nil {
		return err
	}
	list, err := readConvolutions(filepath.Join(folder, "h200_convolutions.csv"))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n## Convolutions on H200\n\n%d calls of PyTorch with cuDNN 9.19, without cudnn.benchmark, in float32 that may be rounded, bfloat16 and "+
		"float16, of images\nin both layouts, by the preset h200_8, whose figures are fitted to these times. Nothing is fitted to the convolutions\n"+
		"among the calls of shapes.py. cuDNN's choices are not always what takes least: the worst are gradients of images with few channels.\n\n"+
		"| | results | gradients by images | gradients by weights |\n|---|---|---|---|\n", len(list))
	for _, kind := range []string{"kernels of one element", "fewer than 16 channels", "groups", "a group for each channel", "others"} {
		var passes [3]calibrate.Errors
		count := 0
		for _, c := range list {
			if c.kind() == kind {
				passes[c.Pass].Add(c.predicted(preset), c.micros)
				count++
			}
		}
		fmt.Fprintf(w, "| %s, %d | %s | %s | %s |\n", kind, count, &passes[network.Forward], &passes[network.Data], &passes[network.Weight])
	}
	list, err = readConvolutions(filepath.Join(folder, "h200_drawn.csv"))
	if err != nil {
		return err
	}
	var passes [3]calibrate.Errors
	for _, c := range list {
		passes[c.Pass].Add(c.predicted(preset), c.micros)
	}
	fmt.Fprintf(w, "| drawn at random, %d, to which nothing is fitted | %s | %s | %s |\n", len(list), &passes[network.Forward], &passes[network.Data], &passes[network.Weight])
	return nil
}

// kind is a row of the table.
func (c *convolution) kind() string {
	switch {
	case c.Groups > 1 && c.Groups == c.Inner:
		return "a group for each channel"
	case c.Groups > 1:
		return "groups"
	case min(c.Inner, c.Outer) < 16:
		return "fewer than 16 channels"
	case c.Taps == 1 && c.Strides == 1:
		return "kernels of one element"
	}
	return "others"
}

// predicted is how long the kernels take one after the other, in µs.
func (c *convolution) predicted(t *topology.Topology) float64 {
	return lasting(t, rounded(t, c.dtype, network.ConvolutionCost(t, c.dtype, c.Convolution)))
}

func readConvolutions(file string) ([]convolution, error) {
	rows, err := records(file)
	if err != nil {
		return nil, err
	}
	list := make([]convolution, len(rows)-1)
	for i, record := range rows[1:] {
		row := map[string]string{}
		for at, name := range rows[0] {
			row[name] = record[at]
		}
		if list[i], err = parseConvolution(row); err != nil {
			return nil, fmt.Errorf("%s, row %d: %w", file, i+1, err)
		}
	}
	return list, nil
}

// parseConvolution reads a row. A transposed convolution is the gradient by the images of another one.
func parseConvolution(row map[string]string) (c convolution, err error) {
	whole := func(text string) int {
		v, wrong := strconv.Atoi(text)
		if wrong != nil {
			err = wrong
		}
		return v
	}
	turned, stride, padding := row["turned"] == "1", whole(row["stride"]), whole(row["padding"])
	sides, kernel := strings.Split(row["sides"], "x"), strings.Split(row["kernel"], "x")
	c.Side, c.Result, c.Taps, c.Strides = 1, 1, 1, 1
	for at := range sides {
		side, taps := whole(sides[at]), whole(kernel[at])
		result := (side+2*padding-taps)/stride + 1
		if turned {
			result = (side-1)*stride - 2*padding + taps
		}
		c.Side, c.Result, c.Taps, c.Strides = c.Side*side, c.Result*result, c.Taps*taps, c.Strides*stride
	}
	c.Batch, c.Inner, c.Outer, c.Groups = whole(row["batch"]), whole(row["inner"]), whole(row["outer"]), whole(row["groups"])
	c.Pass = map[string]network.Pass{"forward": network.Forward, "data": network.Data, "weight": network.Weight}[row["kind"]]
	if turned {
		c.Inner, c.Outer, c.Side, c.Result = c.Outer, c.Inner, c.Result, c.Side
		c.Pass = [...]network.Pass{network.Forward: network.Data, network.Data: network.Forward, network.Weight: network.Weight}[c.Pass]
	}
	c.Last, c.Rounded = row["layout"] == "nhwc" && c.Inner > 1, true
	c.dtype = dtypes[row["dtype"]]
	micros, wrong := strconv.ParseFloat(row["us"], 64)
	if wrong != nil {
		err = wrong
	}
	c.micros = micros
	return c, err
}
