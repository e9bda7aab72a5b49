package distributed_test

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// limit gives every rank of the cluster's group a timeout.
func (c cluster) limit(t *testing.T, d sim.Time) {
	t.Helper()
	for _, r := range c.group.Members {
		if err := c.group.SetTimeout(r, d); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACollectiveThatLastsTooLong(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	c.limit(t, 5*sim.Second)
	site := c.Sites.Add("train.py:7 in step")
	err := c.spawn(func(p *multiprocessing.Process) error {
		if p.ID == 3 {
			if err := p.Wait(after(c.World, 10*sim.Second)); err != nil {
				return err
			}
		}
		w, err := c.group.AllReduce(distributed.Caller{Rank: p.ID, Site: site}, ramp(2, 0), tensor.Sum)
		return errors.Join(err, finish(p, w))
	})
	var spawn *multiprocessing.SpawnError
	if !errors.As(err, &spawn) || len(spawn.Failures) != 3 {
		t.Fatalf("got %v, want three ranks that failed, and one that was unwound", err)
	}
	want := "Watchdog caught collective operation timeout: after 5000 ms, as long as its process group allows, this had not " +
		"ended: all_reduce of 2 float32 elements, op sum (collective #0 of group world) at train.py:7 in step: rank 3 has " +
		"not joined it"
	overhead := sim.Time(c.Topology.LaunchOverhead())
	for _, f := range spawn.Failures {
		var late *distributed.TimeoutError
		if !errors.As(f.Err, &late) || late.Error() != want {
			t.Errorf("rank %d: %v", f.Rank, f.Err)
		}
	}
	if c.Engine.Now() != 5*sim.Second+overhead {
		t.Errorf("it ended at %v", c.Engine.Now())
	}
}

// An operation ends for all that have joined it, and whoever comes later learns it at once; one that has ended stays so.
func TestExpire(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	gone := errors.New("gone")
	join := func(rank int) (*distributed.Work, error) {
		return c.group.AllReduce(distributed.Caller{Rank: rank, Async: true}, ramp(2, 0), tensor.Sum)
	}
	first, _ := join(0)
	second, _ := join(1)
	first.Expire(gone, c.Engine.Now())
	if !errors.Is(first.Err(), gone) || !errors.Is(second.Err(), gone) {
		t.Errorf("it has ended with %v and %v", first.Err(), second.Err())
	}
	if _, err := join(2); !errors.Is(err, gone) {
		t.Errorf("who comes later gets %v", err)
	}
	second.Expire(errors.New("again"), c.Engine.Now())
	if !errors.Is(second.Err(), gone) {
		t.Errorf("it ended twice, with %v", second.Err())
	}
}

// Whoever comes when it is too late learns it at once.
func TestTooLateForACollective(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	c.limit(t, sim.Second)
	err := c.spawn(func(p *multiprocessing.Process) error {
		if p.ID == 1 {
			if err := p.Wait(after(c.World, 10*sim.Second)); err != nil {
				return err
			}
		}
		w, err := c.group.AllReduce(me(p), ramp(2, 0), tensor.Sum)
		if err == nil {
			err = finish(p, w)
		}
		if err == nil || !strings.Contains(err.Error(), "rank 1 has not joined it") {
			t.Errorf("rank %d: %v", p.ID, err)
		}
		return p.Wait(after(c.World, 20*sim.Second))
	})
	if err != nil {
		t.Error(err)
	}
}

// A timeout that was changed holds for what is issued from then on, be it shorter or longer.
func TestTimeoutsThatChange(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	var works []*distributed.Work
	for _, limit := range []sim.Time{30 * sim.Second, 0, sim.Second, 10 * sim.Second} {
		c.limit(t, limit)
		w, err := c.group.Recv(distributed.Caller{Async: true}, 1, 0, ramp(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		works = append(works, w)
	}
	overhead := sim.Time(c.Topology.LaunchOverhead())
	ends := []sim.Time{30*sim.Second + overhead, 0, sim.Second + 3*overhead, 10*sim.Second + 4*overhead}
	for c.Engine.Step() {
	}
	for i, w := range works {
		if w.Done() != (ends[i] != 0) || w.At() != ends[i] {
			t.Errorf("message %d: done %v at %v, want %v", i, w.Done(), w.At(), ends[i])
		}
	}
	if err := c.group.SetTimeout(5, 0); err == nil {
		t.Error("a timeout of a rank that is not in the group")
	}
}

// A message that is too late is gone: the next one does not meet it.
func TestAMessageThatLastsTooLong(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	c.limit(t, sim.Second)
	err := c.spawn(func(p *multiprocessing.Process) error {
		if p.ID == 0 {
			w, err := c.group.Send(me(p), 1, 0, ramp(1, 7))
			if err := errors.Join(err, finish(p, w)); err == nil || !strings.Contains(err.Error(), "send to rank 1") {
				t.Errorf("got %v", err)
			}
			w, err = c.group.Send(me(p), 1, 0, ramp(1, 8))
			return errors.Join(err, finish(p, w))
		}
		x := ramp(1, 0)
		if err := p.Wait(after(c.World, 3*sim.Second/2)); err != nil {
			return err
		}
		w, err := c.group.Recv(me(p), 0, 0, x)
		return errors.Join(err, finish(p, w), expect(x, func(int) int { return 8 }))
	})
	if err != nil {
		t.Error(err)
	}
}

// Nobody waits for the watchdog where nothing can happen any more.
func TestATimeoutIsNoReasonToWaitInADeadlock(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	c.limit(t, sim.Second)
	err := c.spawn(func(p *multiprocessing.Process) error {
		if p.ID == 1 {
			return nil
		}
		w, err := c.group.AllReduce(me(p), ramp(2, 0), tensor.Sum)
		return errors.Join(err, finish(p, w))
	})
	var deadlock *multiprocessing.DeadlockError
	if !errors.As(err, &deadlock) || deadlock.At != 0 {
		t.Errorf("got %v", err)
	}
}

// What ends in time leaves nothing behind.
func TestWatchdogsOfMuchThatEndsInTime(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	c.limit(t, sim.Second)
	const times = 100
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(1, 1)
		for range times {
			w, err := c.group.AllReduce(me(p), x, tensor.Max)
			if err := errors.Join(err, finish(p, w)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Engine.Pending(); n != 2 || !c.Engine.Idle() {
		t.Errorf("%d events are left, want one for each rank", n)
	}
	for c.Engine.Step() {
	}
}

// A timeout beyond the end of all times is none.
func TestATimeoutThatNeverComes(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	c.limit(t, math.MaxInt64-sim.Nanosecond)
	err := c.spawn(func(p *multiprocessing.Process) error {
		w, err := c.group.AllReduce(me(p), ramp(2, p.ID), tensor.Sum)
		return errors.Join(err, finish(p, w))
	})
	if err != nil {
		t.Error(err)
	}
}

// A rank that does something else when an operation of its group has lasted too long is ended there, as by NCCL's watchdog;
// with gloo, which has none, it goes on.
func TestWhoNeverReadsWhatLastsTooLong(t *testing.T) {
	for _, holds := range []bool{false, true} {
		c := newCluster(t, "sips2", distributed.Options{})
		c.limit(t, sim.Second)
		c.group.HoldsHosts = holds
		var ended sim.Time
		err := c.spawn(func(p *multiprocessing.Process) error {
			if p.ID == 1 {
				return p.Wait(after(c.World, 4*sim.Second))
			}
			if _, err := c.group.AllReduce(me(p), ramp(2, 0), tensor.Sum); err != nil {
				return err
			}
			err := p.Wait(after(c.World, 3*sim.Second))
			ended = c.Engine.Now()
			return err
		})
		var late *distributed.TimeoutError
		if errors.As(err, &late) == holds || (late != nil && !late.Aborts) {
			t.Errorf("holds hosts: %v: got %v", holds, err)
		}
		if within := ended < 2*sim.Second; within == holds {
			t.Errorf("holds hosts: %v: ended at %v", holds, ended)
		}
	}
}

func TestNothingHoldsAForgottenGroupUntilItsDeadline(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	const count = 8
	groups, left, collected := make([]*distributed.ProcessGroup, count), [count]int{}, make(chan int, count)
	for i := range groups {
		g, err := c.NewGroup(i+1, "short", []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		cluster{c.World, c.Backend, g}.limit(t, sim.Second)
		runtime.AddCleanup(g, func(i int) { collected <- i }, i)
		groups[i] = g
	}
	err := c.spawn(func(p *multiprocessing.Process) error {
		for i := range groups {
			w, err := groups[i].AllReduce(distributed.Caller{Rank: p.ID}, ramp(2, 0), tensor.Sum)
			if i%2 == 0 { // the others are forgotten with something under way
				err = errors.Join(err, finish(p, w))
			}
			if err != nil {
				return err
			}
			if left[i]++; left[i] == 2 {
				c.Forget(groups[i])
				groups[i] = nil
			}
		}
		if err := p.Wait(after(c.World, sim.Millisecond)); err != nil || p.ID == 0 {
			return err
		}
		for range count - 2 { // the last ones may be known elsewhere
			runtime.GC()
			select {
			case <-collected:
			case <-time.After(10 * time.Second):
				return errors.New("forgotten groups are held")
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
