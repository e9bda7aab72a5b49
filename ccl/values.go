package ccl

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Values is the data of one collective call.
type Values struct {
	Op    tensor.ReduceOp // only of collectives that reduce
	DType dtype.DType

	// AccumulateF32 keeps partial sums of f16, bf16 and the 8-bit floats in float32, and rounds once, at the end.
	// Other dtypes are reduced in their own format always.
	AccumulateF32 bool

	// Inputs[r] is what rank r starts with: its vector; for AllGather and Gather its block; for Broadcast and Scatter
	// nil but for the root. They are only read.
	Inputs [][]byte

	// Sizes are the elements of each block, as in [Launch]. nil: equal blocks.
	Sizes []int
}

// PartialSize is the bytes that an element of a partial sum takes: see [Launch].
func PartialSize(d dtype.DType, accumulateF32 bool) int {
	if accumulateF32 && widens(d) {
		return dtype.F32.Size()
	}
	return d.Size()
}

// widens says whether partial sums of this dtype can be kept in float32 instead.
func widens(d dtype.DType) bool { return d.IsFloat() && d.Size() < dtype.F32.Size() }

// check verifies that the values fit the schedule and each other, and returns how many elements there are, as in
// [Launch].
func (v *Values) check(s *Schedule) (elems int, err error) {
	if len(v.Inputs) != s.World {
		return 0, fmt.Errorf("%s for %d ranks got the inputs of %d", s.Collective, s.World, len(v.Inputs))
	}
	if v.DType.Size() == 0 {
		return 0, fmt.Errorf("%s of elements of %s", s.Collective, v.DType)
	}
	if s.Collective.Reduces() {
		if err := v.Op.Check(v.DType); err != nil {
			return 0, err
		}
	}
	if v.Sizes != nil {
		return v.checkSizes(s)
	}
	return v.checkEqual(s)
}

// checkEqual wants all inputs to be equally long, and to consist of equal blocks.
func (v *Values) checkEqual(s *Schedule) (elems int, err error) {
	lead := 0 // who has an input
	if s.Collective.Rooted() {
		lead = s.Root
	}
	n := len(v.Inputs[lead])
	for r, in := range v.Inputs {
		switch {
		case s.starts(r) == collective.None && len(in) > 0:
			return 0, fmt.Errorf("%s: rank %d has an input of %d bytes, but only the root, rank %d, starts with anything",
				s.Collective, r, len(in), s.Root)
		case s.starts(r) != collective.None && len(in) != n:
			return 0, fmt.Errorf("%s: rank %d's input has %d bytes, rank %d's has %d: they must be equal",
				s.Collective, r, len(in), lead, n)
		}
	}
	unit := v.DType.Size()
	if s.Collective.Blocks(s.World) > 0 && s.starts(lead) != collective.Block {
		unit *= s.World
	}
	if n%unit != 0 {
		return 0, fmt.Errorf("%s: inputs of %d bytes are not a multiple of %d (%s, %d ranks)",
			s.Collective, n, unit, v.DType, s.World)
	}
	elems = n / v.DType.Size()
	if s.starts(lead) != collective.Vector {
		elems *= s.World
	}
	return elems, nil
}

// checkSizes wants every input to be as long as its blocks.
func (v *Values) checkSizes(s *Schedule) (elems int, err error) {
	if elems, err = s.checkSizes(v.Sizes); err != nil {
		return 0, err
	}
	a := apportionment{s, elems, v.Sizes}
	for r, in := range v.Inputs {
		if want := a.starts(r); len(in) != want*v.DType.Size() {
			return 0, fmt.Errorf("%s: rank %d's input has %d bytes; by the sizes of the blocks it has %d elements of %d",
				s.Collective, r, len(in), want, v.DType.Size())
		}
	}
	return elems, nil
}

// checkSizes verifies the sizes of blocks and returns their sum.
func (s *Schedule) checkSizes(sizes []int) (elems int, err error) {
	want := s.Collective.Blocks(s.World)
	switch {
	case want == 0:
		return 0, fmt.Errorf("%s takes no sizes: its ranks have no blocks", s.Collective)
	case len(sizes) != want:
		return 0, fmt.Errorf("%s of %d ranks has %d blocks, but got the sizes of %d", s.Collective, s.World, want, len(sizes))
	}
	for b, n := range sizes {
		if n < 0 {
			return 0, fmt.Errorf("%s: the size of block %d is %d elements", s.Collective, b, n)
		}
		elems += n
	}
	return elems, nil
}

// apportionment says how many elements each rank has.
type apportionment struct {
	*Schedule
	elems int   // in all
	sizes []int // of blocks; nil: equal
}

// starts is how many elements a rank starts with.
func (a apportionment) starts(rank int) int {
	if a.Collective.Exchanges() && a.sizes != nil {
		return total(a.sizes[rank*a.World:][:a.World])
	}
	return a.of(a.Schedule.starts(rank), rank)
}

// ends is how many elements a rank ends with.
func (a apportionment) ends(rank int) int {
	if a.Collective.Exchanges() && a.sizes != nil {
		n := 0
		for src := range a.World {
			n += a.sizes[src*a.World+rank]
		}
		return n
	}
	return a.of(a.Schedule.ends(rank), rank)
}

func (a apportionment) of(share collective.Share, rank int) int {
	switch {
	case share == collective.None:
		return 0
	case share == collective.Block && a.sizes != nil:
		return a.sizes[rank]
	case share != collective.Vector:
		return a.elems / a.World
	}
	return a.elems
}

func total(sizes []int) int {
	n := 0
	for _, size := range sizes {
		n += size
	}
	return n
}
