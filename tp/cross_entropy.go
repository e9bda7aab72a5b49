package tp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// CrossEntropy is what the backward pass of a [VocabParallelCrossEntropy] needs.
type CrossEntropy struct {
	comm      *Comm
	softmax   *tensor.Tensor // [n, v], of the rank's part of the vocabulary
	target    []int          // where the targets are in it; -1: another rank's
	shape     []int          // of the logits
	dtype     dtype.DType    // of the logits
	smoothing float64        // how much of the probability is spread over the vocabulary
	part      int            // size of the rank's part of the vocabulary
}

// VocabParallelCrossEntropy returns the loss log Σ exp(logits) - logits[target] of each token, for logits of shape
// […, vocabulary/n], of which each rank has a part, and targets of shape […]. It is float32 (float64 for float64
// logits), and without label smoothing the same on all ranks, which reduce three times: the greatest logit, the target's, and the sum.
//
// With label smoothing a, 0 ≤ a < 1, the loss is Megatron's: a rank takes its part of the vocabulary, of m tokens, for
// the whole. With s = a·m/(m-1) it is 1-s times the loss without smoothing, less s times the mean of the log
// probabilities of the part; so it differs from rank to rank, and only in a group of one rank the target has the
// probability 1-a and each other token a/(m-1).
func VocabParallelCrossEntropy(c *Comm, logits, target *tensor.Tensor, labelSmoothing float64) (*tensor.Tensor, *CrossEntropy, error) {
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	s, err := newCrossEntropy(c, logits, labelSmoothing)
	if err != nil {
		return nil, nil, err
	}
	if err := s.findTargets(target); err != nil {
		return nil, nil, err
	}
	rows, _, err := c.rows(logits)
	if err != nil {
		return nil, nil, err
	}
	p := &program{Comm: c}
	loss := s.loss(p, p.cast(rows, wideOf(s.dtype)))
	if err := p.end(loss, s.softmax); err != nil {
		return nil, nil, err
	}
	loss, err = loss.Reshape(target.Shape()...)
	return loss, s, err
}

func newCrossEntropy(c *Comm, logits *tensor.Tensor, labelSmoothing float64) (*CrossEntropy, error) {
	shape := logits.Shape()
	if len(shape) == 0 || !logits.DType().IsFloat() {
		return nil, fmt.Errorf("cross entropy of logits of %s of shape %s: want a floating-point dtype, and the vocabulary as the last dimension",
			logits.DType().Name(), shapeText(shape))
	}
	s := &CrossEntropy{comm: c, shape: shape, dtype: logits.DType(), part: shape[len(shape)-1]}
	switch {
	case s.part == 0:
		return nil, errors.New("cross entropy over an empty vocabulary")
	case !(labelSmoothing >= 0 && labelSmoothing < 1):
		return nil, fmt.Errorf("label smoothing %v: want at least 0 and less than 1", labelSmoothing)
	case labelSmoothing > 0 && s.part == 1:
		return nil, fmt.Errorf("label smoothing %v where a rank has one token of the vocabulary", labelSmoothing)
	case labelSmoothing > 0:
		s.smoothing = labelSmoothing * float64(s.part) / float64(s.part-1)
	}
	return s, nil
}

// findTargets looks where the targets are in the rank's part of the vocabulary.
func (s *CrossEntropy) findTargets(target *tensor.Tensor) error {
	if shape := target.Shape(); !slices.Equal(shape, s.shape[:len(s.shape)-1]) {
		return &ShapeError{"the target", shape, s.shape[:len(s.shape)-1]}
	}
	tokens, err := s.comm.tokens(target)
	if err != nil {
		return err
	}
	part, err := s.comm.vocabPart(s.part * s.comm.Size())
	if err != nil {
		return err
	}
	s.target, err = part.local(tokens)
	return err
}

// loss computes the loss of each row of logits, and the softmax for the backward pass.
func (s *CrossEntropy) loss(p *program, logits *tensor.Tensor) *tensor.Tensor {
	top := p.reduce("max", tensor.MaxDim, logits, 1)
	p.allReduce(tensor.Max, top)
	logits = p.binary("sub", tensor.Sub, logits, p.column(top))
	predicted := p.pick(logits, s.target)
	exponentials := p.unary("exp", tensor.Exp, logits)
	sum := p.reduce("sum", tensor.SumDim, exponentials, 1)
	p.allReduce(tensor.Sum, predicted)
	p.allReduce(tensor.Sum, sum)
	logSum := p.unary("log", tensor.Log, sum)
	loss := p.binary("sub", tensor.Sub, logSum, predicted)
	s.softmax = p.binary("div", tensor.Div, exponentials, p.column(sum))
	if s.smoothing > 0 {
		mean := p.scale(p.reduce("sum", tensor.SumDim, logits, 1), 1/float64(s.part))
		mean = p.binary("sub", tensor.Sub, mean, logSum) // of the log probabilities
		loss = p.binary("sub", tensor.Sub, p.scale(loss, 1-s.smoothing), p.scale(mean, s.smoothing))
	}
	return loss
}

// Backward returns the gradient of the rank's logits, for that of the loss, in the dtype of the logits. It needs no
// communication.
func (s *CrossEntropy) Backward(grad *tensor.Tensor) (*tensor.Tensor, error) {
	if err := checkShape("the gradient of the loss", grad, s.shape[:len(s.shape)-1]...); err != nil {
		return nil, err
	}
	p := &program{Comm: s.comm}
	wide := wideOf(s.dtype)
	slope := p.addAt(s.softmax, s.target, s.smoothing-1)
	if s.smoothing > 0 {
		slope = p.binary("sub", tensor.Sub, slope, p.scalar(wide, s.smoothing/float64(s.part)))
	}
	slope = p.binary("mul", tensor.Mul, slope, p.column(p.cast(grad, wide)))
	slope = p.cast(slope, s.dtype)
	if err := p.end(slope); err != nil {
		return nil, err
	}
	return slope.Reshape(s.shape...)
}

// wideOf is the dtype that a loss is computed in.
func wideOf(d dtype.DType) dtype.DType {
	if d == dtype.F64 {
		return dtype.F64
	}
	return dtype.F32
}
