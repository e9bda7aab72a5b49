package torchemu_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// halves are parts of a tensor that have nothing in common, and are all of it together.
func halves(t *testing.T) (x, left, right *tensor.Tensor) {
	t.Helper()
	x = filled(t, 0)
	left, err1 := x.Narrow(0, 0, 2)
	right, err2 := x.Narrow(0, 2, 1)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return x, left, right
}

func TestUsesOfParts(t *testing.T) {
	x, left, right := halves(t)
	first, second := torchemu.NewEvent(reason("first")), torchemu.NewEvent(reason("second"))
	torchemu.Uses{Reads: []*tensor.Tensor{left}, Writes: []*tensor.Tensor{left}}.Pend(first)
	torchemu.Uses{Reads: []*tensor.Tensor{right}}.Pend(second)
	for what, c := range map[string]struct {
		uses torchemu.Uses
		want []*torchemu.Event
	}{
		"a reader of all":             {torchemu.Uses{Reads: []*tensor.Tensor{x}}, []*torchemu.Event{first}},
		"a writer of all":             {writing(x), []*torchemu.Event{first, second}},
		"a writer of all, twice":      {writing(x, x), []*torchemu.Event{first, second}},
		"a reader of what is read":    {torchemu.Uses{Reads: []*tensor.Tensor{right}}, nil},
		"a writer of what is written": {writing(left), []*torchemu.Event{first}},
	} {
		if got := c.uses.Before(); !slices.Equal(got, c.want) {
			t.Errorf("%s follows %d operations, want %d", what, len(got), len(c.want))
		}
	}
	second.Finish(1)
	if got := torchemu.Users(x.Storage()); !slices.Equal(got, []*torchemu.Event{first}) {
		t.Errorf("%d operations use the storage, want 1", len(got))
	}
}

// Who waits for all of a tensor waits for the operations on its parts, for their data and for their ends.
func TestTheEndOfSeveral(t *testing.T) {
	x, left, right := halves(t)
	early, late := torchemu.NewEvent(reason("early")), torchemu.NewEvent(reason("late"))
	late.Pend(left, tensor.Write)
	early.Pend(right, tensor.Write)
	all := pending(x)
	early.Finish(3)
	if all.Settled() || all.Reason().String() != "late" {
		t.Errorf("settled: %v, waits for %v", all.Settled(), all.Reason())
	}
	late.Settle()
	if !all.Settled() || all.Done() {
		t.Errorf("with all data in place: settled %v, done %v", all.Settled(), all.Done())
	}
	boom := errors.New("boom")
	late.Fail(boom, 7)
	if !all.Done() || all.At() != 7 || !errors.Is(all.Err(), boom) {
		t.Errorf("done %v at %v with %v", all.Done(), all.At(), all.Err())
	}
}
