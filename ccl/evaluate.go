package ccl

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Evaluate executes the schedule's steps on real data and returns every rank's result: for ReduceScatter and Scatter the
// rank's block, for AllToAll what it got from each rank, otherwise the whole vector; nil for ranks that end with nothing.
// When all results are equal by construction, they are one *Storage, which then occurs once a rank. They are new and
// belong to the caller.
//
// The bits are those of the steps: each reduction takes its operands in the schedule's order and rounds once to the
// dtype. Of reductions that several ranks do with the same two operands one is computed. The average divides once,
// where a value has become final; with AccumulateF32 before the one rounding.
//
// An error says which of the values does not fit, or that memory has run out.
func (s *Schedule) Evaluate(v Values) ([]*tensor.Storage, error) {
	elems, err := v.check(s)
	if err != nil {
		return nil, err
	}
	if !s.Collective.Reduces() {
		return s.deliver(v, elems)
	}
	e := newEvaluation(s, v, elems)
	if err := e.allocate(e.survey()); err != nil {
		return nil, err
	}
	for k := range e.batches {
		e.run(e.program.batch(k))
	}
	return e.stores, nil
}

// outcome is the results of a call, to be filled in.
type outcome struct {
	apportionment
	size    int               // bytes of an element
	stores  []*tensor.Storage // by rank; nil where it ends with nothing
	outputs [][]byte          // their bytes
}

// allocate makes the results, not filled: one for all ranks if it is shared.
func (o *outcome) allocate(shared bool) error {
	o.stores = make([]*tensor.Storage, o.World)
	o.outputs = make([][]byte, o.World)
	for r := range o.stores {
		switch {
		case o.Schedule.ends(r) == collective.None:
			continue
		case shared && r > 0:
			o.stores[r], o.outputs[r] = o.stores[0], o.outputs[0]
			continue
		}
		st, err := tensor.NewStorageUninit(o.ends(r) * o.size)
		if err != nil {
			o.release(r)
			return fmt.Errorf("%s: result of %d × %d bytes for rank %d: %w", o.Collective, o.ends(r), o.size, r, err)
		}
		o.stores[r], o.outputs[r] = st, st.Writable()
	}
	return nil
}

// release gives back what the ranks before one were given.
func (o *outcome) release(before int) {
	for _, st := range o.stores[:before] {
		if st != nil {
			st.Release()
		}
	}
}

// evaluation is one call of Evaluate that reduces.
type evaluation struct {
	*Values
	outcome
	program  *program
	cut      cut
	wide     bool
	batches  int  // the program's first ones, which cover all chunks that are not empty
	shared   bool // all ranks have one result
	perChunk int  // blocks of the longest chunk: see run
}

func newEvaluation(s *Schedule, v Values, elems int) *evaluation {
	e := &evaluation{Values: &v, program: s.program(), cut: s.cut(elems, v.Sizes)}
	e.outcome = outcome{apportionment: apportionment{s, elems, v.Sizes}, size: v.DType.Size()}
	e.wide = (v.AccumulateF32 || s.reducesInSwitch()) && widens(v.DType)
	e.batches = (e.cut.filled() + e.program.width - 1) / e.program.width
	e.perChunk = (e.cut.longest() + e.blockElems() - 1) / e.blockElems()
	return e
}

// survey finds out whether all ranks have one result.
func (e *evaluation) survey() bool {
	e.shared = e.Collective.EndsAlike()
	for k := range e.batches {
		e.shared = e.program.survey(k) && e.shared
	}
	return e.shared
}
