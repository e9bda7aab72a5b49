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

// Reason says what a waitable is waiting for, as in the report of a deadlock; "" when it has ended.
func Reason(waitable int64) (text string, err error) {
	defer guard(&err)
	e, err := pendingOn(waitable)
	if err != nil || e == nil || e.Done() || e.Reason() == nil {
		return "", err
	}
	return e.Reason().String(), nil
}
