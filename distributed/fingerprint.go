package distributed

import (
	"encoding/json"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Fingerprint is what PyTorch's debug level DETAIL would compare and print of a rank's call.
type Fingerprint struct {
	Rank    int     `json:"rank"`  // in the group
	World   int     `json:"world"` // the same rank's number in the World
	Name    string  `json:"name"`  // as the program called it
	DType   string  `json:"dtype"`
	Inputs  [][]int `json:"inputs"` // shapes of what the rank gives; none where it does not
	Outputs [][]int `json:"outputs"`
}

func (m *meeting) fingerprint(member int, c call, in, out []*tensor.Tensor) Fingerprint {
	return Fingerprint{
		Rank: member, World: m.group.Members[member],
		Name: c.name, DType: c.dtype.Name(), Inputs: shapes(in), Outputs: shapes(out),
	}
}

// fingerprintOf is that of a member who has joined.
func (m *meeting) fingerprintOf(member int) Fingerprint {
	p := &m.parts[member]
	return m.fingerprint(member, m.call, p.in, p.out)
}

func shapes(list []*tensor.Tensor) [][]int {
	all := make([][]int, len(list))
	for i, t := range list {
		all[i] = append([]int{}, t.Shape()...) // JSON's [] and not null where there are no dimensions
	}
	return all
}

// Details is the mismatch for programs: the collective's number, and what both ranks called.
func (e *MismatchError) Details() string {
	text, err := json.Marshal(map[string]any{"number": e.Seq, "calls": e.Calls})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(text)
}
