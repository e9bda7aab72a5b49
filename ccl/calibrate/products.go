package calibrate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/optimize"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Product is the measured time of a product of matrices.
type Product struct {
	network.Product
	DType  dtype.DType
	Micros float64
}

// productColumns are those of a file of products, of which the last may be missing: operands then lie in memory by rows.
var productColumns = []string{"dtype", "m", "n", "k", "us", "layout"}

// ParseProducts reads CSV with the columns dtype, m, n, k and us, and perhaps layout, see [network.Product.WithLayout].
// Rows of dtypes whose names begin with memcpy are left out. The error is an *[InputError].
func ParseProducts(file string, data []byte) ([]Product, error) {
	r := csv.NewReader(strings.NewReader(string(data)))
	header, err := r.Read()
	whole := strings.Join(productColumns, ",")
	least := strings.TrimSuffix(whole, ",layout")
	if names := strings.Join(header, ","); err != nil || names != least && names != whole {
		return nil, &InputError{file, 1, 1, fmt.Sprintf("the header must be %s, or %s", least, whole)}
	}
	var list []Product
	for {
		record, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, placed(file, err, record, len(header))
		case strings.HasPrefix(record[0], "memcpy"):
			continue
		}
		p, column, err := parseProduct(record)
		if err != nil {
			line, at := r.FieldPos(column)
			return nil, &InputError{file, line, at, err.Error()}
		}
		list = append(list, p)
	}
}

// parseProduct reads a row, or says in which column it is wrong.
func parseProduct(record []string) (p Product, column int, err error) {
	if p.DType, err = dtype.Parse(record[0]); err != nil {
		return p, 0, err
	}
	for i, into := range []*int{&p.M, &p.N, &p.K} {
		if *into, err = strconv.Atoi(record[i+1]); err != nil || *into < 1 || *into > 1<<24 {
			return p, i + 1, fmt.Errorf("%s must be a whole number from 1 to %d, not %q", productColumns[i+1], 1<<24, record[i+1])
		}
	}
	if p.Micros, err = strconv.ParseFloat(record[4], 64); err != nil || !(p.Micros > 0 && p.Micros < 1e9) {
		return p, 4, fmt.Errorf("us must be a time in µs above 0, not %q", record[4])
	}
	if len(record) > 5 {
		p.Product, err = p.WithLayout(record[5])
	}
	return p, 5, err
}

// PredictProduct is how long a device of a topology takes for a product, in µs.
func PredictProduct(t *topology.Topology, p Product) float64 {
	cost := network.MatMulCost(t, p.DType, p.Product)
	return float64(network.New(sim.NewEngine(), t).KernelTime(cost)) / float64(sim.Microsecond)
}

// The figures of products that are fitted, by their place.
const (
	ofF16 = iota
	ofF32
	ofLaunch
	ofTile
	ofSmallTile
	ofSplit
	ofDrop
	ofAfter
	ofEven
	ofOdd
	productFigures
)

// FitProducts finds the kernels section, and the rates of the matrix units, with which predictions are closest to
// products, beginning with a topology that has one.
func FitProducts(t *topology.Topology, products []Product) (*topology.Topology, error) {
	if len(products) == 0 || t.Kernels() == nil {
		return nil, errors.New("there is nothing to fit: no measured product, or no kernels section to start from")
	}
	k, c := t.Kernels(), t.Compute()
	start := [productFigures]float64{
		ofF16: float64(c.MatrixF16) / 1e12, ofF32: float64(c.MatrixF32) / 1e12, ofLaunch: float64(k.Launch),
		ofTile: float64(k.Tile), ofSmallTile: k.SmallTile, ofSplit: float64(k.Split), ofDrop: k.Drop, ofAfter: float64(k.After),
		ofEven: k.Even, ofOdd: k.Odd,
	}
	with := func(x []float64) *topology.Topology {
		v := start
		for i := range v {
			v[i] *= math.Exp(max(-3, min(3, x[i])))
		}
		return t.WithKernels(&topology.Kernels{
			Launch: int64(v[ofLaunch]), Tile: int64(v[ofTile]), SmallTile: v[ofSmallTile], Split: int64(v[ofSplit]),
			Drop: v[ofDrop], After: int64(v[ofAfter]), Even: max(1, v[ofEven]), Odd: max(1, v[ofOdd]),
			OddResult: max(1, v[ofOdd]) * k.OddResult / k.Odd, Collective: k.Collective,
		}, v[ofF16], v[ofF32])
	}
	problem := optimize.Problem{Func: func(x []float64) float64 { return productLoss(with(x), products, x) }}
	settings := optimize.Settings{MajorIterations: 4000, Concurrent: 1}
	found, err := optimize.Minimize(problem, make([]float64, productFigures), &settings, &optimize.NelderMead{SimplexSize: 0.2})
	if err != nil && found == nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	return with(found.X), nil
}

// productLoss is what the fit of products makes least: see scale and prior.
func productLoss(t *topology.Topology, products []Product, x []float64) float64 {
	sum := 0.0
	for _, p := range products {
		r := math.Log(PredictProduct(t, p)/p.Micros) / scale
		sum += 2 * (math.Sqrt(1+r*r) - 1)
	}
	for _, d := range x {
		sum += d * d / (prior * prior)
	}
	return sum
}

// CompareProducts says how far predictions of products are off.
func CompareProducts(t *topology.Topology, products []Product) *Errors {
	e := &Errors{}
	for _, p := range products {
		e.Add(PredictProduct(t, p), p.Micros)
	}
	return e
}
