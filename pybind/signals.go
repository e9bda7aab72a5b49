package pybind

import (
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
)

// NewSignalOf is NewSignal where it is known which ranks could end the signal: a deadlock's likely cause is
// found through them.
func NewSignalOf(worldHandle int64, text string, ranksAt int64, ranks int) (event int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	needs, err := host.Ints(ranksAt, ranks)
	if err != nil {
		return 0, err
	}
	return host.Own(w, torchemu.NewEvent(host.Signal{Text: text, Ranks: needs})), nil
}

// Reason says what a waitable is waiting for, as in the report of a deadlock; "" when it has ended.
func Reason(waitable int64) (text string, err error) {
	defer host.Guard(&err)
	e, err := host.PendingOn(waitable)
	if err != nil || e == nil || e.Done() || e.Reason() == nil {
		return "", err
	}
	return e.Reason().String(), nil
}
