package host

import (
	"errors"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
)

// Launches are numbered in order, and those that have ended are forgotten, but for failures.
func TestLaunches(t *testing.T) {
	l, events := &launches{}, []*torchemu.Event{nil}
	for n := int64(1); n <= 6; n++ {
		e := torchemu.NewEvent(Signal{Text: "a test"})
		events = append(events, e)
		if got := l.add(e); got != n {
			t.Fatalf("launch %d has number %d", n, got)
		}
		if n == 3 {
			events[1].Finish(1)
			events[2].Fail(errors.New("broken"), 2)
		}
	}
	if len(l.pending) != 4 {
		t.Errorf("%d launches are kept, want the four that have not ended", len(l.pending))
	}
	events[5].Finish(5)
	for n, want := range map[int64]*torchemu.Event{
		-1: nil, 0: nil, 1: nil, 2: events[2], 3: events[3], 4: events[4], 5: nil, 6: events[6], 7: nil, 1 << 62: nil,
	} {
		if got := l.end(n); got != want {
			t.Errorf("the end of launch %d is %v, want %v", n, got, want)
		}
	}
}
