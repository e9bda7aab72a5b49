package network

import (
	"math"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Recurrent is a call of LSTM, GRU or RNN, or its gradients: layers that go through sequences in one or two directions.
type Recurrent struct {
	Gates        int // 4 of LSTM, 3 of GRU, 1 of RNN: rows of weights for each of the width
	Steps, Rows  int // Rows: of inputs, of all steps together
	Inner, Width int // of inputs and of states
	Projected    int // what states are projected to; 0: they are not
	Layers       int
	Directions   int
	Rounded      bool // operands of float32 may be rounded
	Packed       bool // sequences may end before the last step
	Backward     bool
}

const (
	heldWidth = 128 // cuDNN 9.19 holds weights of LSTM of float16 whose width is a multiple of this,
	heldBatch = 8   // for batches that are multiples of this
	mostBatch = 128 // and no more than this.
)

// RecurrentCost is what a call costs a SIP: the products of its inputs, of all steps in one, and then its steps, which use
// no unit whole but only take time. It is nil where the topology says nothing of it, and for elements that are no floats
// of 16 or 32 bits.
func RecurrentCost(t *topology.Topology, d dtype.DType, r Recurrent) []Kernel {
	unit := MatrixUnit(d)
	if t.Kernels() == nil || t.Kernels().Recurrent == nil || (unit != MatrixF16 && unit != MatrixF32) {
		return nil
	}
	var kernels []Kernel
	for layer := range r.Layers {
		for range r.Directions {
			for _, p := range r.products(layer) {
				kernels = append(kernels, MatMulCost(t, d, p))
			}
		}
	}
	call := t.Kernels().Recurrent.Forward
	if r.Backward {
		call = t.Kernels().Recurrent.Backward
	}
	takes := call + int64(math.Round(float64(r.Steps)*r.step(t.Kernels().Recurrent.Of(d.Size()), d)))
	return append(kernels, Kernel{Ops: takes, Unit: Idle})
}

// products are those of a layer in one direction that are made for all steps at once. Gradients are by the inputs, and by
// the weights of inputs and of states.
func (r *Recurrent) products(layer int) []Product {
	inner, gates := r.Inner, r.Gates*r.Width
	if layer > 0 {
		inner = r.Directions * r.state()
	}
	if !r.Backward {
		return []Product{{M: r.Rows, N: gates, K: inner}}
	}
	return []Product{
		{M: r.Rows, N: inner, K: gates}, {M: gates, N: inner, K: r.Rows, TransposeLeft: true},
		{M: gates, N: r.state(), K: r.Rows, TransposeLeft: true},
	}
}

// state is how wide what a step gives to the next one is.
func (r *Recurrent) state() int {
	if r.Projected > 0 {
		return r.Projected
	}
	return r.Width
}

// step is how long a step takes in all layers and directions, in ps. Layers work on different steps at the same time;
// those with two directions wait for the one below. A projection is one more product, as in one more layer.
func (r *Recurrent) step(takes *topology.Recurrence, d dtype.DType) float64 {
	if steps, fits := r.inOneKernel(takes, d); fits {
		return float64(r.Layers) * r.time(steps, d)
	}
	one := r.time(takes.Stepping, d)
	if r.Width*d.Size()%16 != 0 {
		one = r.time(takes.Unaligned, d)
	}
	if r.Projected > 0 {
		one *= 1 + takes.Layer
	}
	if r.Directions > 1 {
		return float64(r.Layers) * (1 + takes.Direction) * one
	}
	return (1 + takes.Layer*float64(r.Layers-1)) * one
}

// inOneKernel is how one kernel makes all steps, if one does. A layer of RNN is small at twice the width of others.
func (r *Recurrent) inOneKernel(takes *topology.Recurrence, d dtype.DType) (steps topology.Steps, fits bool) {
	if r.Packed || r.Projected > 0 || d == dtype.BF16 {
		return topology.Steps{}, false
	}
	narrow := r.Width
	if r.Gates == 1 {
		narrow = (r.Width + 1) / 2
	}
	if narrow <= r.pass(takes.Small).Width {
		return takes.Small, true
	}
	batch := r.Rows / r.Steps
	fits = d == dtype.F16 && r.Gates == 4 && r.Layers == 1 && r.Directions == 1 && r.Width <= r.pass(takes.Held).Width &&
		r.Width%heldWidth == 0 && batch%heldBatch == 0 && batch <= mostBatch
	return takes.Held, fits
}

func (r *Recurrent) pass(steps topology.Steps) topology.Step {
	if r.Backward {
		return steps.Backward
	}
	return steps.Forward
}

// time is how long one step takes in one layer and one direction, in ps.
func (r *Recurrent) time(steps topology.Steps, d dtype.DType) float64 {
	takes, batch := r.pass(steps), float64(r.Rows)/float64(r.Steps)
	weights := float64(r.Gates*r.Width) * float64(r.state())
	return float64(takes.Step) + 1e3*(takes.Weights*weights*float64(d.Size())/1e6+
		takes.Operations*2*batch*weights/1e9+takes.States*batch*float64(r.Width)/1e3)
}
