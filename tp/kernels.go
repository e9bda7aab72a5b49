package tp

import (
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Kernel is one program of a device, and what it costs: for a product what [network.MatMulCost] says, for others the
// bytes that it moves, and an operation of the vector units for each element of one operand.
type Kernel struct {
	Name    string   `json:"name"`
	Product bool     `json:"product,omitempty"`
	Bytes   []Amount `json:"bytes,omitempty"`
	Ops     *int     `json:"ops,omitempty"` // an operand; nil: it only moves elements
}

// Amount is that of as many elements as an operand of a step has. Operands are those of the step's In, and then of its
// Out.
type Amount struct {
	Elements int `json:"elements"`       // of this operand
	Size     int `json:"size,omitempty"` // bytes of each; 0: as those of the operand SizeOf
	SizeOf   int `json:"size_of"`
}

// The sizes of indices and of truth values.
const (
	indexSize = 8
	truthSize = 1
)

// own is the amounts of operands.
func own(operands ...int) []Amount {
	list := make([]Amount, len(operands))
	for i, o := range operands {
		list[i] = Amount{Elements: o, SizeOf: o}
	}
	return list
}

// each is as many elements as an operand has, of a size each, so many times.
func each(operand, size, times int) []Amount {
	list := make([]Amount, times)
	for i := range list {
		list[i] = Amount{Elements: operand, Size: size}
	}
	return list
}

// like is as many elements as an operand has, of the size of another's.
func like(operand, other, times int) []Amount {
	list := make([]Amount, times)
	for i := range list {
		list[i] = Amount{Elements: operand, SizeOf: other}
	}
	return list
}

// moving is a kernel that moves elements; computing also does an operation for each of an operand's.
func moving(name string, bytes ...[]Amount) Kernel {
	k := Kernel{Name: name}
	for _, amounts := range bytes {
		k.Bytes = append(k.Bytes, amounts...)
	}
	return k
}

func computing(name string, ops int, bytes ...[]Amount) Kernel {
	k := moving(name, bytes...)
	k.Ops = &ops
	return k
}

// kernels are those of local operations, by the names and in the order of PyTorch's. A view has none. Where there are
// several, none counts what the step makes, so that each can be charged before the next.
var kernels = map[Op][]Kernel{
	OpContiguous: {moving("clone", own(0, 1))},
	OpCopy:       {moving("clone", own(0, 1))},
	OpRows:       {moving("clone", own(0, 1))},
	OpJoin:       {moving("cat", own(0, 1))},
	OpStack:      {moving("cat", own(0, 1))},
	OpCast:       {moving("to", own(0, 1))},
	OpSumRows:    {computing("sum", 0, own(0, 1))},
	OpAdd:        {computing("add", 2, own(0, 1, 2))},
	OpSub:        {computing("sub", 2, own(0, 1, 2))},
	OpDiv:        {computing("div", 2, own(0, 1, 2))},
	OpExp:        {computing("exp", 1, own(0, 1))},
	OpLog:        {computing("log", 1, own(0, 1))},
	OpMaxLast:    {computing("amax", 0, own(0, 1))},
	OpSumLast:    {computing("sum", 0, own(0, 1))},
	OpMeanLast:   {computing("mean", 0, own(0, 1))},
	OpScale:      {computing("mul", 1, own(0, 1))},
	OpShiftInto:  {computing("sub", 1, own(0, 1))},
	OpMulInto:    {computing("mul", 2, own(0, 1, 2))},
	OpLocate: {
		computing("lt", 0, own(0), each(0, truthSize, 1)),
		computing("ge", 0, own(0), each(0, truthSize, 1)),
		computing("bitwise_or", 0, each(0, truthSize, 3)),
		computing("sub", 0, own(0, 0)),
		moving("masked_fill", own(0, 0), each(0, truthSize, 1)),
	},
	OpLookup:    {moving("embedding", own(2, 2), each(0, indexSize, 1))},
	OpMask:      {moving("masked_fill", own(0, 2), each(1, truthSize, 1))},
	OpTableGrad: {computing("embedding_dense_backward", 1, own(1, 2), each(0, indexSize, 1))},
	OpEnumerate: {moving("arange", each(0, indexSize, 1))},
	OpPick: {
		moving("index", like(1, 0, 2), each(2, indexSize, 2)),
		moving("masked_fill", like(1, 0, 2), each(1, truthSize, 1)),
	},
	OpAddAt: {
		computing("bitwise_not", 1, each(1, truthSize, 2)),
		moving("to", each(1, truthSize, 1), like(1, 0, 1)),
		moving("arange", each(2, indexSize, 1)),
		moving("index", like(2, 0, 2), each(2, indexSize, 2)),
		computing("mul", 1, like(1, 0, 2)),
		computing("sub", 1, like(1, 0, 3)),
		moving("index_put_", like(2, 0, 2), each(2, indexSize, 2)),
	},
}

// kernelsOf lists the kernels of a step.
func kernelsOf(op Op, with Parameters) []Kernel {
	if op != OpMatMul {
		return kernels[op]
	}
	if with.TransposeLeft {
		return []Kernel{{Name: "matmul", Product: true}}
	}
	return []Kernel{{Name: "linear", Product: true}}
}

// charge puts the kernels of a step on the rank's stream. A host that reads its results waits for the last one's end.
func (c *Comm) charge(s *Step, operands []value) error {
	results := tensorsOf(operands[len(s.In):])
	for i, cost := range s.Costs(c.topology, layoutsOf(operands)) {
		var outs []*tensor.Tensor
		if i == len(s.Kernels)-1 {
			outs = results
		}
		if _, err := c.stream().Kernel(s.Kernels[i].Name, cost, outs...); err != nil {
			return err
		}
	}
	return nil
}

// Layout is what of an operand decides how long a kernel takes.
type Layout struct {
	Shape []int
	DType dtype.DType
}

func (l Layout) numel() int {
	rows, cols := matrixShape(l.Shape)
	return rows * cols
}

// Costs lists what each of the step's kernels takes on a SIP, for operands: those of In, and then of Out, as far as a
// kernel counts them.
func (s *Step) Costs(t *topology.Topology, operands []Layout) []network.Kernel {
	costs := make([]network.Kernel, len(s.Kernels))
	for i := range s.Kernels {
		if s.Kernels[i].Product {
			costs[i] = s.productCost(t, operands[0], operands[2])
		} else {
			costs[i] = s.Kernels[i].vectorCost(operands)
		}
	}
	return costs
}

// productCost is what left·right takes. Left transposed, its rows are what an element of the result is a sum over.
func (s *Step) productCost(t *topology.Topology, left, result Layout) network.Kernel {
	rows, depth := matrixShape(left.Shape)
	if s.With.TransposeLeft {
		depth = rows
	}
	m, n := matrixShape(result.Shape)
	return network.MatMulCost(t, result.DType, network.Product{
		M: m, N: n, K: depth, TransposeLeft: s.With.TransposeLeft, TransposeRight: s.With.TransposeRight,
	})
}

func (k *Kernel) vectorCost(operands []Layout) network.Kernel {
	cost := network.Kernel{Unit: network.Vector}
	for _, a := range k.Bytes {
		size := a.Size
		if size == 0 {
			size = operands[a.SizeOf].DType.Size()
		}
		cost.Bytes += int64(operands[a.Elements].numel() * size)
	}
	if k.Ops != nil {
		cost.Ops = int64(operands[*k.Ops].numel())
	}
	return cost
}

// matrixShape is the numbers of rows and columns of a tensor of which all dimensions but the last are rows. One without
// dimensions has an element.
func matrixShape(shape []int) (rows, cols int) {
	if len(shape) == 0 {
		return 1, 1
	}
	rows = 1
	for _, n := range shape[:len(shape)-1] {
		rows *= n
	}
	return rows, shape[len(shape)-1]
}
