package tp_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/tp"
)

// model is a small language model: tokens are looked up, go through two layers with a square in between, and to logits,
// of which the loss is taken. It has every layer of the package.
type model struct {
	comm     *tp.Comm
	embed    *tp.VocabParallelEmbedding
	up, head *tp.ColumnParallelLinear
	down     *tp.RowParallelLinear
}

// weights are the parameters of a whole model, in the order of model.parameters.
type weights [7]array

const inner = 24

func randomWeights(rng *rand.Rand, d dtype.DType) weights {
	return weights{
		noise(rng, d, vocabulary, hidden), noise(rng, d, inner, hidden), noise(rng, d, inner),
		noise(rng, d, hidden, inner), noise(rng, d, hidden), noise(rng, d, vocabulary, hidden), noise(rng, d, vocabulary),
	}
}

// divided says along which dimension each of the weights is divided; -1: not at all.
var divided = [7]int{0, 0, 0, 1, -1, 0, 0}

func newModel(c *tp.Comm, d dtype.DType, sp bool, w weights) (*model, error) {
	m := &model{comm: c}
	options := func(in, out int) tp.LinearOptions {
		return tp.LinearOptions{InputSize: in, OutputSize: out, DType: d, Bias: true, SequenceParallel: sp}
	}
	var err error
	if m.embed, err = tp.NewVocabParallelEmbedding(c, tp.EmbeddingOptions{
		NumEmbeddings: vocabulary, EmbeddingDim: hidden, DType: d, ReduceScatterEmbeddings: sp,
	}); err != nil {
		return nil, err
	}
	if m.up, err = tp.NewColumnParallelLinear(c, tp.ColumnOptions{LinearOptions: options(hidden, inner)}); err != nil {
		return nil, err
	}
	if m.down, err = tp.NewRowParallelLinear(c, tp.RowOptions{LinearOptions: options(inner, hidden), InputIsParallel: true}); err != nil {
		return nil, err
	}
	if m.head, err = tp.NewColumnParallelLinear(c, tp.ColumnOptions{LinearOptions: options(hidden, vocabulary)}); err != nil {
		return nil, err
	}
	for i, p := range m.parameters() {
		mine := w[i]
		if divided[i] >= 0 {
			mine = mine.part(divided[i], c.Rank, c.Size())
		}
		if err := set(p, mine); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *model) parameters() [7]*tensor.Tensor {
	return [7]*tensor.Tensor{m.embed.Weight, m.up.Weight, m.up.Bias, m.down.Weight, m.down.Bias, m.head.Weight, m.head.Bias}
}

// trace is what a forward pass leaves for the backward pass.
type trace struct {
	tokens         *tp.SavedTokens
	up, down, head *tp.Saved
	wide           *tensor.Tensor // before the square
	loss           *tp.CrossEntropy
}

// run computes the loss of each token, of shape [sequence, batch].
func (m *model) run(tokens, target array) (*tensor.Tensor, trace, error) {
	var s trace
	x, saved, err := m.embed.Forward(tokens.tensor(dtype.I64).Tensor)
	if err != nil {
		return nil, s, err
	}
	s.tokens = saved
	up, err := m.up.Forward(x)
	if err != nil {
		return nil, s, err
	}
	s.up, s.wide = up.Saved, up.Output
	square, err := tensor.Mul(up.Output, up.Output)
	if err != nil {
		return nil, s, err
	}
	down, err := m.down.Forward(square)
	if err != nil {
		return nil, s, err
	}
	head, err := m.head.Forward(down.Output)
	if err != nil {
		return nil, s, err
	}
	s.down, s.head = down.Saved, head.Saved
	loss, entropy, err := tp.VocabParallelCrossEntropy(m.comm, head.Output, target.tensor(dtype.I64).Tensor, 0)
	s.loss = entropy
	return loss, s, err
}

// gradients goes back, for dloss, and returns the gradients of the parameters.
func (m *model) gradients(s trace, dloss *tensor.Tensor) ([7]*tensor.Tensor, error) {
	var g [7]*tensor.Tensor
	grad, err := s.loss.Backward(dloss)
	if err != nil {
		return g, err
	}
	head, err := m.head.Backward(s.head, grad)
	if err != nil {
		return g, err
	}
	down, err := m.down.Backward(s.down, head.Input)
	if err != nil {
		return g, err
	}
	slope, err := tensor.Add(s.wide, s.wide)
	if err != nil {
		return g, err
	}
	if slope, err = tensor.Mul(slope, down.Input); err != nil {
		return g, err
	}
	up, err := m.up.Backward(s.up, slope)
	if err != nil {
		return g, err
	}
	table, err := m.embed.Backward(s.tokens, up.Input)
	return [7]*tensor.Tensor{table, up.Weight, up.Bias, down.Weight, down.Bias, head.Weight, head.Bias}, err
}

// learned is what a model has made of one batch on a rank: the losses, and the gradients of its parameters.
type learned struct {
	loss  array
	grads [7]array
	bits  []byte // of the losses
}

// lesson is a batch: with sequence parallelism tokens come as [batch, sequence], else as [sequence, batch].
type lesson struct {
	tokens, target, dloss array
}

func (l lesson) learn(c *tp.Comm, d dtype.DType, sp bool, w weights) (learned, error) {
	m, err := newModel(c, d, sp, w)
	if err != nil {
		return learned{}, err
	}
	tokens := l.tokens
	if sp {
		tokens = turned(tokens)
	}
	loss, s, err := m.run(tokens, l.target)
	if err != nil {
		return learned{}, err
	}
	g, err := m.gradients(s, l.dloss.tensor(max(d, dtype.F32)).Tensor)
	if err != nil {
		return learned{}, err
	}
	if sp {
		if err := tp.AllReduceSequenceParallelGrads(c, g[4]); err != nil {
			return learned{}, err
		}
	}
	var got learned
	for i := range g {
		if err := read(c, into{&got.grads[i], g[i]}); err != nil {
			return got, err
		}
	}
	err = read(c, into{&got.loss, loss})
	got.bits = loss.Gather()
	return got, err
}

func newLesson(rng *rand.Rand) lesson {
	_, tokens := tokensOf(rng, sequence, batch)
	_, target := tokensOf(rng, sequence, batch)
	return lesson{tokens, target, noise(rng, dtype.F32, sequence, batch)}
}

func (l lesson) on(t *testing.T, n int, d dtype.DType, sp bool, w weights) []learned {
	t.Helper()
	return onRanks(t, n, func(c *tp.Comm) (learned, error) { return l.learn(c, d, sp, w) })
}

// The model learns the same however it is divided, with sequence parallelism or without, and all ranks have the same
// losses to the last bit.
func TestAModelDoesNotDependOnItsDivision(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	for _, d := range trained {
		w, l := randomWeights(rng, d), newLesson(rng)
		alone := l.on(t, 1, d, false, w)[0]
		for _, n := range degrees {
			for _, sp := range []bool{false, true} {
				ranks := l.on(t, n, d, sp, w)
				for r, got := range ranks {
					what := fmt.Sprintf("%v, tp %d, sp %v, rank %d: ", d, n, sp, r)
					if !bytes.Equal(got.bits, ranks[0].bits) {
						t.Errorf("%sanother loss than rank 0 has", what)
					}
					// A few dozen roundings, of numbers that the layers have made some ten times larger.
					slack := func(a array) func(int) float64 { return within(max(1e-12, 30*unit(d)*(1+largest(a)))) }
					expect(t, what+"loss", got.loss, alone.loss, slack(alone.loss))
					for i, g := range got.grads {
						want := alone.grads[i]
						if divided[i] >= 0 {
							want = want.part(divided[i], r, n)
						}
						expect(t, fmt.Sprintf("%sgradient %d", what, i), g, want, slack(want))
					}
				}
			}
		}
	}
}

func largest(a array) float64 {
	most := 0.0
	for _, x := range a.values {
		most = max(most, math.Abs(x))
	}
	return most
}

// The gradients of the whole model are the slopes of its loss.
func TestGradientsAreFiniteDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	w, l := randomWeights(rng, dtype.F64), newLesson(rng)
	const n, step = 3, 1e-5
	for _, sp := range []bool{false, true} {
		ranks := l.on(t, n, dtype.F64, sp, w)
		for i := range w {
			grads := make([]array, n)
			for r := range grads {
				grads[r] = ranks[r].grads[i]
			}
			whole := grads[0]
			if divided[i] >= 0 {
				whole = joined(divided[i], grads...)
			}
			for range 3 {
				at := rng.IntN(len(w[i].values))
				slope := (l.objective(t, n, sp, w, i, at, step) - l.objective(t, n, sp, w, i, at, -step)) / (2 * step)
				if got := whole.values[at]; math.Abs(got-slope) > 1e-7*(1+math.Abs(slope)) {
					t.Errorf("sp %v, parameter %d: element %d has gradient %v, but the slope is %v", sp, i, at, got, slope)
				}
			}
		}
	}
}

// objective is the weighted sum of the losses, with one element of a parameter moved.
func (l lesson) objective(t *testing.T, n int, sp bool, w weights, i, at int, by float64) float64 {
	t.Helper()
	w[i] = array{w[i].shape, append([]float64{}, w[i].values...)}
	w[i].values[at] += by
	loss, sum := l.on(t, n, dtype.F64, sp, w)[0].loss, 0.0
	for k, x := range loss.values {
		sum += x * l.dloss.values[k]
	}
	return sum
}

// What an all-reduce leaves is the same on all ranks to the last bit, in every dtype.
func TestRanksAgreeAfterAReduction(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 13))
	for _, d := range trained {
		for _, n := range degrees {
			data := randomLayer(func(shape ...int) array { return noise(rng, d, shape...) })
			row := onRanks(t, n, func(c *tp.Comm) (passed, error) { return passRow(c, rowOptions(d, false, true, false), data) })
			column := onRanks(t, n, func(c *tp.Comm) (passed, error) {
				return passColumn(c, columnOptions(d, false, false, false), data)
			})
			for r := range n {
				expect(t, fmt.Sprintf("%v, tp %d: row-parallel output of rank %d", d, n, r), row[r].y, row[0].y, exactly)
				expect(t, fmt.Sprintf("%v, tp %d: column-parallel gradient of rank %d", d, n, r), column[r].dx, column[0].dx, exactly)
			}
		}
	}
}

// Nor does the algorithm of the reduction let ranks differ.
func TestRanksAgreeAfterEveryAlgorithm(t *testing.T) {
	rng := rand.New(rand.NewPCG(18, 18))
	const n = 8
	data := randomLayer(func(shape ...int) array { return noise(rng, dtype.BF16, shape...) })
	for _, a := range ccl.Algorithms(collective.AllReduce) {
		c := newClusterOn(t, load(t, "{sips: {count: 8, connect: switch}, switch: {in_network: {multicast: true, reduce: [sum]}}}"), distributed.Options{Algorithm: a.Name()})
		outs := make([]array, n)
		err := c.spawn(t, func(_ *multiprocessing.Process, comm *tp.Comm) error {
			got, err := passRow(comm, rowOptions(dtype.BF16, false, true, false), data)
			outs[comm.Rank] = got.y
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		want := newLinearOracle(data.x, data.w, data.b, data.dy)
		for r, y := range outs {
			expect(t, fmt.Sprintf("%s: output of rank %d", a.Name(), r), y, outs[0], exactly)
		}
		expect(t, a.Name()+": output", outs[0], want.y, rounding(dtype.BF16, inputs, n, want.ySize))
	}
}

// A rank that does not take part, and one that does something else, are named.
func TestRanksThatDoNotAgree(t *testing.T) {
	for _, k := range []struct {
		other func(c *tp.Comm) error
		want  string
	}{
		{func(*tp.Comm) error { return nil }, "group tensor model parallel 0): rank 1 has not joined it"},
		{func(c *tp.Comm) error {
			_, err := tp.GatherFromSequenceParallelRegion(true).Forward(c, zeros(2, 3).tensor(dtype.F32).Tensor)
			return err
		}, "disagree on the operation"},
		{func(c *tp.Comm) error {
			_, err := tp.ReduceFromTensorModelParallelRegion().Forward(c, zeros(2, 4).tensor(dtype.F32).Tensor)
			return err
		}, "disagree on the number of elements"},
	} {
		err := newCluster(t, 2).spawn(t, func(_ *multiprocessing.Process, c *tp.Comm) error {
			if c.Rank == 1 {
				return k.other(c)
			}
			sum, err := tp.ReduceFromTensorModelParallelRegion().Forward(c, zeros(2, 3).tensor(dtype.F32).Tensor)
			if err != nil {
				return err
			}
			// An operation on the sum needs its data.
			_, err = tp.ScatterToTensorModelParallelRegion().Backward(c, sum)
			return err
		})
		complains(t, err, k.want)
	}
}

// Two runs of one program give the same bits and take the same time.
func TestRunsRepeat(t *testing.T) {
	var ends [2]string
	for i := range ends {
		rng := rand.New(rand.NewPCG(14, 14))
		w, l := randomWeights(rng, dtype.BF16), newLesson(rng)
		c := newCluster(t, 4)
		err := c.spawn(t, func(_ *multiprocessing.Process, comm *tp.Comm) error {
			got, err := l.learn(comm, dtype.BF16, true, w)
			ends[i] += fmt.Sprintln(got)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		ends[i] += c.World.Engine.Now().String()
	}
	if ends[0] != ends[1] {
		t.Error("two runs differ")
	}
}

// A step of the model on eight ranks: what the layers cost the machine that simulates them.
func BenchmarkStepOn8Ranks(b *testing.B) {
	for _, sp := range []bool{false, true} {
		b.Run(fmt.Sprintf("sp=%v", sp), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(19, 19))
			w, l := randomWeights(rng, dtype.BF16), newLesson(rng)
			err := newCluster(b, 8).spawn(b, func(_ *multiprocessing.Process, c *tp.Comm) error {
				for range b.N {
					if _, err := l.learn(c, dtype.BF16, sp, w); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
