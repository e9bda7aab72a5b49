package tp

import (
	"math/rand/v2"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Init fills a whole parameter, before its parts are handed to the ranks: every rank calls it and takes its part, so
// that a model does not depend on how it is divided. The tensor is float32, or float64 where the parameter is.
type Init func(weight *tensor.Tensor) error

// Normal draws from a normal distribution of mean 0.
func Normal(seed uint64, deviation float64) Init {
	return func(weight *tensor.Tensor) error {
		rng := rand.New(rand.NewPCG(seed, 0x77656967)) // any second word; it only has to be always the same
		for i := range weight.Shape()[0] {
			row, err := weight.Select(0, i)
			if err != nil {
				return err
			}
			for j := range row.Numel() {
				cell, err := row.Narrow(0, j, 1)
				if err != nil {
					return err
				}
				cell.Fill(deviation * rng.NormFloat64())
			}
		}
		return nil
	}
}

// parameter is a matrix that is divided along one dimension.
type parameter struct {
	rows, cols int // of the whole
	dtype      dtype.DType
	dim        int
	stride     int // each rank's part is as many pieces, of blocks that lie one behind another; 0 counts as 1
}

// allocate makes the rank's part of a parameter: zeros, or its part of what init makes of the whole.
func (c *Comm) allocate(p parameter, init Init) (*tensor.Tensor, error) {
	shape := []int{p.rows, p.cols}
	part, err := divide("size of the parameter", shape[p.dim], "tensor parallel size × stride", c.Size()*max(p.stride, 1))
	if err != nil {
		return nil, err
	}
	if init == nil {
		shape[p.dim] /= c.Size()
		return tensor.New(p.dtype, shape...)
	}
	whole, err := master(p, init)
	if err != nil {
		return nil, err
	}
	defer whole.Storage().Release()
	shape[p.dim] /= c.Size()
	mine, err := tensor.NewUninit(p.dtype, shape...)
	if err != nil {
		return nil, err
	}
	for i := range max(p.stride, 1) {
		from, err := whole.Narrow(p.dim, (i*c.Size()+c.Rank)*part, part)
		if err != nil {
			return nil, err
		}
		to, err := mine.Narrow(p.dim, i*part, part)
		if err != nil {
			return nil, err
		}
		if err := to.CopyFrom(from); err != nil {
			return nil, err
		}
	}
	return mine, nil
}

// master makes the whole parameter.
func master(p parameter, init Init) (*tensor.Tensor, error) {
	d := dtype.F32
	if p.dtype == dtype.F64 {
		d = dtype.F64
	}
	whole, err := tensor.New(d, p.rows, p.cols)
	if err != nil {
		return nil, err
	}
	return whole, init(whole)
}
