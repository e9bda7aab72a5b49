package torchemu_test

import (
	"errors"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

func pendingTensor(t *testing.T) (*tensor.Tensor, *torchemu.Event) {
	t.Helper()
	x := vector(t)
	e := torchemu.NewEvent(nil)
	e.Pend(x, tensor.Write)
	return x, e
}

func writing(tensors ...*tensor.Tensor) torchemu.Uses { return torchemu.Uses{Writes: tensors} }

// pending is the end of what a host waits for that reads a tensor.
func pending(x *tensor.Tensor) *torchemu.Event {
	return torchemu.All(torchemu.PendingOn(x, tensor.Read))
}

// TestSoon: a host waits for data as long as no time passes, and not again for what it has given up.
func TestSoon(t *testing.T) {
	w, _ := newHandy(t)
	_, settles := pendingTensor(t)
	_, lasts := pendingTensor(t)
	w.At(0, func(sim.Time) { settles.Settle() })
	w.At(1, func(sim.Time) { lasts.Settle() })
	first, second := w.Soon([]*torchemu.Event{settles}), w.Soon([]*torchemu.Event{lasts})
	step := func() {
		t.Helper()
		if ready, stepped := w.Step(); ready || !stepped {
			t.Fatalf("Step() = %v, %v", ready, stepped)
		}
	}
	step()
	if !first.Done() || second.Done() {
		t.Errorf("after what happens at once the waits have ended: %v, %v; want true, false", first.Done(), second.Done())
	}
	step()
	if !second.Done() || lasts.Settled() || w.Engine.Now() != 0 {
		t.Errorf("before time passes the wait has ended: %v, with data %v, at %v", second.Done(), lasts.Settled(), w.Engine.Now())
	}
	if w.Soon([]*torchemu.Event{lasts}) != nil {
		t.Error("a host waits again for what it has given up")
	}
	step()
	if !lasts.Settled() {
		t.Error("the data is not in place when its time has come")
	}
}

// TestDefer: computations are due when all that they need is in place, one after another where they share a tensor; and
// what fails, fails them.
func TestDefer(t *testing.T) {
	w, r := newHandy(t)
	x, ofX := pendingTensor(t)
	y, ofY := pendingTensor(t)
	both := r.Defer("both", writing(x, y))
	later := r.Defer("later", writing(y))
	z, ofZ := pendingTensor(t)
	lost := r.Defer("lost", writing(z))
	if n, _ := w.Due(); n != 0 {
		t.Fatalf("computation %d is due before its data", n)
	}
	ofX.Settle()
	if n, _ := w.Due(); n != 0 {
		t.Fatalf("computation %d is due with half of its data", n)
	}
	ofY.Settle()
	if ready, _ := w.Step(); !ready {
		t.Error("time may pass while a computation is due")
	}
	if n, gone := w.Due(); n != both || gone {
		t.Fatalf("Due() = %d, %v; want %d", n, gone, both)
	}
	if e := pending(x); e == nil || e.Settled() {
		t.Error("what a computation is to write is in place before it is done")
	}
	w.Computed(both, nil)
	if n, _ := w.Due(); n != later {
		t.Errorf("computation %d is due after the one before; want %d", n, later)
	}
	w.Computed(later, errors.New("no"))
	if e := pending(y); e == nil || e.Err() == nil {
		t.Error("nobody learns of a computation that failed")
	}
	ofX.Finish(3 * us)
	if e := pending(x); e == nil || !e.Settled() {
		t.Error("a computation ends before all that it follows, or its data is not in place")
	}
	ofY.Finish(7 * us)
	ofZ.Fail(errors.New("no"), 0)
	if n, gone := w.Due(); n != lost || !gone {
		t.Errorf("Due() = %d, %v; want %d, which is lost", n, gone, lost)
	}
	if e := pending(x); e != nil {
		t.Errorf("something is pending on x: %v", e.Reason())
	}
	w.Computed(both, nil) // nothing happens
}

// TestComputedTooEarly: who says that a computation is done before it is due is not asked for it again.
func TestComputedTooEarly(t *testing.T) {
	w, r := newHandy(t)
	x, ofX := pendingTensor(t)
	early, due := r.Defer("early", writing(x)), r.Defer("due", torchemu.Uses{})
	w.Computed(early, nil)
	ofX.Settle()
	if n, lost := w.Due(); n != due || lost {
		t.Errorf("computation %d is due, lost %v; want %d", n, lost, due)
	}
	if n, _ := w.Due(); n != 0 {
		t.Errorf("computation %d is due, which was said to be done", n)
	}
}
