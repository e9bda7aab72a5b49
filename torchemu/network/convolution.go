package network

import (
	"math"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Pass is what of a convolution is calculated.
type Pass uint8

// The passes: results, gradients by the images, and gradients by the weights.
const (
	Forward Pass = iota
	Data
	Weight
)

// Convolution is a pass of a convolution of a batch of images.
type Convolution struct {
	Pass         Pass
	Batch        int
	Inner, Outer int // channels of the images and of the results
	Side, Result int // elements of a channel of an image, and of a result
	Taps         int // elements of a channel's kernel
	Strides      int // the product of the strides
	Groups       int
	Last         bool // the channels of an element lie side by side in memory, and not the elements of a channel
	Rounded      bool // operands of float32 may be rounded
}

// ConvolutionCost is what a convolution costs a SIP: its kernels, in that way which takes least; nil where the topology
// says nothing of convolutions, and for elements that are no floats of 16 or 32 bits. Operations on rounded operands are counted at the rate that such products have.
//
// A convolution is a product of matrices of which one is gathered from images while it is read (implicit GEMM):
//
//	               M                     N                  K
//	results        elements of results   their channels     taps · channels of images
//	by images      elements of images    their channels     taps · channels of results
//	by weights     channels of results   taps · channels    elements of results
//
// The channels of a tap are read in whole steps. With a stride an element of an image meets only one of so many taps as the
// strides' product, so gradients by images are a stack of so many products. Groups are a stack, too; as many as fit share
// a tile. Such products want the channels side by side: other images, weights and results are converted, and channels
// that end off 16 bytes are padded. Kernels of one element make it a product of matrices as they are.
func ConvolutionCost(t *topology.Topology, d dtype.DType, c Convolution) []Kernel {
	if t.Kernels() == nil || t.Kernels().Convolution == nil || (MatrixUnit(d) != MatrixF16 && MatrixUnit(d) != MatrixF32) {
		return nil
	}
	m := convolving{Convolution: c, topology: t, takes: *t.Kernels().Convolution, dtype: d}
	if c.Groups > 1 && c.Groups == c.Inner {
		return m.depthwise()
	}
	best := m.implicit()
	for _, other := range [][]Kernel{m.pointwise(), m.direct()} {
		if other != nil && m.time(other) < m.time(best) {
			best = other
		}
	}
	return best
}

// convolving is a convolution on a topology.
type convolving struct {
	Convolution
	topology *topology.Topology
	takes    topology.Convolution
	dtype    dtype.DType
}

// rounds says that operands are rounded.
func (m convolving) rounds() bool { return m.Rounded && m.dtype == dtype.F32 }

// size is the bytes of an element.
func (m convolving) size() int { return m.dtype.Size() }

// pes are those of a SIP.
func (m convolving) pes() int { return m.topology.CubesPerSIP() * m.topology.PEsPerCube() }

// rate is that of a SIP's units that make the products.
func (m convolving) rate() float64 {
	if m.rounds() {
		return float64(m.pes()) * float64(m.topology.Compute().MatrixTF32)
	}
	return float64(computeRates(m.topology)[MatrixUnit(m.dtype)])
}

// whole is the kernel that reads each operand once, and writes the result.
func (m convolving) whole(ops float64, unit Unit) Kernel {
	elements := m.Batch*(m.Inner*m.Side+m.Outer*m.Result) + m.Outer*m.Inner/m.Groups*m.Taps
	return Kernel{Bytes: int64(m.size() * elements), Ops: int64(math.Round(ops)), Unit: unit}
}

// product is the kernel of a product that takes so many ps.
func (m convolving) product(took float64) Kernel {
	return m.whole(sustained(m.topology.Kernels(), took)*m.rate()/1e12, MatrixUnit(m.dtype))
}

// time is how long kernels take, one after the other, in ps.
func (m convolving) time(kernels []Kernel) float64 {
	took := 0.0
	for _, k := range kernels {
		rate := float64(computeRates(m.topology)[k.Unit])
		if k.Unit != Vector {
			rate = m.rate()
		}
		memory := float64(m.topology.CubesPerSIP()) * float64(m.topology.Memory().Bandwidth)
		took += float64(m.topology.Kernels().Launch) + 1e12*max(float64(k.Bytes)/memory, float64(k.Ops)/rate)
	}
	return took
}

// narrow is how many columns the narrowest tiles have.
const narrow = 64

// shape is the product that the pass is, with channels in whole steps.
func (m convolving) shape() Product {
	together := min(m.Groups, max(1, narrow*m.Groups/max(m.Inner, m.Outer)))
	inner, outer, stack := m.Inner/m.Groups*together, m.Outer/m.Groups*together, up(m.Groups, together)/together
	step := max(1, int(m.takes.Step)/m.size())
	switch m.Pass {
	case Data:
		elements, depth := m.Batch*m.Side, m.Taps*up(outer, step)
		return Product{
			Stack: stack * m.Strides, M: up(elements, m.Strides) / m.Strides, N: inner, K: up(depth, m.Strides) / m.Strides,
		}
	case Weight:
		return Product{Stack: stack, M: outer, N: m.Taps * up(inner, step), K: m.Batch * m.Result}
	}
	return Product{Stack: stack, M: m.Batch * m.Result, N: outer, K: m.Taps * up(inner, step)}
}

// up is the next multiple of b.
func up(a, b int) int { return (a + b - 1) / b * b }

// unsplit are products whose depth one PE takes.
var unsplit = []int64{1}

// implicit is a product that gathers its operand, after what is converted for it.
func (m convolving) implicit() []Kernel {
	w := tiling{
		tiles: tilesOf(2), splits: unsplit, rate: m.rate(), each: m.takes.Tile * int64(m.size()), split: m.takes.Split,
	}
	if m.Pass == Weight {
		w.splits = splits
		if m.rounds() {
			w.rate /= m.takes.Weight
		}
	}
	return append(m.conversions(), m.product(w.fastest(m.topology, m.shape())))
}

// conversions are copies beside a product. Units of float32 that round nothing take images as they are.
func (m convolving) conversions() []Kernel {
	const aligned = 16 // bytes
	switch {
	case m.dtype == dtype.F32 && !m.Rounded:
		return nil
	case !m.Last && m.Taps == 1: // weights are the same in either order
		return []Kernel{m.transposed(m.Batch, m.Side, m.Inner), m.transposed(m.Batch, m.Result, m.Outer)}
	case !m.Last:
		return []Kernel{
			m.transposed(m.Batch, m.Side, m.Inner), m.transposed(m.Batch, m.Result, m.Outer),
			m.transposed(m.Outer, m.Taps, m.Inner/m.Groups),
		}
	}
	var padded []Kernel
	for _, of := range [][2]int{{m.Side, m.Inner}, {m.Result, m.Outer}} {
		elements, channels := m.Batch*of[0], of[1]
		if whole := up(channels, aligned/m.size()); m.Groups == 1 && whole > channels {
			padded = append(padded, m.copied(elements*channels, elements*whole))
		}
	}
	return padded
}

// transposed is a copy of matrices with rows and columns exchanged, by squares.
func (m convolving) transposed(stack, rows, columns int) Kernel {
	const square = 32
	return m.copied(stack*rows*columns, stack*up(rows, square)*up(columns, square))
}

// copied is a copy of elements, for which the units take some more.
func (m convolving) copied(elements, taken int) Kernel {
	return Kernel{Bytes: int64(2 * m.size() * elements), Ops: int64(math.Round(m.takes.Convert * float64(taken))), Unit: Vector}
}

// pointwise is a convolution by kernels of one element, as a product; nil of others, and for rows of float32 that begin
// off 16 bytes.
func (m convolving) pointwise() []Kernel {
	if m.Taps != 1 || m.Strides != 1 || m.Side != m.Result || m.Groups != 1 {
		return nil
	}
	p := m.matrices()
	if operands, result := p.rows(); m.dtype == dtype.F32 && (operands|result)%4 != 0 {
		return nil
	}
	k := m.topology.Kernels()
	slower := misshapen(k, m.size(), p)
	if m.rounds() {
		slower *= m.takes.PointwiseRounded
	}
	w := tiling{tilesOf(m.size()), unsplit, m.rate() / slower, k.SmallTile, k.Tile, m.takes.PointwiseSplit}
	if m.Pass == Weight {
		w.splits = splits
		p.K = m.Batch * m.Side // of all images
	}
	return []Kernel{m.product(w.fastest(m.topology, p))}
}

// matrices are those of a convolution by kernels of one element, as they lie in memory: of a batch, or of each image where
// the elements of a channel lie side by side.
func (m convolving) matrices() Product {
	rows := m.Batch * m.Side
	switch {
	case m.Last && m.Pass == Forward:
		return Product{M: rows, N: m.Outer, K: m.Inner, TransposeRight: true}
	case m.Last && m.Pass == Data:
		return Product{M: rows, N: m.Inner, K: m.Outer}
	case m.Last:
		return Product{M: m.Outer, N: m.Inner, K: rows, TransposeLeft: true}
	case m.Pass == Forward:
		return Product{Stack: m.Batch, M: m.Outer, N: m.Side, K: m.Inner}
	case m.Pass == Data:
		return Product{Stack: m.Batch, M: m.Inner, N: m.Side, K: m.Outer, TransposeLeft: true}
	}
	return Product{M: m.Outer, N: m.Inner, K: m.Side, TransposeRight: true}
}

// direct is a convolution that the vector units make: by blocks of results and of their channels, in waves, with depths in
// steps; or gradients by images whose patches do not overlap, in half the time. It is nil of others.
func (m convolving) direct() []Kernel {
	const rows, channels, depth = 64, 32, 8
	each, taken := 2*m.takes.Direct, m.Batch*m.Result
	switch {
	case each == 0 || m.Groups != 1:
		return nil
	case m.Pass == Forward:
		blocks := up(up(taken, rows)/rows*(up(m.Outer, channels)/channels), m.pes())
		return []Kernel{m.whole(each*float64(blocks*rows*channels)*float64(up(m.Taps*m.Inner, depth)), Vector)}
	case m.Pass == Data && m.Taps <= m.Strides && m.Taps > 1:
		return []Kernel{m.whole(each/2*float64(taken*m.Outer)*float64(m.Taps*m.Inner), Vector)}
	}
	return nil
}

// depthwise is a convolution of which each channel is a group.
func (m convolving) depthwise() []Kernel {
	passes := m.takes.Depthwise
	if m.Last {
		passes = m.takes.Last
	}
	each, elements := passes.Backward, m.Outer*m.Result
	switch m.Pass {
	case Forward:
		each = passes.Forward
	case Data:
		elements = m.Outer * m.Side
	}
	return []Kernel{m.whole(each*float64(m.Batch*elements*m.Taps), Vector)}
}
