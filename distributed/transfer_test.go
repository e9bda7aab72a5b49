package distributed_test

import (
	"math"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// An access takes as long as the message that moves its bytes; from several peers at once as long as the slowest of
// them, where they share nothing.
func TestAnAccessTakesAsLongAsItsMessages(t *testing.T) {
	for _, test := range []struct {
		name   string
		access distributed.Transfer
	}{
		{"read", distributed.Transfer{Peers: []int{1}, Bytes: 4096}},
		{"write", distributed.Transfer{Peers: []int{1}, Bytes: 1 << 20, Writes: true}},
		{"nothing of a peer", distributed.Transfer{Peers: []int{1}}},
		{"neighbours", distributed.Transfer{Peers: []int{1, 3}, Bytes: 8}},
		{"nobody", distributed.Transfer{}},
	} {
		c := newCluster(t, "default", distributed.Options{})
		err := c.spawn(func(p *multiprocessing.Process) error {
			if p.ID != 0 {
				return nil
			}
			host, err := c.Rank(0)
			if err != nil {
				return err
			}
			e, err := c.Transfer(distributed.Caller{Stream: host.Stream()}, test.access)
			if err != nil {
				return err
			}
			return p.Wait(e)
		})
		if err != nil {
			t.Fatal(err)
		}
		want := sim.Time(c.Topology.LaunchOverhead())
		slowest := sim.Time(0)
		for _, peer := range test.access.Peers {
			path := c.Network.Path(c.Topology.PE(peer, 0, 0), c.Topology.PE(0, 0, 0))
			slowest = max(slowest, c.Network.Uncontended(path, test.access.Bytes))
		}
		if c.Engine.Now() != want+slowest {
			t.Errorf("%s ended at %v, want %v", test.name, c.Engine.Now(), want+slowest)
		}
	}
}

func TestAccessesOfTooLittleAndTooMuch(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	for _, bytes := range []int64{-1, math.MinInt64, math.MaxInt64} {
		if _, err := c.Transfer(distributed.Caller{}, distributed.Transfer{Peers: []int{1}, Bytes: bytes}); err == nil {
			t.Errorf("an access of %d bytes is no error", bytes)
		}
		if _, err := c.group.EstimateMessage(0, 1, bytes); err == nil {
			t.Errorf("an estimate of a message of %d bytes is no error", bytes)
		}
	}
}

func TestAccessesOfNoSuchRank(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	for _, peer := range []int{-1, 4} {
		_, err := c.Transfer(distributed.Caller{}, distributed.Transfer{Peers: []int{peer}, Bytes: 1})
		if err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("peer %d: %v", peer, err)
		}
	}
}

// A recording has an access as a program of the rank that does it, as long as in the log.
func TestRecordingsHaveAccesses(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	rec := c.record(trace.Collectives)
	err := c.spawn(func(p *multiprocessing.Process) error {
		if p.ID != 1 {
			return nil
		}
		host, err := c.Rank(1)
		if err != nil {
			return err
		}
		e, err := c.Transfer(distributed.Caller{Rank: 1, Stream: host.Stream()}, distributed.Transfer{Peers: []int{0, 2}, Bytes: 512, Writes: true})
		if err != nil {
			return err
		}
		return p.Wait(e)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Activities) != 1 {
		t.Fatalf("%d activities, want 1", len(rec.Activities))
	}
	a, r := rec.Activities[0], c.Log[0]
	if a.Rank != 1 || a.Name != "symm_mem::put" || a.Bytes != 1024 || a.Start != r.Start || a.End != r.End || a.Issued != a.Start {
		t.Errorf("recorded %+v, logged %+v", a, r)
	}
}
