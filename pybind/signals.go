package pybind

import "github.com/torchemu/torchemu/torchemu"

// awaited is what a signal waits for, and which ranks could end it.
type awaited struct {
	reason
	ranks []int
}

func (a awaited) Needs() []int { return a.ranks }

// NewSignalOf is NewSignal where it is known which ranks, "0,2", could end the signal: a deadlock's likely cause is
// found through them.
func NewSignalOf(worldHandle int64, text, ranks string) (event int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	needs, err := parseInts(ranks)
	if err != nil {
		return 0, err
	}
	return register(owned[*torchemu.Event]{torchemu.NewEvent(awaited{reason(text), needs}), w}), nil
}
