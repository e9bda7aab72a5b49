package torchemu_test

import (
	"errors"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

func vector(t *testing.T) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(dtype.F32, 4)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// program adds a device program that takes the given time to the stream.
func program(t *testing.T, w *torchemu.World, s *torchemu.Stream, took sim.Time, err error, uses ...*tensor.Tensor) *torchemu.Event {
	t.Helper()
	var e *torchemu.Event
	e, broken := s.Program(torchemu.Program{
		Name: "p", Uses: uses, Report: func() torchemu.Standing { return torchemu.Standing{On: " waits", Cause: "why"} },
		Start: func(now sim.Time) { w.At(now+took, func(now sim.Time) { e.Fail(err, now) }) },
	})
	if broken != nil {
		t.Fatal(broken)
	}
	return e
}

// Programs take their turns on a stream, and their data is in place when they end; what follows a tensor follows them.
func TestProgramsOnAStream(t *testing.T) {
	w, r := newHandy(t)
	s, x := r.Stream(), vector(t)
	before := launch(t, s, 20*us) // issued at 5 us
	first := program(t, w, s, 3*us, nil, x)
	after := launch(t, s, us)
	other := program(t, w, r.NewStream(), 2*us, nil, x)
	if first.Settled() || !before.Settled() || pending(x) != other {
		t.Error("a program's data is there when it is issued")
	}
	recorded := s.Record()
	if recorded.Settled() {
		t.Error("what is recorded has settled although a program has not")
	}
	if got, want := first.Reason().String(), `kernel "p", which follows a kernel`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	run(w)
	wantEnd(t, "before", before, 25*us)
	wantEnd(t, "first", first, 28*us)
	wantEnd(t, "after", after, 29*us)
	wantEnd(t, "on another stream, with the same tensor", other, 30*us)
	if !recorded.Settled() || first.Reason().String() != `kernel "p", which waits` {
		t.Errorf("settled %v; %q", recorded.Settled(), first.Reason())
	}
}

func TestAProgramThatFails(t *testing.T) {
	w, r := newHandy(t)
	ouch := errors.New("ouch")
	first := program(t, w, r.Stream(), us, ouch, vector(t))
	after := program(t, w, r.Stream(), us, nil)
	run(w)
	if first.Err() != ouch || after.Err() != ouch {
		t.Errorf("%v, and what follows it %v", first.Err(), after.Err())
	}
}

// programs say whether one can go on, and whether it can without anybody else.
type programs struct{ ready, alone bool }

func (p programs) Ready() bool { return p.ready }

func (p programs) GoOn() bool { return p.alone }

// No time passes while a program can go on.
func TestStep(t *testing.T) {
	w, _ := newHandy(t)
	w.At(us, func(sim.Time) {})
	w.Programs = programs{ready: true}
	if ready, stepped := w.Step(); !ready || stepped || w.Engine.Now() != 0 {
		t.Errorf("ready %v, stepped %v at %v", ready, stepped, w.Engine.Now())
	}
	w.Programs = programs{ready: true, alone: true}
	if ready, stepped := w.Step(); ready || !stepped || w.Engine.Now() != 0 {
		t.Errorf("a program that goes on alone: ready %v, stepped %v at %v", ready, stepped, w.Engine.Now())
	}
	w.Programs = programs{}
	for i := range 2 {
		if ready, stepped := w.Step(); ready || stepped != (i == 0) {
			t.Errorf("step %d: ready %v, stepped %v", i, ready, stepped)
		}
	}
}

// A host hears from others when it waits for what hosts bring about, and not for its device or for messages. It hears of
// what hosts know, not of what their devices do.
func TestHears(t *testing.T) {
	w, r := newHandy(t)
	w.KeepOrder()
	other, err := w.Rank(1)
	if err != nil {
		t.Fatal(err)
	}
	did := other.Line().Advance()
	launch(t, other.Stream(), us)
	unheard := other.Stream().Line().Advance()
	knows := func(m order.Moment) bool { return r.Line().Here().Clock().Knows(m) }
	wait := func(e *torchemu.Event, at sim.Time) {
		r.Resumes(r.Parks(e), at)
	}
	wait(launch(t, r.Stream(), us), 10*us)
	wait(r.Stream().Record(), 11*us)
	wait(torchemu.NewEvent(torchemu.Sleep{}), 11*us)
	if knows(did) {
		t.Error("it hears of another host by waiting for its device, or in its sleep")
	}
	wait(torchemu.NewEvent(signal{}), 12*us)
	if !knows(did) || knows(unheard) {
		t.Errorf("it knows of the other host: %v, and of its device: %v; want only the first", knows(did), knows(unheard))
	}
	if own := r.Stream().Line().Advance(); knows(own) {
		t.Error("it knows what its device does without waiting for it")
	}
	mark := launch(t, r.Stream(), us)
	if r.LearnsAll(); !r.Line().Here().Clock().Covers(mark.Known().Clock()) {
		t.Error("it does not know what it has waited for")
	}
}

type signal struct{}

func (signal) String() string { return "a signal" }
func (signal) Needs() []int   { return nil }
