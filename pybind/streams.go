package pybind

import (
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

func streamOf(handle int64) (owned[*torchemu.Stream], error) {
	return ownedBy[*torchemu.Stream](handle, "stream")
}

func rankOf(worldHandle int64, rank int) (*world, *torchemu.Rank, error) {
	w, err := worldOf(worldHandle)
	if err != nil {
		return nil, nil, err
	}
	r, err := w.Rank(rank)
	return w, r, err
}

// DefaultStream returns a rank's default stream.
func DefaultStream(worldHandle int64, rank int) (stream int64, err error) {
	defer guard(&err)
	w, r, err := rankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	return register(owned[*torchemu.Stream]{r.Stream(), w}), nil
}

// NewStream returns another stream on a rank's device.
func NewStream(worldHandle int64, rank int) (stream int64, err error) {
	defer guard(&err)
	w, r, err := rankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	return register(owned[*torchemu.Stream]{r.NewStream(), w}), nil
}

// StreamNumber is a stream's number in its rank, from 0, the default stream.
func StreamNumber(stream int64) (number int, err error) {
	defer guard(&err)
	s, err := streamOf(stream)
	if err != nil {
		return 0, err
	}
	return s.object.Number, nil
}

// StreamWait makes later operations of a stream start after what is pending on a tensor, or after a work or event. One
// that has failed is an error.
func StreamWait(stream, waitable int64) (err error) {
	defer guard(&err)
	s, err := streamOf(stream)
	if err != nil {
		return err
	}
	e, err := pendingOn(waitable)
	if err != nil || e == nil {
		return err
	}
	s.object.Wait(e)
	return e.Err()
}

// StreamRecord returns an event that ends when all operations have ended that are on the stream now.
func StreamRecord(stream int64) (event int64, err error) {
	defer guard(&err)
	s, err := streamOf(stream)
	if err != nil {
		return 0, err
	}
	return register(owned[*torchemu.Event]{s.object.Record(), s.world}), nil
}

// StreamSettled is Settled for the data of all that is on a stream now.
func StreamSettled(stream int64) (event int64, err error) {
	defer guard(&err)
	s, err := streamOf(stream)
	if err != nil {
		return 0, err
	}
	e := s.object.Settled()
	if e == nil {
		return 0, nil
	}
	return register(owned[*torchemu.Event]{e, s.world}), nil
}

// EventTime is when a work or event ended, in simulated picoseconds.
func EventTime(waitable int64) (ps int64, err error) {
	defer guard(&err)
	e, err := pendingOn(waitable)
	if err != nil {
		return 0, err
	}
	if e == nil || !e.Done() {
		return 0, raise("RuntimeError", "the event has not ended: synchronize first")
	}
	return int64(e.At()), nil
}

// Spend lets simulated time pass on a rank's host, in picoseconds.
func Spend(worldHandle int64, rank int, ps int64) (err error) {
	defer guard(&err)
	_, r, err := rankOf(worldHandle, rank)
	if err != nil {
		return err
	}
	if ps < 0 {
		return raise("ValueError", "time cannot pass backwards: %d ps", ps)
	}
	r.Spend(sim.Time(ps))
	return nil
}

// reason is what a signal waits for, in the program's words.
type reason string

func (r reason) String() string { return string(r) }
func (r reason) Needs() []int   { return nil }

// NewSignal returns an event that a rank's host program ends with Fire. text says, for a deadlock report, what waits.
func NewSignal(worldHandle int64, text string) (event int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	return register(owned[*torchemu.Event]{torchemu.NewEvent(reason(text)), w}), nil
}

// Fire ends a signal at the host time of a rank.
func Fire(signal int64, rank int) (err error) {
	defer guard(&err)
	e, err := ownedBy[*torchemu.Event](signal, "signal")
	if err != nil {
		return err
	}
	r, err := e.world.Rank(rank)
	if err != nil {
		return err
	}
	e.object.Finish(r.Now())
	return nil
}

// WithTimeout returns an event that ends with what is pending on the waitable, or fails, with a TimeoutError of the
// given text, when the rank's host has waited for so many picoseconds.
func WithTimeout(worldHandle int64, rank int, waitable, ps int64, text string) (event int64, err error) {
	defer guard(&err)
	w, r, err := rankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	e, err := pendingOn(waitable)
	if err != nil {
		return 0, err
	}
	if e == nil {
		e = torchemu.Past(r.Now())
	}
	return register(owned[*torchemu.Event]{limited(w, r, e, sim.Time(ps), text), w}), nil
}

func limited(w *world, r *torchemu.Rank, e *torchemu.Event, d sim.Time, text string) *torchemu.Event {
	if e.Done() {
		return e
	}
	both := torchemu.NewEvent(e.Reason())
	cancel := w.Deadline(r.Now()+d, func(now sim.Time) { both.Fail(raise("TimeoutError", "%s", text), now) })
	e.WhenDone(func() {
		if both.Done() { // too late
			return
		}
		cancel()
		both.Fail(e.Err(), e.At())
	})
	return both
}

// What Settled and Soon answer instead of an event.
const (
	inPlace = 0  // the data of all operations on the storage is in place
	apart   = -1 // that of those on the tensor's elements is, so far as they are in the way
	inVain  = -2 // the computation is to be put off
)

// Settled returns an event that ends as soon as the tensor's elements can be read, in no simulated time, or written: when
// the data of operations on them is in place. It is 0 or -1 when it is. An operation on them that has failed is an error.
func Settled(t int64, writes bool) (event int64, err error) {
	defer guard(&err)
	w, before, answer, err := unsettled(t, writes)
	if err != nil || len(before) == 0 {
		return answer, err
	}
	return register(owned[*torchemu.Event]{w.Settled(before), w}), nil
}

// unsettled returns the operations whose data is to be in place before a tensor is read, or written, and its World; or,
// without any, the answer. An operation that has failed is an error.
func unsettled(t int64, writes bool) (w *world, before []*torchemu.Event, answer int64, err error) {
	o, err := tensorOf(t)
	if err != nil {
		return nil, nil, 0, err
	}
	before = torchemu.PendingOn(o.object.Tensor, tensor.Access(writes))
	if err := torchemu.FirstError(before); err != nil {
		return nil, nil, 0, err
	}
	before = torchemu.Unsettled(before)
	if len(before) == 0 && !torchemu.Whole(torchemu.Users(o.object.Storage())) {
		return o.world, nil, apart, nil
	}
	return o.world, before, inPlace, nil
}

// UnderWay says what is under way on a tensor's storage, whichever its elements are: nothing, 0; operations whose data is
// in place, 1; or others, 2, such as have failed. It is -1 and -2 where that is one operation, which writes all bytes.
func UnderWay(t int64) (state int, err error) {
	defer guard(&err)
	o, err := tensorOf(t)
	if err != nil {
		return 0, err
	}
	storage := o.object.Storage()
	users := torchemu.Users(storage)
	if len(users) == 0 {
		return 0, nil
	}
	state = 2
	if torchemu.Whole(users) {
		state = 1
	}
	if storage.Overwritten() {
		return -state, nil
	}
	return state, nil
}
