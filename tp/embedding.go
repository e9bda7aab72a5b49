package tp

import (
	"errors"
	"fmt"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
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
}

// SavedTokens is what the backward pass of one forward pass of an embedding needs.
type SavedTokens struct {
	layer *VocabParallelEmbedding
	index []int // rows of the rank's part; -1: another's
	shape []int // of the tokens
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
	l := &VocabParallelEmbedding{comm: c, options: o, part: part}
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
	list, err := l.comm.tokens(tokens)
	if err != nil {
		return nil, nil, err
	}
	saved := &SavedTokens{layer: l, shape: tokens.Shape()}
	if saved.index, err = l.part.local(list); err != nil {
		return nil, nil, err
	}
	rows, err := l.comm.run(operation{
		name: "embedding", operands: []*tensor.Tensor{l.Weight},
		do:   func() (*tensor.Tensor, error) { return tensor.Rows(l.Weight, saved.index) },
		cost: rowsMoved(len(list)),
	})
	if err != nil {
		return nil, nil, err
	}
	out, err := l.reduce(rows, saved.shape)
	return out, saved, err
}

// rowsMoved is the cost of reading as many rows as the result has, and of writing it, at the places that n tokens say.
func rowsMoved(n int) func(*tensor.Tensor) network.Kernel {
	return func(result *tensor.Tensor) network.Kernel {
		rows := int64(result.Numel() * result.DType().Size())
		return network.Kernel{Bytes: 2*rows + int64(n*dtype.I64.Size()), Ops: int64(result.Numel()), Unit: network.Vector}
	}
}

func (l *VocabParallelEmbedding) checkTokens(tokens *tensor.Tensor) error {
	if shape := tokens.Shape(); l.options.ReduceScatterEmbeddings && len(shape) != 2 {
		return &ShapeError{"the tensor of tokens, with ReduceScatterEmbeddings,", shape, []int{-1, -1}}
	}
	return nil
}

// reduce adds up what the ranks have found: rows of other ranks are zeros.
func (l *VocabParallelEmbedding) reduce(rows *tensor.Tensor, shape []int) (*tensor.Tensor, error) {
	if !l.options.ReduceScatterEmbeddings {
		whole, err := rows.Reshape(append(shape[:len(shape):len(shape)], l.options.EmbeddingDim)...)
		if err != nil {
			return nil, err
		}
		return ReduceFromTensorModelParallelRegion().Forward(l.comm, whole)
	}
	turned, err := l.comm.exchangeDims(rows, shape[0], shape[1])
	if err != nil {
		return nil, err
	}
	return ReduceScatterToSequenceParallelRegion().Forward(l.comm, turned)
}

// Backward returns the gradient of the rank's part of the table, for that of what Forward returned.
func (l *VocabParallelEmbedding) Backward(s *SavedTokens, grad *tensor.Tensor) (*tensor.Tensor, error) {
	if s == nil || s.layer != l {
		return nil, errors.New("backward needs what this embedding's forward saved")
	}
	if err := checkLast("the gradient of the output", grad, l.options.EmbeddingDim); err != nil {
		return nil, err
	}
	var err error
	if l.options.ReduceScatterEmbeddings {
		if grad, err = ReduceScatterToSequenceParallelRegion().Backward(l.comm, grad); err != nil {
			return nil, err
		}
		if grad, err = l.comm.exchangeDims(grad, s.shape[1], s.shape[0]); err != nil {
			return nil, err
		}
	}
	rows, _, err := l.comm.rows(grad)
	if err != nil {
		return nil, err
	}
	return l.comm.run(operation{
		name: "embedding backward", operands: []*tensor.Tensor{rows},
		do:   func() (*tensor.Tensor, error) { return tensor.AddRows(l.part.end-l.part.first, s.index, rows) },
		cost: onePass(rows),
	})
}
