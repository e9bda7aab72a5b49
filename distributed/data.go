package distributed

import (
	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// moveData executes the schedule on the members' tensors.
func (m *meeting) moveData() error {
	inputs := make([][]byte, len(m.parts))
	for i, p := range m.parts {
		inputs[i] = contents(p.in)
	}
	results, err := m.schedule.Evaluate(ccl.Values{
		Op: m.op, DType: m.parts[0].in.DType(), AccumulateF32: m.group.backend.Options.AccumulateF32, Inputs: inputs,
	})
	if err != nil {
		return err
	}
	defer releaseEach(results)
	for i, p := range m.parts {
		if err := store(p.out, results[i]); err != nil {
			return err
		}
	}
	return nil
}

// contents returns the tensor's elements in order, without a copy when they lie so in memory.
func contents(t *tensor.Tensor) []byte {
	if !t.IsContiguous() {
		return t.Gather()
	}
	size := t.DType().Size()
	lo := t.Offset() * size
	return t.Storage().Bytes()[lo : lo+t.Numel()*size]
}

// store makes result the tensor's contents. A tensor that is all of its storage takes the memory over, shared with
// the other members until someone writes.
func store(t *tensor.Tensor, result *tensor.Storage) error {
	if t.IsContiguous() && t.Storage().Len() == result.Len() {
		t.Storage().Adopt(result)
		return nil
	}
	return t.Scatter(result.Bytes())
}

// releaseEach gives up this function's hold on the results, of which several may be the same.
func releaseEach(results []*tensor.Storage) {
	released := map[*tensor.Storage]bool{}
	for _, r := range results {
		if !released[r] {
			released[r] = true
			r.Release()
		}
	}
}
