package ccl

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Values is the data of one collective call.
type Values struct {
	Op    tensor.ReduceOp // not used by AllGather
	DType dtype.DType

	// AccumulateF32 keeps partial sums of f16, bf16 and the 8-bit floats in float32, and rounds once, at the end.
	// Other dtypes are reduced in their own format always.
	AccumulateF32 bool

	// Inputs[r] is rank r's vector; for AllGather its block. All have the same length; they are only read.
	Inputs [][]byte
}

// PartialSize is the bytes that an element of a partial sum takes: see [Launch.PartialSize].
func PartialSize(d dtype.DType, accumulateF32 bool) int {
	if accumulateF32 && widens(d) {
		return dtype.F32.Size()
	}
	return d.Size()
}

// widens says whether partial sums of this dtype can be kept in float32 instead.
func widens(d dtype.DType) bool { return d.IsFloat() && d.Size() < dtype.F32.Size() }

// Evaluate executes the schedule's steps on real data and returns every rank's result: for ReduceScatter the rank's
// block, otherwise the whole vector. Results that are equal by construction are one *Storage, which then occurs more
// than once; they are new and belong to the caller.
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
	p, err := s.program()
	if err != nil {
		return nil, err
	}
	e := newEvaluation(s, p, v)
	if err := e.allocate(); err != nil {
		return nil, err
	}
	e.run()
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
	stores   []*tensor.Storage // the distinct results
	outputs  [][]byte          // their bytes
}

func newEvaluation(s *Schedule, p *program, v Values) *evaluation {
	e := &evaluation{Values: &v, schedule: s, program: p, size: v.DType.Size()}
	e.elems = len(v.Inputs[0]) / e.size
	if s.Collective == AllGather {
		e.elems *= s.World
	}
	e.wide = v.AccumulateF32 && widens(v.DType)
	return e
}

// allocate makes the results, not filled.
func (e *evaluation) allocate() error {
	bytes := e.elems * e.size
	if e.schedule.Collective == ReduceScatter {
		bytes /= e.schedule.World
	}
	e.stores = make([]*tensor.Storage, e.program.outputs)
	e.outputs = make([][]byte, e.program.outputs)
	for k := range e.stores {
		st, err := tensor.NewStorageUninit(bytes)
		if err != nil {
			for _, earlier := range e.stores[:k] {
				earlier.Release()
			}
			return fmt.Errorf("%s: results of %d × %d bytes: %w", e.schedule.Collective, len(e.stores), bytes, err)
		}
		e.stores[k], e.outputs[k] = st, st.Writable()
	}
	return nil
}

// results hands each rank its storage.
func (e *evaluation) results() []*tensor.Storage {
	list := make([]*tensor.Storage, e.schedule.World)
	for r := range list {
		list[r] = e.stores[e.program.output[r]]
	}
	return list
}
