package distributed_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

const patience = 600 * sim.Second

// broken is a cluster of four SIPs in a ring whose group has a timeout, with faults.
func broken(t *testing.T, faults ...torchemu.Fault) cluster {
	t.Helper()
	c := newCluster(t, "default", distributed.Options{Algorithm: "ring"})
	c.limit(t, patience)
	if err := c.Inject(faults...); err != nil {
		t.Fatal(err)
	}
	return c
}

// cable joins two SIPs of the ring.
func cable(t *testing.T, a, b int) torchemu.Cable {
	t.Helper()
	topo := newCluster(t, "default", distributed.Options{}).Topology
	c, err := torchemu.CableBetween(topo, topo.IO(a), topo.IO(b))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// endings runs fn on all ranks and returns how it ended for each: its error and when.
func (c cluster) endings(t *testing.T, fn func(p *multiprocessing.Process) error) []string {
	t.Helper()
	list := make([]string, c.group.Size())
	err := c.spawn(func(p *multiprocessing.Process) error {
		err := fn(p)
		list[p.ID] = fmt.Sprintf("%v at %v", err, p.Now())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func wantEndings(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the ranks ended with\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// ended waits for a work, if there is one.
func ended(p *multiprocessing.Process, w *distributed.Work, err error) error {
	if err != nil {
		return err
	}
	return finish(p, w)
}

// watchdogs is how a message of a watchdog begins.
const watchdogs = "Watchdog caught collective operation timeout: after 600000 ms, as long as its process group allows, " +
	"this had not ended: "

// Survivors learn of a dead rank when the time of their group is over, each all that joined at once.
func TestACollectiveWithoutARankThatWasKilled(t *testing.T) {
	c := broken(t, torchemu.Kill{Rank: 2, At: 3 * sim.Millisecond})
	site := c.Sites.Add("train.py:7 in step")
	got := c.endings(t, func(p *multiprocessing.Process) error {
		if err := p.Wait(after(c.World, 5*sim.Millisecond)); err != nil {
			return err
		}
		w, err := c.group.AllReduce(distributed.Caller{Rank: p.ID, Site: site}, ramp(2, 0), tensor.Sum)
		return ended(p, w, err)
	})
	late := watchdogs + "all_reduce of 2 float32 elements, op sum (collective #0 of group world) at train.py:7 in step: " +
		"rank 2 has not joined it; rank 2 was killed at 3ms at 600.005004s"
	wantEndings(t, got, late, late, "rank 2 was killed at 3ms at 3ms", late)
}

// The spawn fails with the survivors, not with the dead rank.
func TestTheSurvivorsFail(t *testing.T) {
	c := broken(t, torchemu.Kill{Rank: 0, At: 0})
	err := c.spawn(func(p *multiprocessing.Process) error {
		w, err := c.group.Barrier(me(p))
		return ended(p, w, err)
	})
	var spawn *multiprocessing.SpawnError
	if !errors.As(err, &spawn) || len(spawn.Failures) != 3 || spawn.Failures[0].Rank != 1 {
		t.Fatalf("got %v", err)
	}
	for _, f := range spawn.Failures {
		var late *distributed.TimeoutError
		if !errors.As(f.Err, &late) || late.Fault != "rank 0 was killed at 0s" {
			t.Errorf("rank %d: %v", f.Rank, f.Err)
		}
	}
}

// All have joined, and the data is in place; but messages are lost, and nobody gets to see it.
func TestACollectiveOverADroppedLink(t *testing.T) {
	for name, fault := range map[string]torchemu.Fault{
		"the link between SIP 1 and SIP 2 was dropped at 1us": torchemu.DropLink{Cable: cable(t, 1, 2), From: sim.Microsecond},
		"rank 1 was killed at 4.2us":                          torchemu.Kill{Rank: 1, At: 4200 * sim.Nanosecond}, // on its way
	} {
		c := broken(t, fault)
		got := c.endings(t, func(p *multiprocessing.Process) error {
			x, err := tensor.New(dtype.F32, 1<<20)
			if err != nil {
				return err
			}
			w, err := c.group.AllReduce(me(p), x, tensor.Sum)
			return ended(p, w, err)
		})
		late := watchdogs + "all_reduce of 1048576 float32 elements, op sum (collective #0 of group world); " + name + " at 600.000004s"
		if got[1] == "rank 1 was killed at 4.2us at 4.2us" {
			got[1] = late
		}
		wantEndings(t, got, late, late, late, late)
	}
}

// A link that no message of a collective uses may be dropped.
func TestACollectiveBesideADroppedLink(t *testing.T) {
	c := broken(t, torchemu.DropLink{Cable: cable(t, 2, 3)})
	g, err := c.NewGroup(1, "pair", []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	err = c.spawn(func(p *multiprocessing.Process) error {
		if p.ID > 1 {
			return nil
		}
		x := ramp(3, p.ID)
		w, err := g.AllReduce(me(p), x, tensor.Sum)
		return errors.Join(ended(p, w, err), expect(x, func(i int) int { return 2*i + 1 }))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMessagesThatFaultsStop(t *testing.T) {
	c := broken(t, torchemu.Kill{Rank: 3, At: 0}, torchemu.DropLink{Cable: cable(t, 0, 1)})
	got := c.endings(t, func(p *multiprocessing.Process) error {
		var w *distributed.Work
		var err error
		switch p.ID {
		case 0:
			w, err = c.group.Send(me(p), 1, 7, ramp(1, 0)) // over the link
		case 1:
			w, err = c.group.Recv(me(p), 0, 7, ramp(1, 0))
		case 2:
			w, err = c.group.Recv(me(p), distributed.AnySource, 0, ramp(1, 0))
		case 3:
			_, err = c.group.Send(me(p), 2, 0, ramp(1, 0))
			return err
		}
		return ended(p, w, err)
	})
	dropped := " of 1 float32 element (tag 7, group world); the link between SIP 0 and SIP 1 was dropped at 0s at 600.000004s"
	wantEndings(t, got,
		watchdogs+"send to rank 1"+dropped, watchdogs+"recv from rank 0"+dropped,
		watchdogs+"recv from any rank of 1 float32 element (tag 0, group world); rank 3 was killed at 0s at 600.000004s",
		"rank 3 was killed at 0s at 0s")
}

// A rank that waits for one that waits for a dead one waits in vain, too, and is told why.
func TestWaitingForARankThatWaitsInVain(t *testing.T) {
	c := broken(t, torchemu.Kill{Rank: 2, At: 0})
	got := c.endings(t, func(p *multiprocessing.Process) error {
		w, err := c.group.Recv(me(p), (p.ID+1)%4, 0, ramp(1, 0))
		return ended(p, w, err)
	})
	for _, rank := range []int{0, 1, 3} {
		want := fmt.Sprintf("recv from rank %d of 1 float32 element (tag 0, group world); rank 2 was killed at 0s", (rank+1)%4)
		if !strings.Contains(got[rank], want) {
			t.Errorf("rank %d: %s", rank, got[rank])
		}
	}
}

// Who needs a rank that has given up, and ended, gives up in its turn.
func TestWaitingForARankThatGaveUp(t *testing.T) {
	c := broken(t, torchemu.Kill{Rank: 2, At: 0})
	got := c.endings(t, func(p *multiprocessing.Process) error {
		if p.ID == 3 {
			if err := p.Wait(after(c.World, sim.Second)); err != nil {
				return err
			}
		}
		w, err := c.group.Recv(me(p), (p.ID+1)%4, 0, ramp(1, 0))
		return ended(p, w, err)
	})
	want := "recv from rank 0 of 1 float32 element (tag 0, group world); rank 2 was killed at 0s at 601.000004s"
	if !strings.HasSuffix(got[3], want) {
		t.Errorf("rank 3: %s", got[3])
	}
}

func TestSurvivorsGoOnAmongThemselves(t *testing.T) {
	c := broken(t, torchemu.Kill{Rank: 1, At: sim.Millisecond})
	g, err := c.NewGroup(1, "survivors", []int{0, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	err = c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(4, p.ID)
		w, err := c.group.AllReduce(me(p), x, tensor.Sum)
		if err := errors.Join(ended(p, w, err), expect(x, func(i int) int { return 4*i + 6 })); err != nil {
			return err
		}
		if err := p.Wait(after(c.World, 2*sim.Millisecond)); err != nil {
			return err
		}
		w, err = c.group.AllReduce(me(p), ramp(4, 0), tensor.Sum)
		var late *distributed.TimeoutError
		if err := ended(p, w, err); !errors.As(err, &late) {
			return fmt.Errorf("without rank 1: %w", err)
		}
		x = ramp(4, p.ID)
		w, err = g.AllReduce(me(p), x, tensor.Sum)
		return errors.Join(ended(p, w, err), expect(x, func(i int) int { return 3*i + 5 }))
	})
	if err != nil {
		t.Error(err)
	}
}

// What follows a lost collective on the stream fails with it, and its reader is not released before.
func TestAKernelBehindALostCollective(t *testing.T) {
	c := broken(t, torchemu.DropLink{Cable: cable(t, 0, 1)})
	got := c.endings(t, func(p *multiprocessing.Process) error {
		if _, err := c.group.AllReduce(me(p), ramp(4, 0), tensor.Sum); err != nil {
			return err
		}
		y := ramp(4, 0)
		e, err := p.Stream().Kernel("relu", network.Kernel{Bytes: 32}, y)
		if err != nil {
			return err
		}
		return p.Wait(e)
	})
	for rank, text := range got {
		if !strings.HasPrefix(text, watchdogs+"all_reduce") || !strings.HasSuffix(text, "was dropped at 0s at 600.000004s") {
			t.Errorf("rank %d: %s", rank, text)
		}
	}
}

// The watchdog of a dead rank does not speak for the others: they count from when they joined.
func TestADeadRanksWatchdogIsSilent(t *testing.T) {
	c := broken(t, torchemu.Kill{Rank: 0, At: sim.Millisecond})
	got := c.endings(t, func(p *multiprocessing.Process) error {
		if p.ID > 0 {
			if err := p.Wait(after(c.World, sim.Second)); err != nil {
				return err
			}
		}
		w, err := c.group.Barrier(me(p))
		return ended(p, w, err)
	})
	for _, rank := range []int{1, 2, 3} {
		if !strings.HasSuffix(got[rank], "(collective #0 of group world); rank 0 was killed at 1ms at 601.000004s") {
			t.Errorf("rank %d: %s", rank, got[rank])
		}
	}
}

// Without a timeout the end is a deadlock, whose cause is the fault.
func TestFaultsWithoutTimeouts(t *testing.T) {
	c := broken(t, torchemu.Kill{Rank: 2, At: 0})
	c.limit(t, 0)
	err := c.spawn(func(p *multiprocessing.Process) error {
		w, err := c.group.Barrier(me(p))
		return ended(p, w, err)
	})
	var deadlock *multiprocessing.DeadlockError
	if !errors.As(err, &deadlock) || deadlock.Cause() != "rank 2 was killed at 0s" {
		t.Errorf("got %v", err)
	}
}

// A slow link and a slow rank take time, and change nothing else.
func TestSlowFaults(t *testing.T) {
	took := func(faults ...torchemu.Fault) sim.Time {
		c := broken(t, faults...)
		err := c.spawn(func(p *multiprocessing.Process) error {
			x := ramp(1<<12, p.ID)
			w, err := c.group.AllReduce(me(p), x, tensor.Sum)
			return errors.Join(ended(p, w, err), expect(x, func(i int) int { return 4*i + 6 }))
		})
		if err != nil {
			t.Fatal(err)
		}
		return c.Engine.Now()
	}
	healthy := took()
	link, rank := took(torchemu.SlowLink{Cable: cable(t, 3, 0), Factor: 10}), took(torchemu.SlowRank{Rank: 1, Factor: 10})
	if link <= healthy || rank <= healthy || link != took(torchemu.SlowLink{Cable: cable(t, 0, 3), Factor: 10}) {
		t.Errorf("it takes %v, with a slow link %v, with a slow rank %v", healthy, link, rank)
	}
}
