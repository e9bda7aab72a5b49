package pybind

import (
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// DefaultStream returns a rank's default stream.
func DefaultStream(worldHandle int64, rank int) (stream int64, err error) {
	defer host.Guard(&err)
	return host.OwnStream(worldHandle, rank, (*torchemu.Rank).Stream)
}

// HostStream returns the order of operations on the memory of a rank's host, which follow nothing that its device has to do.
func HostStream(worldHandle int64, rank int) (stream int64, err error) {
	defer host.Guard(&err)
	return host.OwnStream(worldHandle, rank, (*torchemu.Rank).HostStream)
}

// NewStream returns another stream on a rank's device.
func NewStream(worldHandle int64, rank int) (stream int64, err error) {
	defer host.Guard(&err)
	return host.OwnStream(worldHandle, rank, (*torchemu.Rank).NewStream)
}

// StreamNumber is a stream's number in its rank, from 0, the default stream.
func StreamNumber(stream int64) (number int, err error) {
	defer host.Guard(&err)
	s, err := host.StreamOf(stream)
	if err != nil {
		return 0, err
	}
	return s.Object.Number, nil
}

// StreamNumbered returns the stream of a rank that has a number; see StreamNumber.
func StreamNumbered(worldHandle int64, rank, number int) (stream int64, err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	s := r.Numbered(number)
	if s == nil {
		return 0, host.Raise("ValueError", "%d is no stream of rank %d", number, rank)
	}
	return host.Own(w, s), nil
}

// StreamWait makes later operations of a stream start after what is pending on a tensor, or after a work or event. One
// that has failed is an error.
func StreamWait(stream, waitable int64) (err error) {
	defer host.Guard(&err)
	s, err := host.StreamOf(stream)
	if err != nil {
		return err
	}
	e, err := host.PendingOn(waitable)
	if err != nil || e == nil {
		return err
	}
	s.Object.Wait(e)
	return e.Err()
}

// StreamRecord returns an event that ends when all operations have ended that are on the stream now.
func StreamRecord(stream int64) (event int64, err error) {
	defer host.Guard(&err)
	s, err := host.StreamOf(stream)
	if err != nil {
		return 0, err
	}
	return host.Own(s.World, s.Object.Record()), nil
}

// StreamSettled is Settled for the data of all that is on a stream now.
func StreamSettled(stream int64) (event int64, err error) {
	defer host.Guard(&err)
	s, err := host.StreamOf(stream)
	if err != nil {
		return 0, err
	}
	e := s.Object.Settled()
	if e == nil {
		return 0, nil
	}
	return host.Own(s.World, e), nil
}

// EventTime is when a work or event ended, in simulated picoseconds.
func EventTime(waitable int64) (ps int64, err error) {
	defer host.Guard(&err)
	e, err := host.PendingOn(waitable)
	if err != nil {
		return 0, err
	}
	if e == nil || !e.Done() {
		return 0, host.Raise("RuntimeError", "the event has not ended: synchronize first")
	}
	return int64(e.At()), nil
}

// Spend lets simulated time pass on a rank's host, in picoseconds.
func Spend(worldHandle int64, rank int, ps int64) (err error) {
	defer host.Guard(&err)
	_, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return err
	}
	if ps < 0 {
		return host.Raise("ValueError", "time cannot pass backwards: %d ps", ps)
	}
	r.Spend(sim.Time(ps))
	return nil
}

// NewSignal returns an event that a rank's host program ends with Fire. text says, for a deadlock report, what waits.
func NewSignal(worldHandle int64, text string) (event int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	return host.Own(w, torchemu.NewEvent(host.Signal{Text: text})), nil
}

// Fire ends a signal at the host time of a rank.
func Fire(signal int64, rank int) (err error) {
	defer host.Guard(&err)
	e, err := host.OwnedBy[*torchemu.Event](signal, "signal")
	if err != nil {
		return err
	}
	r, err := e.World.Rank(rank)
	if err != nil {
		return err
	}
	if line := r.Line(); line != nil {
		e.Object.Knows(line.Here())
	}
	e.Object.Finish(r.Now())
	return nil
}

// WithTimeout returns an event that ends with what is pending on the waitable, or fails, with a TimeoutError of the
// given text, when the rank's host has waited for so many picoseconds.
func WithTimeout(worldHandle int64, rank int, waitable, ps int64, text string) (event int64, err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	e, err := host.PendingOn(waitable)
	if err != nil {
		return 0, err
	}
	if e == nil {
		e = torchemu.Past(r.Now())
	}
	return host.Own(w, host.Limited(w, r, e, sim.Time(ps), text)), nil
}

// Settled returns an event that ends as soon as the tensor's elements can be read, in no simulated time, or written: when
// the data of operations on them is in place. It is 0 or -1 when it is. An operation on them that has failed is an error.
func Settled(t int64, writes bool) (event int64, err error) {
	defer host.Guard(&err)
	w, before, answer, err := host.Unsettled(t, writes)
	if err != nil || len(before) == 0 {
		return answer, err
	}
	return host.Own(w, w.Settled(before)), nil
}

// UnderWay says what is under way on a tensor's storage, whichever its elements are: nothing, 0; operations whose data is
// in place, 1; or others, 2, such as have failed. It is -1 and -2 where that is one operation, which writes all bytes.
func UnderWay(t int64) (state int, err error) {
	defer host.Guard(&err)
	o, err := host.TensorOf(t)
	if err != nil {
		return 0, err
	}
	storage := o.Object.Storage()
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
