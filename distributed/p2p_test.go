package distributed_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// finish waits for works in turn.
func finish(p *multiprocessing.Process, works ...*distributed.Work) error {
	for _, w := range works {
		if err := p.Wait(w.Event); err != nil {
			return err
		}
	}
	return nil
}

func TestAMessageTakesAlphaPlusBytes(t *testing.T) {
	const n = 1 << 20
	c := newCluster(t, "default", distributed.Options{})
	oneMessage(t, c, n)
	path := c.Network.Path(c.Topology.PE(0, 0, 0), c.Topology.PE(1, 0, 0))
	want := sim.Time(c.Topology.LaunchOverhead()) + c.Network.Uncontended(path, 4*n)
	if c.Engine.Now() != want {
		t.Errorf("it arrived at %v, want %v", c.Engine.Now(), want)
	}
}

func TestAMessageGoesByTheTransport(t *testing.T) {
	const n = 1 << 20
	c := newCluster(t, "h200_8", distributed.Options{})
	oneMessage(t, c, n)
	link := c.Topology.Transport().SIP
	start := c.Topology.LaunchOverhead() + link.Launch + link.P2P.Start + link.P2P.StartSimple
	want := float64(start) + 4*n*1e12/float64(link.Protocols[topology.Simple].Bandwidth)
	if got := float64(c.Engine.Now()); math.Abs(got/want-1) > 1e-4 {
		t.Errorf("it arrived at %v ps, want %v", got, want)
	}
}

// A library launches a group of calls as one kernel. What has no library does not.
func TestABatchIsOneLaunch(t *testing.T) {
	const messages = 6
	for preset, launches := range map[string]int{"h200_8": 1, "sips8": messages} {
		c := newCluster(t, preset, distributed.Options{})
		err := c.spawn(func(p *multiprocessing.Process) error {
			host, err := c.Rank(p.ID)
			if err != nil {
				return err
			}
			begun := host.Now()
			host.BeginBatch()
			var works []*distributed.Work
			for i := range messages / 2 {
				caller := distributed.Caller{Rank: p.ID, Async: true}
				s, err1 := c.group.Send(caller, (p.ID+1)%8, i, ramp(3, i))
				r, err2 := c.group.Recv(caller, (p.ID+7)%8, i, ramp(3, 0))
				if err := errors.Join(err1, err2); err != nil {
					return err
				}
				works = append(works, s, r)
			}
			host.EndBatch()
			if got, want := host.Now()-begun, sim.Time(launches)*sim.Time(c.Topology.LaunchOverhead()); got != want {
				t.Errorf("%s: rank %d spent %v, want %v", preset, p.ID, got, want)
			}
			w, err := c.group.Send(distributed.Caller{Rank: p.ID, Async: true}, p.ID, 9, ramp(3, 0))
			if err != nil {
				return err
			}
			if got, want := host.Now()-begun, sim.Time(launches+1)*sim.Time(c.Topology.LaunchOverhead()); got != want {
				t.Errorf("%s: rank %d spent %v with one more, want %v", preset, p.ID, got, want)
			}
			r, err := c.group.Recv(distributed.Caller{Rank: p.ID, Async: true}, p.ID, 9, ramp(3, 0))
			if err != nil {
				return err
			}
			return finish(p, append(works, w, r)...)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// oneMessage sends n elements from rank 0 to rank 1.
func oneMessage(t *testing.T, c cluster, n int) {
	t.Helper()
	err := c.spawn(func(p *multiprocessing.Process) error {
		switch p.ID {
		case 0:
			w, err := c.group.Send(me(p), 1, 0, ramp(n, 7))
			if err != nil {
				return err
			}
			return finish(p, w)
		case 1:
			x := ramp(n, 0)
			w, err := c.group.Recv(me(p), 0, 0, x)
			if err != nil {
				return err
			}
			return errors.Join(finish(p, w), expect(x, func(i int) int { return 7 + i }))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Messages of one pair and tag keep their order; tags are mailboxes of their own.
func TestTagsAndOrder(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		var works []*distributed.Work
		add := func(w *distributed.Work, err error) error {
			works = append(works, w)
			return err
		}
		if p.ID == 0 {
			for i, tag := range []int{5, 6, 5, 6} {
				if err := add(c.group.Send(distributed.Caller{Rank: p.ID, Async: true}, 1, tag, ramp(1, 10*tag+i))); err != nil {
					return err
				}
			}
			return finish(p, works...)
		}
		got := make([]int, 0, 4)
		for _, tag := range []int{6, 6, 5, 5} {
			x := ramp(1, 0)
			w, err := c.group.Recv(me(p), 0, tag, x)
			if err != nil {
				return err
			}
			if err := finish(p, w); err != nil {
				return err
			}
			got = append(got, int(x.At(0)))
		}
		if want := "[61 63 50 52]"; fmt.Sprint(got) != want {
			return fmt.Errorf("got %v, want %s", got, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAnySource(t *testing.T) {
	for _, k := range []struct {
		choose func(n int) int
		want   string
	}{
		{nil, "[1 2 3]"},
		{func(n int) int { return n - 1 }, "[3 2 1]"},
	} {
		c := newCluster(t, "default", distributed.Options{})
		c.Choose = k.choose
		err := c.spawn(func(p *multiprocessing.Process) error {
			if p.ID > 0 {
				w, err := c.group.Send(me(p), 0, 0, ramp(1, 100*p.ID))
				return errors.Join(err, finish(p, w))
			}
			// The others send first: a barrier would do the same.
			if err := p.Wait(after(c.World, sim.Microsecond)); err != nil {
				return err
			}
			var from []int
			for range 3 {
				x := ramp(1, 0)
				w, err := c.group.Recv(me(p), distributed.AnySource, 0, x)
				if err := errors.Join(err, finish(p, w)); err != nil {
					return err
				}
				from = append(from, w.Source())
				if int(x.At(0)) != 100*w.Source() {
					return fmt.Errorf("rank %d's message holds %v", w.Source(), x.At(0))
				}
			}
			if fmt.Sprint(from) != k.want {
				return fmt.Errorf("received from %v, want %s", from, k.want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A ring exchange: each sends to the right and receives from the left at once; a message to oneself works as well.
func TestExchangeInARing(t *testing.T) {
	for _, shift := range []int{0, 1, 3} {
		c := newCluster(t, "sips8", distributed.Options{})
		err := c.spawn(func(p *multiprocessing.Process) error {
			x := ramp(3, 0)
			caller := distributed.Caller{Rank: p.ID, Async: true}
			s, err := c.group.Send(caller, (p.ID+shift)%8, 0, ramp(3, 10*p.ID))
			if err != nil {
				return err
			}
			left := (p.ID + 8 - shift) % 8
			r, err := c.group.Recv(caller, left, 0, x)
			if err != nil {
				return err
			}
			return errors.Join(finish(p, s, r), expect(x, func(i int) int { return 10*left + i }))
		})
		if err != nil {
			t.Errorf("by %d: %v", shift, err)
		}
	}
}

func TestBothReceiveFirst(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	site := c.Sites.Add("train.py:7 in step")
	err := c.spawn(func(p *multiprocessing.Process) error {
		w, err := c.group.Recv(distributed.Caller{Rank: p.ID, Site: site}, 1-p.ID, 3, ramp(2, 0))
		if err := errors.Join(err, finish(p, w)); err != nil {
			return err
		}
		_, err = c.group.Send(me(p), 1-p.ID, 3, ramp(2, 0))
		return err
	})
	var deadlock *multiprocessing.DeadlockError
	if !errors.As(err, &deadlock) {
		t.Fatal(err)
	}
	want := "deadlock at simulated time 0s: no rank can run and no operation is in progress\n" +
		"  rank 0 waits for recv from rank 1 of 2 float32 elements (tag 3, group world) at train.py:7 in step\n" +
		"  rank 1 waits for recv from rank 0 of 2 float32 elements (tag 3, group world) at train.py:7 in step\n" +
		"likely cause: ranks 0 and 1 wait for each other in a circle: each receives first; " +
		"let one of them send first, or all use batch_isend_irecv"
	if deadlock.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", deadlock, want)
	}
}

func TestMessagesThatDoNotFit(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		if p.ID == 0 {
			w, err := c.group.Send(me(p), 1, 0, ramp(2, 0))
			return errors.Join(err, finish(p, w))
		}
		_, err := c.group.Recv(me(p), 0, 0, ramp(3, 0))
		return err
	})
	var spawn *multiprocessing.SpawnError
	if !errors.As(err, &spawn) || len(spawn.Failures) != 2 {
		t.Fatalf("got %v, want the error on both", err)
	}
	want := "ranks 0 and 1 disagree on the number of elements in a message:\n  rank 0 calls send of 2 float32 elements\n" +
		"  rank 1 calls recv of 3 float32 elements\nThe receiver must have room for just what is sent."
	for _, f := range spawn.Failures {
		if f.Err.Error() != want {
			t.Errorf("rank %d: %v", f.Rank, f.Err)
		}
	}
}

func TestNoSuchPeer(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	for _, peer := range []int{2, -2, 1 << 40} {
		if _, err := c.group.Send(distributed.Caller{}, peer, 0, ramp(1, 0)); err == nil || !strings.Contains(err.Error(), "invalid destination rank") {
			t.Errorf("send to %d: %v", peer, err)
		}
		if _, err := c.group.Recv(distributed.Caller{}, peer, 0, ramp(1, 0)); err == nil || !strings.Contains(err.Error(), "invalid source rank") {
			t.Errorf("recv from %d: %v", peer, err)
		}
	}
	if _, err := c.group.Send(distributed.Caller{}, distributed.AnySource, 0, ramp(1, 0)); err == nil {
		t.Error("a send to any rank")
	}
}

// What is received goes on into a collective that was issued before the message came.
func TestACollectiveOnWhatIsBeingReceived(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(2, 0)
		var first *distributed.Work
		var err error
		if p.ID == 0 {
			first, err = c.group.Recv(me(p), 1, 0, x)
		} else {
			first, err = c.group.Send(me(p), 0, 0, ramp(2, 50))
		}
		if err != nil {
			return err
		}
		sum, err := c.group.AllReduce(me(p), x, 0)
		if err != nil {
			return err
		}
		return errors.Join(finish(p, first, sum), expect(x, func(i int) int { return 50 + 2*i }))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWithdraw(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	gone := errors.New("gone")
	post := func(rank int, message func(distributed.Caller, int, int, *tensor.Tensor) (*distributed.Work, error)) *distributed.Work {
		w, err := message(distributed.Caller{Rank: rank, Async: true}, 1-rank, 0, ramp(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	lost, kept := post(0, c.group.Send), post(0, c.group.Send)
	lost.Withdraw(gone)
	if !errors.Is(lost.Err(), gone) || kept.Done() {
		t.Error("not the message that was withdrawn has ended")
	}
	post(1, c.group.Recv)
	kept.Withdraw(gone) // they have met
	for c.Engine.Step() {
	}
	if !kept.Done() || kept.Err() != nil {
		t.Errorf("a message that was received has ended with %v", kept.Err())
	}
	collective, err := c.group.Barrier(distributed.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	if collective.Withdraw(gone); collective.Done() {
		t.Error("a collective was withdrawn")
	}
}

// Ranks send one part of a tensor and receive into another, whatever they post first; what is passed on comes after
// what it is of.
func TestPartsOfOneTensor(t *testing.T) {
	for _, sendFirst := range []bool{true, false} {
		c := newCluster(t, "sips8", distributed.Options{})
		err := c.spawn(func(p *multiprocessing.Process) error {
			x := ramp(6, 10*p.ID)
			caller := distributed.Caller{Rank: p.ID, Async: true}
			part := func(start int) *tensor.Tensor {
				view, err := x.Narrow(0, start, 2)
				if err != nil {
					panic(err)
				}
				return view
			}
			works := make([]*distributed.Work, 2)
			var errs [3]error
			for i := range works {
				if sendFirst == (i == 0) {
					works[i], errs[i] = c.group.Send(caller, (p.ID+1)%8, 0, part(0))
				} else {
					works[i], errs[i] = c.group.Recv(caller, (p.ID+7)%8, 0, part(4))
				}
			}
			errs[2] = finish(p, works...)
			left := 10 * ((p.ID + 7) % 8)
			return errors.Join(errs[0], errs[1], errs[2], expect(x, func(i int) int {
				if i >= 4 {
					return left + i - 4
				}
				return 10*p.ID + i
			}))
		})
		if err != nil {
			t.Errorf("send first %v: %v", sendFirst, err)
		}
	}
}

// A collective on some rows follows no message into others, which the peer sends when it has the result.
func TestCollectiveBesideAMessage(t *testing.T) {
	c := newCluster(t, "sips8", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(6, 10*p.ID)
		caller := distributed.Caller{Rank: p.ID, Async: true}
		halo, err1 := x.Narrow(0, 0, 2)
		inner, err2 := x.Narrow(0, 2, 4)
		mine, err3 := x.Narrow(0, 2, 2)
		recv, err4 := c.group.Recv(caller, (p.ID+7)%8, 0, halo)
		reduce, err5 := c.group.AllReduce(caller, inner, tensor.Sum)
		if err := errors.Join(err1, err2, err3, err4, err5, finish(p, reduce)); err != nil {
			return err
		}
		send, err := c.group.Send(caller, (p.ID+1)%8, 0, mine)
		if err := errors.Join(err, finish(p, send, recv)); err != nil {
			return err
		}
		return expect(x, func(i int) int { // the sum over the ranks of 10 r + j
			j := i
			if i < 2 {
				j = i + 2
			}
			return 10*28 + 8*j
		})
	})
	if err != nil {
		t.Error(err)
	}
}
