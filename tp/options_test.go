package tp_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/tp"
)

// counting fills a parameter with 0, 1, 2, …
func counting(weight *tensor.Tensor) error {
	a := zeros(weight.Shape()...)
	for i := range a.values {
		a.values[i] = float64(i)
	}
	return weight.CopyFrom(a.tensor(weight.DType()).Tensor)
}

// The parts of all ranks are the whole parameter, whatever their number. With a stride each rank has a piece of each of
// as many blocks: as of the three projections of an attention.
func TestParametersAreDivided(t *testing.T) {
	whole := zeros(24, 12)
	for i := range whole.values {
		whole.values[i] = float64(i)
	}
	blocks := func(dim, r, n, stride int) array {
		var pieces []array
		for k := range stride {
			pieces = append(pieces, whole.part(dim, k, stride).part(dim, r, n))
		}
		return joined(dim, pieces...)
	}
	for _, n := range []int{1, 2, 4} {
		for _, stride := range []int{1, 3} {
			o := tp.LinearOptions{InputSize: 12, OutputSize: 24, Init: counting, Stride: stride}
			onRanks(t, n, func(c *tp.Comm) (any, error) {
				column, err := tp.NewColumnParallelLinear(c, tp.ColumnOptions{LinearOptions: o})
				if err != nil {
					return nil, err
				}
				row, err := tp.NewRowParallelLinear(c, tp.RowOptions{LinearOptions: o})
				if err != nil {
					return nil, err
				}
				table, err := tp.NewVocabParallelEmbedding(c, tp.EmbeddingOptions{NumEmbeddings: 24, EmbeddingDim: 12, Init: counting})
				if err != nil {
					return nil, err
				}
				what := fmt.Sprintf("tp %d, stride %d, rank %d: ", n, stride, c.Rank)
				expect(t, what+"column", held{column.Weight}.array(), blocks(0, c.Rank, n, stride), exactly)
				expect(t, what+"row", held{row.Weight}.array(), blocks(1, c.Rank, n, stride), exactly)
				expect(t, what+"embedding", held{table.Weight}.array(), whole.part(0, c.Rank, n), exactly)
				if column.Bias != nil || row.Bias != nil || column.Weight.DType() != dtype.F32 {
					t.Error(what + "the defaults are no bias and float32")
				}
				return nil, nil
			})
		}
	}
}

func TestNormal(t *testing.T) {
	a, b, c := zeros(200, 50).tensor(dtype.F32), zeros(200, 50).tensor(dtype.F64), zeros(200, 50).tensor(dtype.F32)
	for i, x := range []held{a, b, c} {
		if err := tp.Normal(uint64(7+i/2), 0.02)(x.Tensor); err != nil {
			t.Fatal(err)
		}
	}
	sum, squares := 0.0, 0.0
	for i, x := range a.array().values {
		if math.Abs(x-b.array().values[i]) > 1e-8 {
			t.Fatal("the same seed gives other numbers")
		}
		sum, squares = sum+x, squares+x*x
	}
	if mean, deviation := sum/1e4, math.Sqrt(squares/1e4); math.Abs(mean) > 1e-3 || math.Abs(deviation-0.02) > 1e-3 {
		t.Errorf("mean %v, deviation %v", mean, deviation)
	}
	if fmt.Sprint(a.array()) == fmt.Sprint(c.array()) {
		t.Error("another seed gives the same numbers")
	}
	boom := errors.New("boom")
	onRanks(t, 1, func(c *tp.Comm) (any, error) {
		o := tp.LinearOptions{InputSize: 1, OutputSize: 1, Init: func(*tensor.Tensor) error { return boom }}
		if _, err := tp.NewColumnParallelLinear(c, tp.ColumnOptions{LinearOptions: o}); !errors.Is(err, boom) {
			t.Errorf("got %v", err)
		}
		return nil, nil
	})
}

// A weight that is passed to the forward pass, as the output layer's that shares the embedding's.
func TestAWeightOfAnotherLayer(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 15))
	data := randomLayer(func(shape ...int) array { return whole(rng, shape...) })
	data.b = zeros(outputs)
	want := newLinearOracle(data.x, data.w, data.b, data.dy)
	onRanks(t, 2, func(c *tp.Comm) (any, error) {
		o := columnOptions(dtype.F32, false, false, true)
		o.SkipWeightParamAllocation = true
		l, err := tp.NewColumnParallelLinear(c, o)
		if err != nil {
			return nil, err
		}
		x, weight := data.x.tensor(dtype.F32).Tensor, data.w.part(0, c.Rank, 2).tensor(dtype.F32).Tensor
		if _, err := l.Forward(x); err == nil || !strings.Contains(err.Error(), "weight was not supplied") || l.Weight != nil {
			t.Errorf("got %v", err)
		}
		out, err := l.ForwardWith(x, weight, true)
		if err != nil {
			return nil, err
		}
		g, err := l.Backward(out.Saved, data.dy.tensor(dtype.F32).Tensor)
		if err != nil {
			return nil, err
		}
		var y, dx array
		err = read(c, into{&y, out.Output}, into{&dx, g.Input})
		expect(t, "output", y, want.y, exactly)
		expect(t, "gradient", dx, want.dx, exactly)
		return nil, err
	})
}

// Without reductions each rank has its share; they add up to what the others have.
func TestSharesAreLeftToTheCaller(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 16))
	data := randomLayer(func(shape ...int) array { return whole(rng, shape...) })
	want := newLinearOracle(data.x, data.w, zeros(outputs), data.dy)
	const n = 4
	for _, expert := range []bool{false, true} {
		c := newCluster(t, n)
		shares, outs := make([]array, n), make([]array, n)
		err := c.spawn(t, func(_ *multiprocessing.Process, comm *tp.Comm) error {
			column := columnOptions(dtype.F32, false, false, true)
			column.DisableGradReduce, column.ExplicitExpertComm = !expert, expert
			got, err := passColumn(comm, column, data)
			if err != nil {
				return err
			}
			row := rowOptions(dtype.F32, false, true, true)
			row.ExplicitExpertComm = true
			out, err := passRow(comm, row, data)
			shares[comm.Rank], outs[comm.Rank] = got.dx, out.y
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "gradient", summed(shares...), want.dx, exactly)
		expect(t, "output", summed(outs...), want.y, exactly)
		if len(c.Log) != 0 {
			t.Errorf("there was a %s", c.Log[0].Name)
		}
	}
}

// complains verifies an error's text.
func complains(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestLinearLayersThatCannotBeMade(t *testing.T) {
	onRanks(t, 2, func(c *tp.Comm) (any, error) {
		for _, k := range []struct {
			comm *tp.Comm
			o    tp.LinearOptions
			want string // of the column-parallel layer; "" if it can be made
			row  string
		}{
			{nil, tp.LinearOptions{InputSize: 4, OutputSize: 6}, "tensor model parallel group is not initialized", "tensor model parallel group is not initialized"},
			{c, tp.LinearOptions{InputSize: 4, OutputSize: 5}, "output size (5) is not divisible by tensor parallel size (2)", ""},
			{c, tp.LinearOptions{InputSize: 5, OutputSize: 4}, "", "input size (5) is not divisible by tensor parallel size (2)"},
			{c, tp.LinearOptions{InputSize: 4, OutputSize: 6, Stride: 2}, "(6) is not divisible by tensor parallel size × stride (4)", ""},
			{c, tp.LinearOptions{InputSize: 4}, "input size 4, output size 0", "input size 4, output size 0"},
			{c, tp.LinearOptions{InputSize: 4, OutputSize: 6, DType: dtype.I8}, "linear layer of int8", "linear layer of int8"},
			{c, tp.LinearOptions{InputSize: 4, OutputSize: 6, SequenceParallel: true}, "", "InputIsParallel must be true"},
			{c, tp.LinearOptions{InputSize: 4, OutputSize: 6, ExplicitExpertComm: true}, "", "SkipBiasAdd must be true"},
		} {
			_, column := tp.NewColumnParallelLinear(k.comm, tp.ColumnOptions{LinearOptions: k.o})
			_, row := tp.NewRowParallelLinear(k.comm, tp.RowOptions{LinearOptions: k.o})
			for want, err := range map[string]error{"column: " + k.want: column, "row: " + k.row: row} {
				if _, text, _ := strings.Cut(want, ": "); text != "" {
					complains(t, err, text)
				} else if err != nil {
					t.Errorf("%s%v", want, err)
				}
			}
		}
		_, err := tp.NewColumnParallelLinear(c, tp.ColumnOptions{LinearOptions: tp.LinearOptions{InputSize: 4, OutputSize: 5}})
		var divisible *tp.NotDivisibleError
		if !errors.As(err, &divisible) || divisible.Size != 5 || divisible.By != 2 {
			t.Errorf("got %v", err)
		}
		return nil, nil
	})
}

func TestLinearLayersRejectWhatDoesNotFit(t *testing.T) {
	f32 := func(shape ...int) *tensor.Tensor { return zeros(shape...).tensor(dtype.F32).Tensor }
	onRanks(t, 2, func(c *tp.Comm) (any, error) {
		o := tp.LinearOptions{InputSize: 4, OutputSize: 6}
		l, err1 := tp.NewColumnParallelLinear(c, tp.ColumnOptions{LinearOptions: o})
		r, err2 := tp.NewRowParallelLinear(c, tp.RowOptions{LinearOptions: o, InputIsParallel: true})
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		complains(t, second(l.Forward(f32(2, 3))), "the input has shape [2, 3], not […, 4] as expected")
		complains(t, second(l.Forward(f32())), "the input has shape [], not [4] as expected")
		complains(t, second(r.Forward(f32(2, 4))), "the input has shape [2, 4], not […, 2] as expected")
		complains(t, second(l.ForwardWith(f32(2, 4), f32(6, 4), false)), "the weight has shape [6, 4], not [3, 4] as expected")
		complains(t, second(l.Forward(zeros(2, 4).tensor(dtype.F16).Tensor)), "matmul of float16 and float32: want one dtype")
		out, err := l.Forward(f32(2, 4))
		if err != nil {
			return nil, err
		}
		complains(t, second(l.Backward(out.Saved, f32(2, 6))), "the gradient of the output has shape [2, 6], not […, 3] as expected")
		complains(t, second(r.Backward(out.Saved, f32(2, 6))), "backward needs what this layer's forward saved")
		complains(t, second(l.Backward(nil, f32(2, 3))), "backward needs what this layer's forward saved")
		r.Weight = f32(6, 3)
		complains(t, second(r.Forward(f32(2, 2))), "the weight has shape [6, 3], not [6, 2] as expected")
		complains(t, tp.AllReduceSequenceParallelGrads(nil, f32(2)), "tensor model parallel group is not initialized")
		return nil, tp.AllReduceSequenceParallelGrads(c)
	})
}

// The rows of an input that has none.
func TestLinearLayersOfNoTokens(t *testing.T) {
	for r, got := range onRanks(t, 2, func(c *tp.Comm) (passed, error) {
		l, err := tp.NewColumnParallelLinear(c, columnOptions(dtype.F32, false, true, false))
		if err != nil {
			return passed{}, err
		}
		return pass(c, l, zeros(0, batch, inputs).tensor(dtype.F32), zeros(0, batch, outputs).tensor(dtype.F32))
	}) {
		what := fmt.Sprintf("rank %d", r)
		expect(t, what, got.y, zeros(0, batch, outputs), exactly)
		expect(t, what, got.dx, zeros(0, batch, inputs), exactly)
		expect(t, what, got.dw, zeros(outputs/2, inputs), exactly)
		expect(t, what, got.db, zeros(outputs/2), exactly)
	}
}
