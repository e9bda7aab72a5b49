package distributed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// report is the text of the deadlock in which a program ends.
func report(t *testing.T, err error) string {
	t.Helper()
	var deadlock *multiprocessing.DeadlockError
	if !errors.As(err, &deadlock) {
		t.Fatalf("got %v, want a deadlock", err)
	}
	return deadlock.Error()
}

// Both ranks issue an operation to each of two groups, in different orders: all have joined both, and each device waits
// for the other's.
func TestDevicesThatWaitForEachOther(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	second, err := c.NewGroup(1, "second", []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	err = c.spawn(func(p *multiprocessing.Process) error {
		groups := []*distributed.ProcessGroup{c.group, second}
		var works []*distributed.Work
		for i := range groups {
			w, err := groups[(i+p.ID)%2].AllReduce(me(p), ramp(2, 0), tensor.Sum)
			if err != nil {
				return err
			}
			works = append(works, w)
		}
		return finish(p, works[1])
	})
	_, got, _ := strings.Cut(report(t, err), "\n")
	want := "  rank 0 waits for all_reduce of 2 float32 elements, op sum (collective #0 of group world): " +
		"rank 1 is still in all_reduce #0 of group second\n" +
		"  rank 1 waits for all_reduce of 2 float32 elements, op sum (collective #0 of group second): " +
		"rank 0 is still in all_reduce #0 of group world\n" +
		"likely cause: ranks 0 and 1 wait for each other in a circle: rank 0 in all_reduce #0 of group world, " +
		"rank 1 in all_reduce #0 of group second"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A message has met its other side, whose device waits for something that nobody does.
func TestAMessageWhoseOtherSideIsHeldUp(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(2, 0)
		switch p.ID {
		case 0:
			w, err := c.group.Send(me(p), 1, 0, x)
			return errors.Join(err, finish(p, w))
		case 1:
			if _, err := c.group.Recv(me(p), 2, 0, x); err != nil { // nobody sends that
				return err
			}
			w, err := c.group.Recv(me(p), distributed.AnySource, 0, x)
			return errors.Join(err, finish(p, w))
		}
		return nil
	})
	text := report(t, err)
	for _, part := range []string{
		"rank 0 waits for send to rank 1 of 2 float32 elements (tag 0, group world): rank 1 is still in recv from rank 2",
		"recv from any rank of 2 float32 elements (tag 0, group world), which follows recv from rank 2",
		"likely cause: rank 2 ended without sending to rank 1 (tag 0, group world)",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// Both send and return: nobody is going to receive, so that it is no circle that another order would break.
func TestProgramsThatReturnReceiveNothing(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		_, err := c.group.Send(me(p), 1-p.ID, 0, ramp(2, 0))
		return err
	})
	_, cause, _ := strings.Cut(report(t, err), "likely cause: ")
	if want := "rank 1 ended without receiving from rank 0 (tag 0, group world)"; cause != want {
		t.Errorf("the cause is %q, want %q", cause, want)
	}
}

// Tens of thousands of messages into one tensor, each behind the one before, are a report at once: the row is gone along
// once, not from each of them again.
func TestAReportOfManyMessagesInARow(t *testing.T) {
	const n = 50_000
	c := newCluster(t, "sips2", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(2, 0)
		var last *distributed.Work
		for range n {
			w, err := c.group.Recv(distributed.Caller{Rank: p.ID, Async: true}, 1-p.ID, 0, x)
			if err != nil {
				return err
			}
			last = w
		}
		return finish(p, last)
	})
	text := report(t, err)
	for _, part := range []string{
		fmt.Sprintf("… and %d more …, which follow recv from rank 1", n-3),
		"likely cause: ranks 0 and 1 wait for each other in a circle: each receives first",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}
