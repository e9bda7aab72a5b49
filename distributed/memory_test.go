package distributed_test

import (
	"errors"
	"runtime"
	"testing"
	"weak"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Each of these follows one that had not ended when it was issued. Who holds the last does not hold the others.
func TestACollectiveLetsGoOfWhatItFollowed(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	letsGo(t, c, func(p *multiprocessing.Process) (*distributed.Work, error) {
		return c.group.AllReduce(me(p), ramp(4, p.ID), tensor.Sum)
	})
}

func TestAMessageLetsGoOfWhatItFollowed(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	x := make([]*tensor.Tensor, c.group.Size())
	for rank := range x {
		x[rank] = ramp(4, rank)
	}
	letsGo(t, c, func(p *multiprocessing.Process) (*distributed.Work, error) {
		if p.ID%2 == 0 {
			return c.group.Send(me(p), p.ID+1, 0, x[p.ID])
		}
		return c.group.Recv(me(p), p.ID-1, 0, x[p.ID])
	})
}

// letsGo issues a hundred operations on each rank, of which one has always not ended.
func letsGo(t *testing.T, c cluster, issue func(p *multiprocessing.Process) (*distributed.Work, error)) {
	t.Helper()
	early := make([]weak.Pointer[torchemu.Event], c.group.Size())
	last := make([]*distributed.Work, c.group.Size())
	err := c.spawn(func(p *multiprocessing.Process) error {
		for i := range 100 {
			w, err := issue(p)
			if err != nil {
				return err
			}
			if i == 50 {
				early[p.ID] = weak.Make(w.Event)
			}
			before := last[p.ID]
			if last[p.ID] = w; before == nil {
				continue
			}
			if err := p.Wait(before.Event); err != nil {
				return err
			}
		}
		w, err := c.group.Barrier(me(p)) // the host forgets what has ended when it issues something
		return errors.Join(p.Wait(last[p.ID].Event), ended(p, w, err))
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	for rank := range early {
		if early[rank].Value() != nil {
			t.Errorf("rank %d: an early one is still there", rank)
		}
	}
	runtime.KeepAlive(last)
	runtime.KeepAlive(c)
}
