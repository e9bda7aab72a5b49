package distributed_test

import (
	"errors"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// A rank that has gone on from a collective that fails learns of it where it waits: for the next one.
func TestACollectiveBehindOneThatFails(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		if _, err := c.group.AllReduce(me(p), ramp(2+p.ID, 0), tensor.Sum); err != nil {
			return err
		}
		w, err := c.group.Barrier(me(p))
		return errors.Join(err, finish(p, w))
	})
	var spawn *multiprocessing.SpawnError
	if !errors.As(err, &spawn) || len(spawn.Failures) != 2 {
		t.Fatalf("got %v, want the error on both", err)
	}
	var first, second *distributed.MismatchError
	if !errors.As(spawn.Failures[0].Err, &first) || !errors.As(spawn.Failures[1].Err, &second) || first != second {
		t.Errorf("got %v", err)
	}
}

// What follows a failed operation on its stream, in its group or on its tensor fails too, and moves no data.
func TestWhatFollowsAFailure(t *testing.T) {
	boom := errors.New("boom")
	for name, issue := range map[string]func(c cluster, caller distributed.Caller, x *tensor.Tensor) (*distributed.Work, error){
		"a collective": func(c cluster, caller distributed.Caller, x *tensor.Tensor) (*distributed.Work, error) {
			return c.group.AllReduce(caller, x, tensor.Sum)
		},
		"a send": func(c cluster, caller distributed.Caller, x *tensor.Tensor) (*distributed.Work, error) {
			return c.group.Send(caller, 1, 0, x)
		},
		"a receive": func(c cluster, caller distributed.Caller, x *tensor.Tensor) (*distributed.Work, error) {
			return c.group.Recv(caller, 1, 0, x)
		},
	} {
		for _, met := range []bool{false, true} {
			c := newCluster(t, "sips2", distributed.Options{})
			before := torchemu.NewEvent(nil)
			mine, theirs := ramp(2, 1), ramp(2, 10)
			before.Pend(mine, tensor.Write)
			works := []*distributed.Work{must(issue(c, distributed.Caller{Rank: 0, Async: true}, mine))(t)}
			if met {
				works = append(works, must(otherSide(name)(c, distributed.Caller{Rank: 1, Async: true}, theirs))(t))
			}
			before.Fail(boom, 5)
			for c.Engine.Step() {
			}
			for i, w := range works {
				if !errors.Is(w.Err(), boom) || w.At() != 0 {
					t.Errorf("%s, met %v: side %d has ended with %v at %v", name, met, i, w.Err(), w.At())
				}
			}
			err := errors.Join(
				expect(mine, func(i int) int { return 1 + i }), expect(theirs, func(i int) int { return 10 + i }))
			if err != nil {
				t.Errorf("%s, met %v: %v", name, met, err)
			}
		}
	}
}

// otherSide is what rank 1 does so that rank 0's operation can run.
func otherSide(name string) func(c cluster, caller distributed.Caller, x *tensor.Tensor) (*distributed.Work, error) {
	return func(c cluster, caller distributed.Caller, x *tensor.Tensor) (*distributed.Work, error) {
		switch name {
		case "a send":
			return c.group.Recv(caller, 0, 0, x)
		case "a receive":
			return c.group.Send(caller, 0, 0, x)
		}
		return c.group.AllReduce(caller, x, tensor.Sum)
	}
}

func must(w *distributed.Work, err error) func(t *testing.T) *distributed.Work {
	return func(t *testing.T) *distributed.Work {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
}

// A message that has failed meets nobody any more.
func TestAfterAMessageThatFails(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	before, x := torchemu.NewEvent(nil), ramp(1, 1)
	before.Pend(x, tensor.Write)
	must(c.group.Send(distributed.Caller{Rank: 0, Async: true}, 1, 0, x))(t)
	before.Fail(errors.New("boom"), 0)
	must(c.group.Send(distributed.Caller{Rank: 0, Async: true}, 1, 0, ramp(1, 7)))(t)
	y := ramp(1, 0)
	w := must(c.group.Recv(distributed.Caller{Rank: 1, Async: true}, 0, 0, y))(t)
	for c.Engine.Step() {
	}
	if w.Err() != nil || y.At(0) != 7 {
		t.Errorf("received %v, %v", y.At(0), w.Err())
	}
}
