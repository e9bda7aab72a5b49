package distributed

import (
	"fmt"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Work is one rank's part in a collective.
type Work struct {
	*torchemu.Event
	Record *Record // what was run; nil until every rank has joined
}

// call is what the ranks of a group must agree on when they meet in a collective.
type call struct {
	name  string // torch.distributed's name of the operation
	dtype string
	numel int // elements of the rank's input
	op    string
}

func (c call) String() string {
	s := fmt.Sprintf("%s of %d %s elements", c.name, c.numel, c.dtype)
	if c.op != "" {
		s += ", op " + c.op
	}
	return s
}

func callOf(c ccl.Collective, op tensor.ReduceOp, in *tensor.Tensor) call {
	k := call{name: NameOf(c), dtype: in.DType().Name(), numel: in.Numel()}
	if c != ccl.AllGather {
		k.op = op.String()
	}
	return k
}

// NameOf is torch.distributed's name of a collective.
func NameOf(c ccl.Collective) string { return names[c] }

var names = [...]string{
	ccl.AllReduce:     "all_reduce",
	ccl.AllGather:     "all_gather_into_tensor",
	ccl.ReduceScatter: "reduce_scatter_tensor",
}

// differences names, in words, what c and d disagree on.
func (c call) differences(d call) []string {
	var list []string
	for _, f := range []struct {
		name string
		same bool
	}{
		{"the operation", c.name == d.name},
		{"the dtype", c.dtype == d.dtype},
		{"the number of elements", c.numel == d.numel},
		{"the reduce op", c.op == d.op},
	} {
		if !f.same {
			list = append(list, f.name)
		}
	}
	return list
}

// MismatchError says that two ranks of a group met in collectives that do not fit together.
type MismatchError struct {
	Group       int
	Seq         uint64
	Rank, Other int // Rank came later
	call, other call
}

func (e *MismatchError) Error() string {
	text := fmt.Sprintf("ranks disagree in collective #%d of group %d: rank %d calls %v, but rank %d calls %v; they differ in",
		e.Seq, e.Group, e.Other, e.other, e.Rank, e.call)
	for i, d := range e.call.differences(e.other) {
		if i > 0 {
			text += " and"
		}
		text += " " + d
	}
	return text
}
