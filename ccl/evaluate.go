package ccl

import (
	"fmt"

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

// Evaluate executes the schedule's steps on real data and returns every rank's result: for ReduceScatter and Scatter the
// rank's block, for AllToAll what it got from each rank, otherwise the whole vector; nil for ranks that end with nothing.
// When all results are equal by construction, they are one *Storage, which then
// occurs once a rank. They are new and belong to the caller.
//
// The bits are those of the steps: each reduction takes its operands in the schedule's order and rounds once to the
// dtype. Of reductions that several ranks do with the same two operands one is computed. The average divides once,
// where a value has become final; with AccumulateF32 before the one rounding.
//
// An error says which of the values does not fit, or that memory has run out.
func (s *Schedule) Evaluate(v Values) ([]*tensor.Storage, error) {
	if s.Collective == AllGather {
		v.Op = tensor.Sum // defined on every dtype, and has nothing to finish
	}
	if err := v.check(s); err != nil {
		return nil, err
	}
	e := newEvaluation(s, v)
	if err := e.survey(); err != nil {
		return nil, err
	}
	if err := e.allocate(); err != nil {
		return nil, err
	}
	for k := range e.batches {
		e.run(e.program.batch(k))
	}
	return e.results(), nil
}

func (v *Values) check(s *Schedule) error {
	if len(v.Inputs) != s.World {
		return fmt.Errorf("%s for %d ranks got the inputs of %d", s.Collective, s.World, len(v.Inputs))
	}
	if err := v.Op.Check(v.DType); err != nil {
		return err
	}
	n := len(v.Inputs[0])
	for r, in := range v.Inputs {
		if len(in) != n {
			return fmt.Errorf("%s: rank %d's input has %d bytes, rank 0's has %d: they must be equal", s.Collective, r, len(in), n)
		}
	}
	unit := v.DType.Size()
	if s.Collective == ReduceScatter {
		unit *= s.World
	}
	if n%unit != 0 {
		return fmt.Errorf("%s: inputs of %d bytes are not a multiple of %d (%s, %d ranks)", s.Collective, n, unit, v.DType, s.World)
	}
	return nil
}

// evaluation is one call of Evaluate.
type evaluation struct {
	*Values
	schedule *Schedule
	program  *program
	size     int // bytes of an element
	elems    int // of the whole vector
	wide     bool
	batches  int               // the program's first ones, which cover all chunks that are not empty
	shared   bool              // all ranks have one result
	stores   []*tensor.Storage // the results: of all ranks, or the shared one
	outputs  [][]byte          // their bytes
}

func newEvaluation(s *Schedule, v Values) *evaluation {
	e := &evaluation{Values: &v, schedule: s, program: s.program(), size: v.DType.Size()}
	e.elems = len(v.Inputs[0]) / e.size
	if s.Collective == AllGather {
		e.elems *= s.World
	}
	e.wide = v.AccumulateF32 && widens(v.DType)
	e.batches = (s.filled(e.elems) + e.program.width - 1) / e.program.width
	return e
}

// filled is the number of chunks up to the last that is not empty when the vector has n elements.
func (s *Schedule) filled(n int) int {
	last := min(n, s.Blocks) - 1
	if last < 0 {
		return 0
	}
	lo, hi := share(n, s.Blocks, last)
	return last*s.Sub + min(hi-lo, s.Sub)
}

// survey finds out whether all ranks have one result.
func (e *evaluation) survey() error {
	e.shared = e.schedule.Collective != ReduceScatter
	for k := range e.batches {
		uniform, err := e.program.survey(k)
		if err != nil {
			return err
		}
		e.shared = e.shared && uniform
	}
	return nil
}

// allocate makes the results, not filled.
func (e *evaluation) allocate() error {
	results, bytes := e.schedule.World, e.elems*e.size
	if e.shared {
		results = 1
	}
	if e.schedule.Collective == ReduceScatter {
		bytes /= e.schedule.World
	}
	e.stores = make([]*tensor.Storage, results)
	e.outputs = make([][]byte, results)
	for k := range e.stores {
		st, err := tensor.NewStorageUninit(bytes)
		if err != nil {
			for _, earlier := range e.stores[:k] {
				earlier.Release()
			}
			return fmt.Errorf("%s: results of %d × %d bytes: %w", e.schedule.Collective, results, bytes, err)
		}
		e.stores[k], e.outputs[k] = st, st.Writable()
	}
	return nil
}

// results hands each rank its storage.
func (e *evaluation) results() []*tensor.Storage {
	if !e.shared {
		return e.stores
	}
	list := make([]*tensor.Storage, e.schedule.World)
	for r := range list {
		list[r] = e.stores[0]
	}
	return list
}
