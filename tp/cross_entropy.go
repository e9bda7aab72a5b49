package tp

import (
	"errors"
	"fmt"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// CrossEntropy is what the backward pass of a [VocabParallelCrossEntropy] needs.
type CrossEntropy struct {
	comm   *Comm
	plans  Plans
	shape  []int // of the loss
	values []value
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
	passes, err := lossPasses(c, logits, labelSmoothing)
	if err != nil {
		return nil, nil, err
	}
	shape := logits.Shape()
	if err := checkShape("the target", target, shape[:len(shape)-1]...); err != nil {
		return nil, nil, err
	}
	if err := c.checkTokens(target, passes.Part*c.Size()); err != nil {
		return nil, nil, err
	}
	plans := passes.Plans()
	outputs, saved, err := c.execute(plans.Forward, valuesOf(logits, target)...)
	if err != nil {
		return nil, nil, err
	}
	return outputs[0].tensor, &CrossEntropy{c, plans, target.Shape(), saved}, nil
}

// lossPasses is what decides the plans of the loss of logits.
func lossPasses(c *Comm, logits *tensor.Tensor, labelSmoothing float64) (LossPasses, error) {
	shape := logits.Shape()
	if len(shape) == 0 || !logits.DType().IsFloat() {
		return LossPasses{}, fmt.Errorf("cross entropy of logits of %s of shape %s: want a floating-point dtype, and the vocabulary as the last dimension",
			logits.DType().Name(), shapeText(shape))
	}
	o := LossPasses{
		Ranks: c.Size(), Part: shape[len(shape)-1], DType: logits.DType().Name(), LabelSmoothing: labelSmoothing,
	}
	return o, o.check()
}

// check verifies what does not depend on tensors.
func (o LossPasses) check() error {
	switch {
	case o.Ranks < 1:
		return checkRanks(o.Ranks)
	case o.Part == 0:
		return errors.New("cross entropy over an empty vocabulary")
	case !(o.LabelSmoothing >= 0 && o.LabelSmoothing < 1):
		return fmt.Errorf("label smoothing %v: want at least 0 and less than 1", o.LabelSmoothing)
	case o.LabelSmoothing > 0 && o.Part == 1:
		return fmt.Errorf("label smoothing %v where a rank has one token of the vocabulary", o.LabelSmoothing)
	}
	return nil
}

// Backward returns the gradient of the rank's logits, for that of the loss, in the dtype of the logits. It needs no
// communication.
func (s *CrossEntropy) Backward(grad *tensor.Tensor) (*tensor.Tensor, error) {
	if err := checkShape("the gradient of the loss", grad, s.shape...); err != nil {
		return nil, err
	}
	grads, _, err := s.comm.execute(s.plans.Backward, append(valuesOf(grad), s.values...)...)
	if err != nil {
		return nil, err
	}
	return grads[0].tensor, nil
}
