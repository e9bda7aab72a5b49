package distributed_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// record begins a recording of all ranks.
func (c cluster) record(l trace.Level) *trace.Recording {
	rec := c.World.Record(l)
	for rank := range c.group.Size() {
		rec.Open(rank, 0)
	}
	return rec
}

// mixed runs two collectives and a message, with hosts that come late by what they are.
func mixed(c cluster, p *multiprocessing.Process) error {
	p.Spend(sim.Time(p.ID) * sim.Microsecond)
	x := ramp(1<<12, 0)
	if _, err := c.group.AllReduce(me(p), x, tensor.Sum); err != nil {
		return err
	}
	if _, err := c.group.Broadcast(me(p), x, 2); err != nil {
		return err
	}
	var w *distributed.Work
	var err error
	switch p.ID {
	case 0:
		w, err = c.group.Send(me(p), 3, 5, x)
	case 3:
		w, err = c.group.Recv(me(p), 0, 5, x)
	}
	if err != nil || w == nil {
		return err
	}
	return finish(p, w)
}

// The times of a recording are those of the log and of the works.
func TestRecordingsAgreeWithTheLog(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	rec := c.record(trace.Steps)
	if err := c.spawn(func(p *multiprocessing.Process) error { return mixed(c, p) }); err != nil {
		t.Fatal(err)
	}
	if len(c.Log) != 3 || len(rec.Activities) != 10 {
		t.Fatalf("%d operations in the log, %d activities; want 3, and 10 (4 + 4 + 2)", len(c.Log), len(rec.Activities))
	}
	for i, name := range []string{"all_reduce", "broadcast"} {
		checkCollective(t, c, rec, c.Log[i], name, uint64(i))
	}
	for _, a := range rec.Activities[8:] {
		want := trace.Activity{Kind: trace.Send, Name: "send to 3", Rank: 0, Peer: 3, In: []int{1 << 12}}
		if a.Rank == 3 {
			want = trace.Activity{Kind: trace.Receive, Name: "recv from 0", Rank: 3, Peer: 0, Out: []int{1 << 12}}
		}
		got := trace.Activity{Kind: a.Kind, Name: a.Name, Rank: a.Rank, Peer: a.Peer, In: a.In, Out: a.Out}
		if fmt.Sprint(got) != fmt.Sprint(want) || a.Start != c.Log[2].Start || a.End != c.Log[2].End || a.Tag != 5 || a.Bytes != 4<<12 {
			t.Errorf("got %+v, want %+v from %v to %v", a, want, c.Log[2].Start, c.Log[2].End)
		}
	}
}

func checkCollective(t *testing.T, c cluster, rec *trace.Recording, log *distributed.Record, name string, seq uint64) {
	t.Helper()
	var start, end sim.Time
	ranks := map[int]bool{}
	for _, a := range rec.Activities {
		if a.Name != name {
			continue
		}
		ranks[a.Rank] = true
		start, end = max(start, a.Start), max(end, a.End)
		if a.Called+sim.Time(c.Topology.LaunchOverhead()) != a.Issued || a.Start < a.Issued || a.Call.Seq != seq {
			t.Errorf("%s of rank %d: called %v, issued %v, started %v, number %d", name, a.Rank, a.Called, a.Issued, a.Start, a.Call.Seq)
		}
		if call := a.Call; call.Algorithm != log.Algorithm || call.Bytes != log.Bytes || a.Bytes != log.Bytes || a.DType != "f32" {
			t.Errorf("%s of rank %d is %+v, %+v; want %+v", name, a.Rank, a, call, log)
		}
	}
	if len(ranks) != 4 || start != log.Start || end != log.End {
		t.Errorf("%s of %d ranks from %v to %v, want 4 from %v to %v", name, len(ranks), start, end, log.Start, log.End)
	}
}

// Steps lie within their collective, end when it ends, and move what the schedule says.
func TestStepsAreRecorded(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{Algorithm: "ring"})
	rec := c.record(trace.Steps)
	err := c.spawn(func(p *multiprocessing.Process) error {
		_, err := c.group.AllReduce(me(p), ramp(1<<12, 0), tensor.Sum)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	log := c.Log[0]
	if len(rec.Steps) != 2*3*4 {
		t.Fatalf("%d steps, want %d: as many as a ring of 4 has", len(rec.Steps), 2*3*4)
	}
	reductions := 0
	for _, s := range rec.Steps {
		if s.Reduce {
			reductions++
		}
		if s.Dst != (s.Src+1)%4 || s.Bytes != 1<<12 || s.Rank != s.Src || s.From != c.Topology.PE(s.Src, 0, 0) {
			t.Errorf("%+v is no step of a ring of 4", s)
		}
		if s.Start < log.Start || s.Start > s.Arrived || s.Arrived > s.Combine || s.Combine > s.End || s.End > log.End {
			t.Errorf("%+v is not within %v to %v", s, log.Start, log.End)
		}
	}
	last := slices.MaxFunc(rec.Steps, func(a, b trace.Step) int { return cmp.Compare(a.End, b.End) })
	if reductions != 3*4 || last.End != log.End {
		t.Errorf("%d reductions, the last step ends at %v; want 12 and %v", reductions, last.End, log.End)
	}
}

// The shards of a single worker are of its rank, on a track for each PE.
func TestShardsAreRecordedOfTheirWorker(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	rec := c.record(trace.Steps)
	g, err := c.NewShardGroup(0, 3)
	if err != nil {
		t.Fatal(err)
	}
	x := ramp(6, 0)
	at := tensor.Placement{PE: tensor.ColumnWise, NumCubes: 1, NumPEs: 3}
	w, err := g.AllReduce(distributed.Caller{Rank: 0}, x, at, tensor.Sum)
	if err != nil {
		t.Fatal(err)
	}
	c.await(t, x)
	names := map[string]bool{}
	for _, a := range rec.Activities {
		names[a.Track.Name] = true
		if a.Rank != 0 || a.Track.Kind != trace.ShardTrack || a.End > w.At() {
			t.Errorf("%+v", a)
		}
	}
	for _, s := range rec.Steps {
		if s.Rank != 0 {
			t.Errorf("a step of rank %d", s.Rank)
		}
	}
	if len(rec.Activities) != 3 || !names["n0.s0.c0.p0"] || !names["n0.s0.c0.p1"] || !names["n0.s0.c0.p2"] {
		t.Errorf("activities on %v", names)
	}
}

// A recording is of what ranks call for while it is open: of one rank, or of a part of the program.
func TestRecordingOfAPart(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	rec := c.World.Record(trace.Collectives)
	err := c.spawn(func(p *multiprocessing.Process) error {
		for i := range 3 {
			if p.ID == 2 && i == 1 {
				rec.Open(2, p.Now())
			}
			w, err := c.group.AllReduce(me(p), ramp(8, 0), tensor.Sum)
			if err != nil {
				return err
			}
			if p.ID == 2 {
				rec.Close(2, p.Now())
			}
			if err := finish(p, w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rec.Activities); n != 1 {
		t.Fatalf("%d activities, want the second call of rank 2", n)
	}
	if a := rec.Activities[0]; a.Rank != 2 || a.Call.Seq != 1 || a.End < c.Log[1].Start || a.End > c.Log[1].End {
		t.Errorf("got %+v", a)
	}
	if rec.Spans != nil || collective.AllReduce != rec.Activities[0].Call.Collective {
		t.Errorf("spans %v of collective %s", rec.Spans, rec.Activities[0].Call.Collective)
	}
}
