package tp

import (
	"errors"
	"fmt"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// EmbeddingOptions is how a [VocabParallelEmbedding] is made.
type EmbeddingOptions struct {
	NumEmbeddings, EmbeddingDim int         // of the whole table
	DType                       dtype.DType // of the table; 0: float32
	Init                        Init        // nil: zeros
	ReduceScatterEmbeddings     bool        // ranks get parts of the sequence, which becomes the first dimension
}

// VocabParallelEmbedding is a table with a row for each token, of which each rank has a part.
type VocabParallelEmbedding struct {
	Weight *tensor.Tensor // [number of embeddings / n, embedding dim]

	comm    *Comm
	options EmbeddingOptions
	part    vocabPart
	plans   Plans
}

// SavedTokens is what the backward pass of one forward pass of an embedding needs.
type SavedTokens struct {
	layer  *VocabParallelEmbedding
	values []value
}

// NewVocabParallelEmbedding makes the rank's part of a table.
func NewVocabParallelEmbedding(c *Comm, o EmbeddingOptions) (*VocabParallelEmbedding, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if o.DType == dtype.Invalid {
		o.DType = dtype.F32
	}
	if o.NumEmbeddings < 1 || o.EmbeddingDim < 1 || !o.DType.IsFloat() {
		return nil, fmt.Errorf("embedding of %d rows of %d elements of %s: want at least 1 each, of a floating-point dtype",
			o.NumEmbeddings, o.EmbeddingDim, o.DType.Name())
	}
	part, err := c.vocabPart(o.NumEmbeddings)
	if err != nil {
		return nil, err
	}
	passes := EmbeddingPasses{Ranks: c.Size(), Part: part.end - part.first, ReduceScatterEmbeddings: o.ReduceScatterEmbeddings}
	l := &VocabParallelEmbedding{comm: c, options: o, part: part, plans: passes.Plans()}
	l.Weight, err = c.allocate(parameter{rows: o.NumEmbeddings, cols: o.EmbeddingDim, dtype: o.DType}, o.Init)
	return l, err
}

// Forward looks tokens up, an integer tensor of any shape: […, embedding dim] on every rank. With
// ReduceScatterEmbeddings tokens of shape [b, s] make the rank's part of [s, b, embedding dim], along s.
func (l *VocabParallelEmbedding) Forward(tokens *tensor.Tensor) (*tensor.Tensor, *SavedTokens, error) {
	if err := checkShape("the weight", l.Weight, l.part.end-l.part.first, l.options.EmbeddingDim); err != nil {
		return nil, nil, err
	}
	if err := l.checkTokens(tokens); err != nil {
		return nil, nil, err
	}
	if err := l.comm.checkTokens(tokens, l.part.size); err != nil {
		return nil, nil, err
	}
	outputs, saved, err := l.comm.execute(l.plans.Forward, valuesOf(tokens, l.Weight)...)
	if err != nil {
		return nil, nil, err
	}
	return outputs[0].tensor, &SavedTokens{l, saved}, nil
}

func (l *VocabParallelEmbedding) checkTokens(tokens *tensor.Tensor) error {
	if shape := tokens.Shape(); l.options.ReduceScatterEmbeddings && len(shape) != 2 {
		return &ShapeError{"the tensor of tokens, with ReduceScatterEmbeddings,", shape, []int{-1, -1}}
	}
	return nil
}

// Backward returns the gradient of the rank's part of the table, for that of what Forward returned.
func (l *VocabParallelEmbedding) Backward(s *SavedTokens, grad *tensor.Tensor) (*tensor.Tensor, error) {
	if s == nil || s.layer != l {
		return nil, errors.New("backward needs what this embedding's forward saved")
	}
	if err := checkLast("the gradient of the output", grad, l.options.EmbeddingDim); err != nil {
		return nil, err
	}
	grads, _, err := l.comm.execute(l.plans.Backward, append(valuesOf(grad), s.values...)...)
	if err != nil {
		return nil, err
	}
	return grads[0].tensor, nil
}
