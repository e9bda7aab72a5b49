package torchemu_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// behindACollective puts n kernels on a stream behind a collective that nobody joins.
func behindACollective(t *testing.T, n int) (last *torchemu.Event) {
	t.Helper()
	_, r := newHandy(t)
	s := r.Stream()
	last = torchemu.NewEvent(reason("a collective that rank 7 has not joined"))
	s.Wait(last)
	for i := range n {
		e, err := s.Kernel(fmt.Sprintf("kernel %d", i), network.Kernel{Bytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	return last
}

func TestAChainIsCutInTheMiddle(t *testing.T) {
	const end = "a collective that rank 7 has not joined"
	for n, want := range map[int]string{
		0:    end,
		1:    "kernel 0, which follows " + end,
		2:    "kernel 1, which follows kernel 0, which follows " + end,
		3:    "kernel 2, which follows kernel 1, … and 1 more …, which follows " + end,
		16:   "kernel 15, which follows kernel 14, … and 14 more …, which follow " + end,
		1000: "kernel 999, which follows kernel 998, … and 998 more …, which follow " + end,
	} {
		if got := behindACollective(t, n).Reason().String(); got != want {
			t.Errorf("%d kernels:\n got %s\nwant %s", n, got, want)
		}
	}
}

// Events that only end with others are no links, and a Program that has started says itself what it waits for.
func TestAChainOfAllKinds(t *testing.T) {
	w, r := newHandy(t)
	first, second := r.Stream(), r.NewStream()
	_, err := first.Program(torchemu.Program{
		Name:   "waiting",
		Start:  func(sim.Time) {},
		Report: func() torchemu.Standing { return torchemu.Standing{On: " waits for a signal"} },
	})
	if err != nil {
		t.Fatal(err)
	}
	run(w)
	second.Wait(first.Record())
	x := vector(t)
	e := launch(t, second, us)
	e.Pend(x, tensor.Write)
	r.Defer("mul", writing(x))
	want := `mul, which follows a kernel, which follows kernel "waiting", which waits for a signal`
	got := pending(x).Reason().String()
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if origin := torchemu.Origin(e.Reason()); !strings.HasPrefix(origin.String(), `kernel "waiting"`) {
		t.Errorf("all wait for %v", origin)
	}
}
