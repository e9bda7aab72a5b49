package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// products compares products of matrices on one H200.
func products(w io.Writer, folder string) error {
	preset, err := topology.Load("h200_8")
	if err != nil {
		return err
	}
	fmt.Fprint(w, "\n## Products of matrices on H200\n\nThe aim is a mean of 6.5. Each file is predicted with the preset's figures, "+
		"and with those fitted to the first two files. The third is of another machine, operands by rows and by columns, most\n"+
		"of them with rows of odd lengths; of the preset the factors for these lie between both machines'.\n\n"+
		"| | preset | fitted |\n|---|---|---|\n")
	var files [][]calibrate.Product
	names := []string{"h200_gemm.csv", "h200_gemm_odd_shapes.csv", "h200_layouts.csv"}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		list, err := calibrate.ParseProducts(name, data)
		if err != nil {
			return err
		}
		files = append(files, list)
	}
	all := slices.Concat(files[0], files[1])
	fitted, err := calibrate.FitProducts(preset, all)
	if err != nil {
		return err
	}
	for i, list := range append(files, all) {
		name := "the first two"
		if i < len(names) {
			name = names[i]
		}
		fmt.Fprintf(w, "| %s, %d products | %s | %s |\n", name, len(list), calibrate.CompareProducts(preset, list), calibrate.CompareProducts(fitted, list))
	}
	c := fitted.Compute()
	fmt.Fprintf(w, "\nFitted: f16 %.3f and f32 %.3f TFLOPS a PE, kernels %v\n", float64(c.MatrixF16)/1e12, float64(c.MatrixF32)/1e12, fitted.Kernels().Spec())
	return nil
}
