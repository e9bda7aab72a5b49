package torchemu_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

func newRank(t *testing.T) *torchemu.Rank {
	t.Helper()
	topo, err := topology.Load("sips2")
	if err != nil {
		t.Fatal(err)
	}
	r, err := torchemu.NewWorld(topo).Rank(1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func filled(t *testing.T, v float64) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(dtype.F32, 3)
	if err != nil {
		t.Fatal(err)
	}
	x.Fill(v)
	return x
}

func values(x *tensor.Tensor) []float64 {
	list := make([]float64, x.Numel())
	for i := range list {
		list[i] = x.At(i)
	}
	return list
}

func TestAnEventsTwoMoments(t *testing.T) {
	e := torchemu.NewEvent(nil)
	var log []string
	e.WhenSettled(func() { log = append(log, "settled") })
	e.WhenDone(func() { log = append(log, "done") })
	e.Settle()
	e.Settle()
	if e.Done() || !e.Settled() {
		t.Error("settling ended the event")
	}
	e.Finish(7)
	e.Finish(9)
	e.WhenSettled(func() { log = append(log, "late settled") })
	e.WhenDone(func() { log = append(log, "late done") })
	want := []string{"settled", "done", "late settled", "late done"}
	if !reflect.DeepEqual(log, want) || e.At() != 7 || e.Err() != nil {
		t.Errorf("got %v at %v", log, e.At())
	}
}

func TestFinishSettlesFirst(t *testing.T) {
	e := torchemu.NewEvent(nil)
	var log []string
	e.WhenDone(func() { log = append(log, "done") })
	e.WhenSettled(func() { log = append(log, "settled") })
	e.Finish(0)
	if !reflect.DeepEqual(log, []string{"settled", "done"}) {
		t.Errorf("got %v", log)
	}
}

func TestAFailedOperationStaysOnItsTensor(t *testing.T) {
	x := filled(t, 1)
	boom := errors.New("boom")
	e := torchemu.NewEvent(nil)
	e.Pend(x, tensor.Write)
	if pending(x) != e {
		t.Error("a pending operation is not found")
	}
	e.Fail(boom, 3)
	if p := pending(x); p == nil || !errors.Is(p.Err(), boom) {
		t.Error("a reader does not learn of the failure")
	}
	ok := torchemu.NewEvent(nil)
	ok.Pend(x, tensor.Write)
	ok.Finish(4)
	if pending(x) != nil {
		t.Error("a finished operation is still pending")
	}
}

func TestTheHostRunsAheadAndCatchesUp(t *testing.T) {
	topo, err := topology.Load("sips2")
	if err != nil {
		t.Fatal(err)
	}
	w := torchemu.NewWorld(topo)
	r, err := w.Rank(0)
	if err != nil {
		t.Fatal(err)
	}
	overhead := sim.Time(topo.LaunchOverhead())
	if r.Launch(); r.Launch() != 2*overhead || r.Now() != 2*overhead {
		t.Errorf("two launches end at %v, want %v", r.Now(), 2*overhead)
	}
	e := torchemu.NewEvent(nil)
	w.Engine.At(sim.Millisecond, 0, finisher{e}, 0)
	for w.Engine.Step() {
	}
	if r.Now() != sim.Millisecond || r.Launch() != sim.Millisecond+overhead {
		t.Errorf("after a wait the host is at %v", r.Now())
	}
}

func TestAGraphIsOneLaunch(t *testing.T) {
	r := newRank(t)
	overhead := sim.Time(r.World().Topology.LaunchOverhead())
	r.BeginGraph()
	if r.Launch(); r.Launch() != overhead || r.Now() != overhead {
		t.Errorf("a graph of two takes the host %v, want %v", r.Now(), overhead)
	}
	r.EndGraph()
	if r.Launch() != 2*overhead {
		t.Errorf("the launch after it ends at %v, want %v", r.Now(), 2*overhead)
	}
}

type finisher struct{ *torchemu.Event }

func (f finisher) Handle(now sim.Time, _ uint64) { f.Finish(now) }

func TestCopyAtOnceWhenNothingIsPending(t *testing.T) {
	r := newRank(t)
	dst, src := filled(t, 0), filled(t, 5)
	if err := r.Copy(dst, src); err != nil {
		t.Fatal(err)
	}
	if got := values(dst); !reflect.DeepEqual(got, []float64{5, 5, 5}) || pending(dst) != nil {
		t.Errorf("got %v", got)
	}
}

// A copy to a tensor that an operation is still to change takes its turn, with the source as it was.
func TestCopyBehindAPendingOperation(t *testing.T) {
	r := newRank(t)
	dst, src := filled(t, 0), filled(t, 5)
	before := torchemu.NewEvent(reason("before"))
	before.Pend(dst, tensor.Write)
	before.WhenSettled(func() { dst.Fill(9) })
	if err := r.Copy(dst, src); err != nil {
		t.Fatal(err)
	}
	src.Fill(6)
	if got := values(dst); !reflect.DeepEqual(got, []float64{0, 0, 0}) {
		t.Errorf("the copy did not wait: %v", got)
	}
	if e := pending(dst); e == nil || e.Reason().String() != "a copy_, which follows before" || r.Outstanding() != e {
		t.Errorf("pending is %v", e)
	}
	before.Finish(sim.Second)
	if got := values(dst); !reflect.DeepEqual(got, []float64{5, 5, 5}) {
		t.Errorf("got %v", got)
	}
	if pending(dst) != nil || r.Outstanding() != nil {
		t.Error("the copy has not ended")
	}
}

func TestCopyOfTheWrongShape(t *testing.T) {
	r := newRank(t)
	src, err := tensor.New(dtype.F32, 2)
	if err != nil {
		t.Fatal(err)
	}
	dst := filled(t, 0)
	if err := r.Copy(dst, src); err == nil {
		t.Error("no error at once")
	}
	torchemu.NewEvent(reason("x")).Pend(dst, tensor.Write)
	if err := r.Copy(dst, src); err == nil {
		t.Error("no error when queued")
	}
}

func TestAbandonEndsEverything(t *testing.T) {
	r := newRank(t)
	gone := errors.New("gone")
	first, second := torchemu.NewEvent(nil), torchemu.NewEvent(nil)
	r.Issued(first)
	r.Issued(second)
	r.Abandon(gone)
	if r.Outstanding() != nil || !errors.Is(first.Err(), gone) || !errors.Is(second.Err(), gone) {
		t.Error("something is left")
	}
}

// issued lets a rank issue operations of these names.
func issued(r *torchemu.Rank, names ...string) []*torchemu.Event {
	list := make([]*torchemu.Event, len(names))
	for i, name := range names {
		list[i] = torchemu.NewEvent(reason(name))
		r.Issued(list[i])
	}
	return list
}

func TestTheRestOfWhatARankHasIssuedEndsWithTheLast(t *testing.T) {
	r := newRank(t)
	if r.Rest() != nil {
		t.Error("a rank that has issued nothing waits")
	}
	e := issued(r, "first", "second", "third", "fourth")
	e[1].Fail(errors.New("known before"), 5)
	rest := r.Rest()
	for i, step := range []struct {
		end  int
		at   sim.Time
		next string
	}{{2, 7, "first"}, {0, 8, "fourth"}} {
		e[step.end].Finish(step.at)
		if rest.Done() || rest.Reason().String() != step.next {
			t.Fatalf("after step %d: done %t, waits for %v instead of %s", i, rest.Done(), rest.Reason(), step.next)
		}
	}
	e[3].Finish(9)
	if !rest.Done() || rest.Err() != nil || rest.At() != 9 || r.Rest() != nil {
		t.Errorf("done %t at %v with error %v; rest now %v", rest.Done(), rest.At(), rest.Err(), r.Rest())
	}
}

func TestTheRestFailsWithTheFirstThatDoes(t *testing.T) {
	r := newRank(t)
	wrong := errors.New("wrong")
	e := issued(r, "first", "second", "third")
	rest := r.Rest()
	e[2].Fail(wrong, 3)
	if !rest.Done() || !errors.Is(rest.Err(), wrong) || rest.At() != 3 {
		t.Errorf("done %t at %v with error %v", rest.Done(), rest.At(), rest.Err())
	}
	e[0].Finish(4)
	e[1].Fail(errors.New("another"), 5)
	if !errors.Is(rest.Err(), wrong) || rest.At() != 3 {
		t.Errorf("it has ended anew at %v with error %v", rest.At(), rest.Err())
	}
}

func TestNoSuchRank(t *testing.T) {
	topo, err := topology.Load("sips2")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{-1, 2, 1 << 40} {
		if _, err := torchemu.NewWorld(topo).Rank(i); err == nil {
			t.Errorf("rank %d exists", i)
		}
	}
}

type reason string

func (r reason) String() string { return string(r) }
func (r reason) Needs() []int   { return nil }

func TestAStreamRunsInOrder(t *testing.T) {
	r := newRank(t)
	s := r.Stream()
	if s.Tail() != nil || s.Record().At() != r.Now() {
		t.Error("a new stream is not idle")
	}
	a, b := torchemu.NewEvent(reason("a")), torchemu.NewEvent(reason("b"))
	s.Wait(a)
	s.Wait(b)
	mark := s.Record()
	b.Finish(30)
	if mark.Done() || mark.Reason().String() != "a" {
		t.Errorf("the mark is done before a, or lacks %v", mark.Reason())
	}
	a.Finish(20)
	if !mark.Done() || mark.At() != 30 || s.Tail() != nil {
		t.Errorf("the mark is at %v", mark.At())
	}
}

// A long chain of waits unwinds without trouble.
func TestManyWaitsOnOneStream(t *testing.T) {
	r := newRank(t)
	events := make([]*torchemu.Event, 100_000)
	for i := range events {
		events[i] = torchemu.NewEvent(reason("x"))
		r.Stream().Wait(events[i])
	}
	mark := r.Stream().Record()
	for i, e := range events {
		e.Finish(sim.Time(i))
	}
	if !mark.Done() || mark.At() != 99_999 {
		t.Errorf("the mark is at %v", mark.At())
	}
}
