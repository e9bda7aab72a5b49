package tp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/tp"
)

// The sizes divide by every degree.
const sequence, batch, inputs, outputs = 24, 2, 24, 48

var trained = []dtype.DType{dtype.F16, dtype.BF16, dtype.F32, dtype.F64}

// layer is the data of one linear layer: its parameters, an input, and a gradient of the output.
type layer struct{ x, w, b, dy array }

func randomLayer(make func(shape ...int) array) layer {
	return layer{make(sequence, batch, inputs), make(outputs, inputs), make(outputs), make(sequence, batch, outputs)}
}

// passed is what a layer has made on a rank.
type passed struct{ y, bias, dx, dw, db array }

// pass runs a layer forward and backward.
func pass(c *tp.Comm, l linear, x, dy held) (passed, error) {
	out, err := l.Forward(x.Tensor)
	if err != nil {
		return passed{}, err
	}
	g, err := l.Backward(out.Saved, dy.Tensor)
	if err != nil {
		return passed{}, err
	}
	got := passed{}
	return got, read(c, into{&got.y, out.Output}, into{&got.bias, out.Bias}, into{&got.dx, g.Input}, into{&got.dw, g.Weight}, into{&got.db, g.Bias})
}

// read waits for tensors, and reads those that there are.
func read(c *tp.Comm, tensors ...into) error {
	for _, t := range tensors {
		if t.from == nil {
			continue
		}
		if err := c.Wait(t.from); err != nil {
			return err
		}
		*t.to = held{t.from}.array()
	}
	return nil
}

// into is a tensor to be read, and where to.
type into struct {
	to   *array
	from *tensor.Tensor
}

type linear interface {
	Forward(*tensor.Tensor) (tp.Output, error)
	Backward(*tp.Saved, *tensor.Tensor) (tp.Gradients, error)
}

// set makes a parameter what the test has for it.
func set(parameter *tensor.Tensor, to array) error {
	return parameter.CopyFrom(to.tensor(parameter.DType()).Tensor)
}

func columnOptions(d dtype.DType, sp, gather, skip bool) tp.ColumnOptions {
	return tp.ColumnOptions{
		LinearOptions: tp.LinearOptions{
			InputSize: inputs, OutputSize: outputs, DType: d, Bias: true, SkipBiasAdd: skip, SequenceParallel: sp,
		},
		GatherOutput: gather,
	}
}

// passColumn runs a rank's part of a column-parallel layer on its part of the data.
func passColumn(c *tp.Comm, o tp.ColumnOptions, d layer) (passed, error) {
	l, err := tp.NewColumnParallelLinear(c, o)
	if err != nil {
		return passed{}, err
	}
	if err := set(l.Weight, d.w.part(0, c.Rank, c.Size())); err != nil {
		return passed{}, err
	}
	if err := set(l.Bias, d.b.part(0, c.Rank, c.Size())); err != nil {
		return passed{}, err
	}
	x, dy := d.x, d.dy
	if o.SequenceParallel {
		x = x.part(0, c.Rank, c.Size())
	}
	if !o.GatherOutput {
		dy = dy.part(2, c.Rank, c.Size())
	}
	return pass(c, l, x.tensor(o.DType), dy.tensor(o.DType))
}

func TestColumnParallelLinear(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range degrees {
		for _, d := range trained {
			data := randomLayer(func(shape ...int) array { return noise(rng, d, shape...) })
			for mode := range 8 {
				sp, gather, skip := mode&1 != 0, mode&2 != 0, mode&4 != 0
				t.Run(fmt.Sprintf("tp%d/%v/sp=%v,gather=%v,skip=%v", n, d, sp, gather, skip), func(t *testing.T) {
					ranks := onRanks(t, n, func(c *tp.Comm) (passed, error) {
						return passColumn(c, columnOptions(d, sp, gather, skip), data)
					})
					checkColumn(t, ranks, data, columnOptions(d, sp, gather, skip), false)
				})
			}
		}
	}
}

// bounds are the slacks of a comparison: none when the numbers are whole.
func bounds(exact bool, d dtype.DType, k, n int, size array) func(int) float64 {
	if exact {
		return exactly
	}
	if d == dtype.F64 {
		return within(1e-12)
	}
	return rounding(d, k, n, size)
}

func checkColumn(t *testing.T, ranks []passed, data layer, o tp.ColumnOptions, exact bool) {
	t.Helper()
	n, tokens := len(ranks), sequence*batch
	b := data.b
	if o.SkipBiasAdd {
		b = zeros(outputs)
	}
	want := newLinearOracle(data.x, data.w, b, data.dy)
	for r, got := range ranks {
		y, size := want.y, want.ySize
		if !o.GatherOutput {
			y, size = y.part(2, r, n), size.part(2, r, n)
		}
		dx, dxSize := want.dx, want.dxSize
		if o.SequenceParallel {
			dx, dxSize = dx.part(0, r, n), dxSize.part(0, r, n)
		}
		what := fmt.Sprintf("rank %d: ", r)
		expect(t, what+"output", got.y, y, bounds(exact, o.DType, inputs, 0, size))
		expect(t, what+"gradient of the input", got.dx, dx, bounds(exact, o.DType, outputs, n, dxSize))
		expect(t, what+"gradient of the weight", got.dw, want.dw.part(0, r, n), bounds(exact, o.DType, tokens, 0, want.dwSize.part(0, r, n)))
		bias, db := array{}, want.db.part(0, r, n)
		if o.SkipBiasAdd {
			bias, db = data.b.part(0, r, n), array{}
		}
		expect(t, what+"bias", got.bias, bias, exactly)
		if db.shape != nil {
			expect(t, what+"gradient of the bias", got.db, db, bounds(exact, o.DType, tokens, 0, want.dbSize.part(0, r, n)))
		} else if got.db.shape != nil {
			t.Errorf("%sthere is a gradient of a bias that the caller adds", what)
		}
	}
}

func rowOptions(d dtype.DType, sp, parallel, skip bool) tp.RowOptions {
	return tp.RowOptions{
		LinearOptions: tp.LinearOptions{
			InputSize: inputs, OutputSize: outputs, DType: d, Bias: true, SkipBiasAdd: skip, SequenceParallel: sp,
		},
		InputIsParallel: parallel,
	}
}

func passRow(c *tp.Comm, o tp.RowOptions, d layer) (passed, error) {
	l, err := tp.NewRowParallelLinear(c, o)
	if err != nil {
		return passed{}, err
	}
	if err := set(l.Weight, d.w.part(1, c.Rank, c.Size())); err != nil {
		return passed{}, err
	}
	if err := set(l.Bias, d.b); err != nil {
		return passed{}, err
	}
	x, dy := d.x, d.dy
	if o.InputIsParallel {
		x = x.part(2, c.Rank, c.Size())
	}
	if o.SequenceParallel {
		dy = dy.part(0, c.Rank, c.Size())
	}
	got, err := pass(c, l, x.tensor(o.DType), dy.tensor(o.DType))
	if err == nil && o.SequenceParallel && !o.SkipBiasAdd {
		share := got.db.tensor(o.DType).Tensor
		if err := tp.AllReduceSequenceParallelGrads(c, share); err != nil {
			return got, err
		}
		return got, read(c, into{&got.db, share})
	}
	return got, err
}

func TestRowParallelLinear(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, n := range degrees {
		for _, d := range trained {
			data := randomLayer(func(shape ...int) array { return noise(rng, d, shape...) })
			for mode := range 8 {
				sp, parallel, skip := mode&1 != 0, mode&2 != 0, mode&4 != 0
				if sp && !parallel {
					continue
				}
				t.Run(fmt.Sprintf("tp%d/%v/sp=%v,parallel=%v,skip=%v", n, d, sp, parallel, skip), func(t *testing.T) {
					ranks := onRanks(t, n, func(c *tp.Comm) (passed, error) {
						return passRow(c, rowOptions(d, sp, parallel, skip), data)
					})
					checkRow(t, ranks, data, rowOptions(d, sp, parallel, skip), false)
				})
			}
		}
	}
}

func checkRow(t *testing.T, ranks []passed, data layer, o tp.RowOptions, exact bool) {
	t.Helper()
	n, tokens := len(ranks), sequence*batch
	b := data.b
	if o.SkipBiasAdd {
		b = zeros(outputs)
	}
	want := newLinearOracle(data.x, data.w, b, data.dy)
	for r, got := range ranks {
		y, size := want.y, want.ySize
		if o.SequenceParallel {
			y, size = y.part(0, r, n), size.part(0, r, n)
		}
		dx, dxSize := want.dx, want.dxSize
		if o.InputIsParallel {
			dx, dxSize = dx.part(2, r, n), dxSize.part(2, r, n)
		}
		what := fmt.Sprintf("rank %d: ", r)
		expect(t, what+"output", got.y, y, bounds(exact, o.DType, inputs, n, size))
		expect(t, what+"gradient of the input", got.dx, dx, bounds(exact, o.DType, outputs, 0, dxSize))
		expect(t, what+"gradient of the weight", got.dw, want.dw.part(1, r, n), bounds(exact, o.DType, tokens, 0, want.dwSize.part(1, r, n)))
		bias, db := array{}, want.db
		if o.SkipBiasAdd {
			bias, db = data.b, array{}
		}
		expect(t, what+"bias", got.bias, bias, exactly)
		if db.shape != nil {
			expect(t, what+"gradient of the bias", got.db, db, bounds(exact, o.DType, tokens, n, want.dbSize))
		} else if got.db.shape != nil {
			t.Errorf("%sthere is a gradient of a bias that the caller adds", what)
		}
	}
}

// Whole numbers are not rounded anywhere, so that not a bit may differ from the undivided layer, in any dtype.
func TestLinearLayersOfWholeNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	data := randomLayer(func(shape ...int) array { return whole(rng, shape...) })
	for _, n := range degrees {
		for _, d := range trained {
			for _, sp := range []bool{false, true} {
				t.Run(fmt.Sprintf("tp%d/%v/sp=%v", n, d, sp), func(t *testing.T) {
					column, row := columnOptions(d, sp, false, false), rowOptions(d, sp, true, false)
					checkColumn(t, onRanks(t, n, func(c *tp.Comm) (passed, error) { return passColumn(c, column, data) }), data, column, true)
					checkRow(t, onRanks(t, n, func(c *tp.Comm) (passed, error) { return passRow(c, row, data) }), data, row, true)
				})
			}
		}
	}
}
