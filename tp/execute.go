package tp

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// value is what a step reads or makes: a tensor, or places of tokens in the rank's part of a vocabulary.
type value struct {
	tensor *tensor.Tensor
	places *places
}

// places are where tokens are in a rank's part of a vocabulary; -1: in another's.
type places struct {
	index []int
	shape []int // of the tokens
}

// layout is what of the value decides the costs of steps: places are indices.
func (v value) layout() Layout {
	if v.places != nil {
		return Layout{Shape: v.places.shape, DType: dtype.I64}
	}
	return Layout{Shape: v.tensor.Shape(), DType: v.tensor.DType()}
}

func layoutsOf(values []value) []Layout {
	list := make([]Layout, len(values))
	for i, v := range values {
		list[i] = v.layout()
	}
	return list
}

// tensorsOf lists the values that are tensors.
func tensorsOf(values []value) []*tensor.Tensor {
	var list []*tensor.Tensor
	for _, v := range values {
		if v.tensor != nil {
			list = append(list, v.tensor)
		}
	}
	return list
}

// execution is a rank's run through a plan.
type execution struct {
	*Comm
	plan   *Plan
	values []value
	works  []*distributed.Work // of the steps that are collectives
	lent   []*tensor.Storage   // to collectives, which may be at work longer than the plan
}

// execute runs through a plan and returns its outputs, and what it saves. A step computes at once, when the data of
// its operands is in place.
func (c *Comm) execute(p *Plan, inputs ...value) (outputs, saved []value, err error) {
	if len(inputs) != len(p.Inputs) {
		return nil, nil, fmt.Errorf("%s: %d values instead of %d: %v", p.Name, len(inputs), len(p.Inputs), p.Inputs)
	}
	e := execution{Comm: c, plan: p, values: make([]value, p.Values), works: make([]*distributed.Work, len(p.Steps))}
	copy(e.values, inputs)
	for i := range p.Steps {
		if err := e.step(i); err != nil {
			return nil, nil, err
		}
	}
	e.wait(p.After)
	e.clear()
	for _, o := range p.Outputs {
		outputs = append(outputs, e.values[o.Value])
	}
	return outputs, e.pick(p.Saved), nil
}

// tensors makes values of tensors.
func valuesOf(tensors ...*tensor.Tensor) []value {
	list := make([]value, len(tensors))
	for i, t := range tensors {
		list[i].tensor = t
	}
	return list
}

func (e *execution) pick(list []Value) []value {
	picked := make([]value, len(list))
	for i, v := range list {
		picked[i] = e.values[v]
	}
	return picked
}

// wait makes the rank's stream wait for collectives. The host goes on.
func (e *execution) wait(collectives []int) {
	for _, i := range collectives {
		e.await(e.works[i])
	}
}

func (e *execution) step(i int) error {
	s := &e.plan.Steps[i]
	e.wait(s.After)
	in := e.pick(s.In)
	result, err := e.result(i, s, in)
	if err != nil {
		return err
	}
	for _, v := range s.Out {
		e.values[v] = result
	}
	e.drop(s.Drop)
	return nil
}

// result does a step, and charges the rank's stream for it.
func (e *execution) result(i int, s *Step, in []value) (value, error) {
	if s.Op.isCollective() {
		t, work, err := e.start(s, in[0].tensor)
		e.works[i] = work
		if t != in[0].tensor {
			e.lent = append(e.lent, in[0].tensor.Storage())
		}
		if err == nil && !s.Beside {
			e.await(work)
		}
		return value{tensor: t}, err
	}
	if err := e.settle(tensorsOf(in)...); err != nil {
		return value{}, err
	}
	result, err := operations[s.Op](e.Comm, s.With, in)
	if err != nil || leftOut(s, in, result) {
		return result, err
	}
	return result, e.charge(s, append(in, result))
}

// leftOut says whether a step had nothing to do, since its operand is what it is to make.
func leftOut(s *Step, in []value, result value) bool {
	return s.Out[0] != s.In[0] && result.tensor != nil && in[0].tensor != nil && result.tensor.Storage() == in[0].tensor.Storage()
}

// drop forgets values, and gives the memory back of those that nobody needs any more: not of inputs, which are the
// caller's. A step has read them, so that they are in place; but a collective may still be to read what was lent to it,
// and to write what has no elements.
func (e *execution) drop(list []Value) {
	for _, v := range list {
		t := e.values[v].tensor
		e.values[v] = value{}
		if v >= len(e.plan.Inputs) && t != nil && t.Numel() > 0 && !slices.Contains(e.lent, t.Storage()) && !e.holds(t) {
			t.Storage().Release()
		}
	}
}

// clear drops what the plan has made and does not return.
func (e *execution) clear() {
	var rest []Value
	for v := len(e.plan.Inputs); v < e.plan.Values; v++ {
		returned := slices.ContainsFunc(e.plan.Outputs, func(o Result) bool { return o.Value == v })
		if !returned && !slices.Contains(e.plan.Saved, v) {
			rest = append(rest, v)
		}
	}
	e.drop(rest)
}

// holds says whether a value has its elements in the storage of t.
func (e *execution) holds(t *tensor.Tensor) bool {
	return slices.ContainsFunc(e.values, func(v value) bool { return v.tensor != nil && v.tensor.Storage() == t.Storage() })
}
