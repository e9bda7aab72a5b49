package tp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/tp"
)

const vocabulary, hidden = 48, 10

// tokensOf is random tokens as numbers and as a tensor's values.
func tokensOf(rng *rand.Rand, shape ...int) (list []int, values array) {
	values = zeros(shape...)
	for i := range values.values {
		list = append(list, rng.IntN(vocabulary))
		values.values[i] = float64(list[i])
	}
	return list, values
}

// lookedUp is the rows of a table; transposed makes [batch, sequence] tokens [sequence, batch, hidden].
func lookedUp(table array, list []int, shape []int, transposed bool) array {
	rows := zeros(append(append([]int{}, shape...), hidden)...)
	for i, token := range list {
		copy(rows.values[i*hidden:], table.values[token*hidden:(token+1)*hidden])
	}
	if !transposed {
		return rows
	}
	turned := zeros(shape[1], shape[0], hidden)
	for b := range shape[0] {
		for s := range shape[1] {
			copy(turned.values[turned.at(s, b, 0):turned.at(s, b, 0)+hidden], rows.values[rows.at(b, s, 0):])
		}
	}
	return turned
}

// tableGrad is the gradient of the table: the sums of the gradients of the places where a token was looked up.
func tableGrad(dy array, list []int, shape []int, transposed bool) (sum, size array) {
	sum, size = zeros(vocabulary, hidden), zeros(vocabulary, hidden)
	for i, token := range list {
		row := i
		if transposed {
			row = i%shape[1]*shape[0] + i/shape[1]
		}
		for k := range hidden {
			g := dy.values[row*hidden+k]
			sum.values[token*hidden+k] += g
			size.values[token*hidden+k] += max(g, -g)
		}
	}
	return sum, size
}

func passEmbedding(c *tp.Comm, o tp.EmbeddingOptions, table, tokens, dy array) (passed, error) {
	l, err := tp.NewVocabParallelEmbedding(c, o)
	if err != nil {
		return passed{}, err
	}
	if err := set(l.Weight, table.part(0, c.Rank, c.Size())); err != nil {
		return passed{}, err
	}
	if o.ReduceScatterEmbeddings {
		dy = dy.part(0, c.Rank, c.Size())
	}
	y, saved, err := l.Forward(tokens.tensor(dtype.I64).Tensor)
	if err != nil {
		return passed{}, err
	}
	dw, err := l.Backward(saved, dy.tensor(o.DType).Tensor)
	if err != nil {
		return passed{}, err
	}
	var got passed
	return got, read(c, into{&got.y, y}, into{&got.dw, dw})
}

func TestVocabParallelEmbedding(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	shape := []int{batch, sequence}
	for _, n := range degrees {
		for _, d := range trained {
			for _, scatter := range []bool{false, true} {
				t.Run(fmt.Sprintf("tp%d/%v/scatter=%v", n, d, scatter), func(t *testing.T) {
					list, tokens := tokensOf(rng, shape...)
					table := noise(rng, d, vocabulary, hidden)
					y := lookedUp(table, list, shape, scatter)
					dy := noise(rng, d, y.shape...)
					dw, size := tableGrad(dy, list, shape, scatter)
					o := tp.EmbeddingOptions{NumEmbeddings: vocabulary, EmbeddingDim: hidden, DType: d, ReduceScatterEmbeddings: scatter}
					for r, got := range onRanks(t, n, func(c *tp.Comm) (passed, error) { return passEmbedding(c, o, table, tokens, dy) }) {
						want := y
						if scatter {
							want = y.part(0, r, n)
						}
						// All but one rank have zeros for a token, so that nothing is rounded.
						expect(t, fmt.Sprintf("rank %d: rows", r), got.y, want, exactly)
						expect(t, fmt.Sprintf("rank %d: gradient", r), got.dw, dw.part(0, r, n),
							bounds(false, d, len(list), 0, size.part(0, r, n)))
					}
				})
			}
		}
	}
}

// lossOf is the loss of a rank and the gradient of its part of the logits.
type lossOf struct{ loss, grad array }

func passCrossEntropy(c *tp.Comm, logits, target held, smoothing float64, dloss held) (lossOf, error) {
	loss, saved, err := tp.VocabParallelCrossEntropy(c, logits.Tensor, target.Tensor, smoothing)
	if err != nil {
		return lossOf{}, err
	}
	grad, err := saved.Backward(dloss.Tensor)
	if err != nil {
		return lossOf{}, err
	}
	if grad.DType() != logits.DType() || loss.DType() != max(logits.DType(), dtype.F32) {
		return lossOf{}, fmt.Errorf("loss of %v and gradient of %v for logits of %v", loss.DType(), grad.DType(), logits.DType())
	}
	var got lossOf
	return got, read(c, into{&got.loss, loss}, into{&got.grad, grad})
}

func TestVocabParallelCrossEntropy(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, n := range degrees {
		for _, d := range trained {
			for _, smoothing := range []float64{0, 0.1, 0.75} {
				t.Run(fmt.Sprintf("tp%d/%v/smoothing=%v", n, d, smoothing), func(t *testing.T) {
					logits := noise(rng, dtype.F64, 5, 3, vocabulary)
					for i := range logits.values {
						logits.values[i] *= 30 // so that some probabilities are next to nothing
					}
					logits = logits.tensor(d).array()
					list, target := tokensOf(rng, 5, 3)
					dloss := noise(rng, dtype.F32, 5, 3)
					part := vocabulary / n
					spread := smoothing * float64(part) / float64(part-1)
					ranks := onRanks(t, n, func(c *tp.Comm) (lossOf, error) {
						mine := logits.part(2, c.Rank, c.Size()).tensor(d)
						return passCrossEntropy(c, mine, target.tensor(dtype.I64), smoothing, dloss.tensor(max(d, dtype.F32)))
					})
					// A loss is a difference of numbers up to 60, and computed in a dozen float32 operations; a gradient is at
					// most 2, with as many, and one rounding to d.
					wide := unit(max(d, dtype.F32))
					for r, got := range ranks {
						loss, grad := crossEntropyOracle(logits, list, spread, dloss.values, r*part, (r+1)*part)
						expect(t, fmt.Sprintf("rank %d: loss", r), got.loss, loss, within(1000*wide))
						expect(t, fmt.Sprintf("rank %d: gradient", r), got.grad, grad.part(2, r, n), within(100*wide+2*unit(d)))
					}
				})
			}
		}
	}
}

// Three reductions forward, whatever the smoothing, and none backward.
func TestCrossEntropyReducesThreeTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	logits := noise(rng, dtype.F32, 4, vocabulary)
	_, target := tokensOf(rng, 4)
	for _, smoothing := range []float64{0, 0.1} {
		c := newCluster(t, 4)
		err := c.spawn(t, func(_ *multiprocessing.Process, comm *tp.Comm) error {
			_, err := passCrossEntropy(comm, logits.part(1, comm.Rank, 4).tensor(dtype.F32), target.tensor(dtype.I64), smoothing, zeros(4).tensor(dtype.F32))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Log) != 3 {
			t.Errorf("smoothing %v: %d collectives", smoothing, len(c.Log))
		}
	}
}

// The extremes that a loss in logarithms is there for.
func TestCrossEntropyOfHugeLogits(t *testing.T) {
	logits := array{[]int{2, 4}, []float64{1e4, -1e4, 0, 5e3, -1e4, -1e4, -1e4, -1e4}}
	loss, grad := crossEntropyOracle(logits, []int{1, 3}, 0, []float64{1, 1}, 0, 4)
	target := array{[]int{2}, []float64{1, 3}}
	ranks := onRanks(t, 2, func(c *tp.Comm) (lossOf, error) {
		ones := array{[]int{2}, []float64{1, 1}}
		return passCrossEntropy(c, logits.part(1, c.Rank, 2).tensor(dtype.BF16), target.tensor(dtype.I32), 0, ones.tensor(dtype.F32))
	})
	for r, got := range ranks {
		// 10,000 is 9984 in bfloat16.
		expect(t, "loss", got.loss, loss, within(40))
		expect(t, "gradient", got.grad, grad.part(1, r, 2), within(1e-2))
	}
}

func TestEmbeddingRejectsWhatDoesNotFit(t *testing.T) {
	onRanks(t, 2, func(c *tp.Comm) (any, error) {
		complains(t, second(tp.NewVocabParallelEmbedding(nil, tp.EmbeddingOptions{})), "tensor model parallel group is not initialized")
		for _, k := range []struct {
			o    tp.EmbeddingOptions
			want string
		}{
			{tp.EmbeddingOptions{NumEmbeddings: 7, EmbeddingDim: 2}, "vocabulary size (7) is not divisible by tensor parallel size (2)"},
			{tp.EmbeddingOptions{NumEmbeddings: 0, EmbeddingDim: 2}, "embedding of 0 rows of 2 elements"},
			{tp.EmbeddingOptions{NumEmbeddings: 4, EmbeddingDim: 2, DType: dtype.I32}, "of int32: want at least 1 each, of a floating-point dtype"},
		} {
			complains(t, second(tp.NewVocabParallelEmbedding(c, k.o)), k.want)
		}
		l, err := tp.NewVocabParallelEmbedding(c, tp.EmbeddingOptions{NumEmbeddings: 4, EmbeddingDim: 2, ReduceScatterEmbeddings: true})
		if err != nil {
			return nil, err
		}
		forward := func(a array, d dtype.DType) error {
			_, _, err := l.Forward(a.tensor(d).Tensor)
			return err
		}
		complains(t, forward(array{[]int{1, 2}, []float64{1, 4}}, dtype.I64), "token 4 at position 1 is not in the vocabulary: it has tokens 0 to 3")
		complains(t, forward(array{[]int{1, 2}, []float64{-1, 2}}, dtype.I64), "token -1 at position 0")
		complains(t, forward(zeros(2), dtype.I64), "the tensor of tokens, with ReduceScatterEmbeddings, has shape [2], not […, …] as expected")
		complains(t, forward(zeros(1, 2), dtype.F32), "indices of float32: want an integer dtype")
		complains(t, second(l.Backward(nil, zeros(1, 1, 2).tensor(dtype.F32).Tensor)), "backward needs what this embedding's forward saved")
		l.Weight = zeros(3, 2).tensor(dtype.F32).Tensor
		complains(t, forward(zeros(1, 2), dtype.I64), "the weight has shape [3, 2], not [2, 2] as expected")
		return nil, nil
	})
}

func TestCrossEntropyRejectsWhatDoesNotFit(t *testing.T) {
	loss := func(c *tp.Comm, logits, target array, d dtype.DType, smoothing float64) error {
		_, _, err := tp.VocabParallelCrossEntropy(c, logits.tensor(d).Tensor, target.tensor(dtype.I64).Tensor, smoothing)
		return err
	}
	onRanks(t, 2, func(c *tp.Comm) (any, error) {
		complains(t, loss(nil, zeros(2, 3), zeros(2), dtype.F32, 0), "tensor model parallel group is not initialized")
		complains(t, loss(c, zeros(2, 3), zeros(3), dtype.F32, 0), "the target has shape [3], not [2] as expected")
		complains(t, loss(c, zeros(), zeros(), dtype.F32, 0), "cross entropy of logits of float32 of shape []")
		complains(t, loss(c, zeros(2, 3), zeros(2), dtype.I32, 0), "cross entropy of logits of int32")
		complains(t, loss(c, zeros(2, 3), zeros(2), dtype.F32, 1), "label smoothing 1: want at least 0 and less than 1")
		complains(t, loss(c, zeros(2, 3), zeros(2), dtype.F32, -0.1), "label smoothing -0.1")
		complains(t, loss(c, zeros(2, 0), zeros(2), dtype.F32, 0), "empty vocabulary")
		complains(t, loss(c, zeros(2, 3), array{[]int{2}, []float64{0, 6}}, dtype.F32, 0), "token 6 at position 1 is not in the vocabulary")
		return nil, nil
	})
	onRanks(t, 1, func(c *tp.Comm) (any, error) {
		complains(t, loss(c, zeros(2, 1), zeros(2), dtype.F32, 0.1), "label smoothing 0.1 where a rank has one token of the vocabulary")
		return nil, nil
	})
}
