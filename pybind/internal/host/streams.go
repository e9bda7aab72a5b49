package host

import (
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// StreamOf finds a stream whose World is open.
func StreamOf(handle int64) (Owned[*torchemu.Stream], error) {
	return OwnedBy[*torchemu.Stream](handle, "stream")
}

// Limited is an event that ends with another one, or fails, with a TimeoutError, when a rank's host has waited for so long.
func Limited(w *World, r *torchemu.Rank, e *torchemu.Event, d sim.Time, text string) *torchemu.Event {
	if e.Done() {
		return e
	}
	both := torchemu.NewEvent(e.Reason())
	cancel := w.Deadline(r.Now()+d, func(now sim.Time) { both.Fail(Raise("TimeoutError", "%s", text), now) })
	e.WhenDone(func() {
		if both.Done() { // too late
			return
		}
		cancel()
		both.Knows(e.Known())
		both.Fail(e.Err(), e.At())
	})
	return both
}

// What Settled and Soon answer instead of an event.
const (
	InPlace = 0  // the data of all operations on the storage is in place
	Apart   = -1 // that of those on the tensor's elements is, so far as they are in the way
	InVain  = -2 // the computation is to be put off
)

// Unsettled returns the operations whose data is to be in place before a tensor is read, or written, and its World; or,
// without any, the answer. An operation that has failed is an error.
func Unsettled(t int64, writes bool) (w *World, before []*torchemu.Event, answer int64, err error) {
	o, err := TensorOf(t)
	if err != nil {
		return nil, nil, 0, err
	}
	before = torchemu.PendingOn(o.Object.Tensor, tensor.Access(writes))
	if err := torchemu.FirstError(before); err != nil {
		return nil, nil, 0, err
	}
	before = torchemu.Unsettled(before)
	if len(before) == 0 && !torchemu.Whole(torchemu.Users(o.Object.Storage())) {
		return o.World, nil, Apart, nil
	}
	return o.World, before, InPlace, nil
}

// OwnStream hands out one of a rank's streams, as of returns it.
func OwnStream(world int64, rank int, of func(*torchemu.Rank) *torchemu.Stream) (int64, error) {
	w, r, err := RankOf(world, rank)
	if err != nil {
		return 0, err
	}
	return Own(w, of(r)), nil
}
