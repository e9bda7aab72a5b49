package torchemu_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// What a recording has of kernels and copies must be what their events say.
func TestKernelsAndCopiesAreRecorded(t *testing.T) {
	w, r := newHandy(t)
	launch(t, r.Stream(), 1*us) // before anybody records
	rec := w.Record(trace.Collectives)
	rec.Open(0, r.Now())
	other := r.NewStream()
	ends := []*torchemu.Event{launch(t, r.Stream(), 20*us), launch(t, r.Stream(), 1*us), launch(t, other, 2*us)}
	copied, err := other.Copy(network.ToHost, 1000)
	if err != nil {
		t.Fatal(err)
	}
	ends = append(ends, copied)
	run(w)
	var got []string
	for _, a := range rec.Activities {
		got = append(got, fmt.Sprintf("%s on %s called %v issued %v from %v to %v", a.Name, a.Track.Name, a.Called, a.Issued, a.Start, a.End))
	}
	slices.Sort(got)
	want := []string{
		fmt.Sprintf("a copy to the host on stream 1 called %v issued %v from %v to %v", 20*us, 25*us, 25*us, ends[3].At()),
		fmt.Sprintf("a kernel on stream 0 called %v issued %v from %v to %v", 5*us, 10*us, 10*us, ends[0].At()),
		fmt.Sprintf("a kernel on stream 0 called %v issued %v from %v to %v", 10*us, 15*us, ends[0].At(), ends[1].At()),
		fmt.Sprintf("a kernel on stream 1 called %v issued %v from %v to %v", 15*us, 20*us, 20*us, ends[2].At()),
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestKindsAndCostsAreRecorded(t *testing.T) {
	w, r := newHandy(t)
	rec := w.Record(trace.Collectives)
	rec.Open(0, 0)
	if _, err := r.Stream().Kernel("matmul", network.Kernel{Bytes: 7, Ops: 9, Unit: network.MatrixF16}); err != nil {
		t.Fatal(err)
	}
	for _, way := range []network.Way{network.ToDevice, network.ToHost} {
		if _, err := r.Stream().Copy(way, 11); err != nil {
			t.Fatal(err)
		}
	}
	run(w)
	numbers := map[uint64]bool{}
	var got []string
	for _, a := range rec.Activities {
		numbers[a.Number] = true
		got = append(got, fmt.Sprint(a.Kind, a.Name, a.Bytes, a.Ops, a.Unit))
	}
	want := []string{"0matmul7 9matrix f16", "1a copy to the device11 0vector", "2a copy to the host11 0vector"}
	if !slices.Equal(got, want) || len(numbers) != 3 {
		t.Errorf("got %q with %d numbers, want %q", got, len(numbers), want)
	}
}

func TestWaitsAndAnnotationsOfHostsAreRecorded(t *testing.T) {
	w, r := newHandy(t)
	rec := w.Record(trace.Collectives)
	rec.Open(0, 0)
	e := launch(t, r.Stream(), 20*us)
	wait, ofThread := r.Parks(e), r.Parks(e).Unrecorded()
	run(w)
	r.Resumes(wait, e.At())
	r.Resumes(ofThread, e.At())
	r.Annotate("step", 2*us)
	r.Resumes(r.Parks(e), e.At()) // it has ended: no wait
	want := []trace.Span{
		{Wait: true, Name: "a kernel", Start: 5 * us, End: 25 * us},
		{Name: "step", Start: 2 * us, End: 25 * us},
	}
	if !slices.Equal(rec.Spans, want) {
		t.Errorf("got %+v, want %+v", rec.Spans, want)
	}
}

func TestMemoryIsRecordedWhileThatIsWanted(t *testing.T) {
	w, r := newHandy(t)
	rec := w.Record(trace.Collectives)
	r.UsesMemory(1)
	rec.Open(0, r.Now())
	r.UsesMemory(20)
	r.Spend(3 * us)
	r.UsesMemory(0)
	rec.Close(0, r.Now())
	r.UsesMemory(7)
	if want := []trace.MemoryUse{{Bytes: 20}, {From: 3 * us}}; !slices.Equal(rec.Memory, want) {
		t.Errorf("got %+v, want %+v", rec.Memory, want)
	}
}

type nobody struct{}

func (nobody) Delivered(sim.Time, uint64) {}
func (nobody) Handle(sim.Time, uint64)    {}

// Flows are recorded at their level only, and only while some rank is.
func TestFlowsAreRecorded(t *testing.T) {
	w, _ := newHandy(t)
	low, high := w.Record(trace.Steps), w.Record(trace.Links)
	send := func() {
		a, b := w.Topology.PE(0, 0, 0), w.Topology.PE(1, 0, 0)
		w.Network.Send(w.Network.Path(a, b), 1000, nobody{}, 0)
		w.Network.Reduce(b, 1000, nobody{}, 0)
		run(w)
	}
	send()
	low.Open(0, 0)
	high.Open(0, 0)
	send()
	high.Close(0, w.Engine.Now())
	send()
	high.Open(0, w.Engine.Now())
	w.EndRecording(high)
	send()
	if len(low.Flows)+len(low.Reductions) != 0 || len(high.Flows) != 1 || len(high.Reductions) != 1 {
		t.Fatalf("%d and %d flows, %d reductions", len(low.Flows), len(high.Flows), len(high.Reductions))
	}
	f, s := high.Flows[0], high.Segments[0]
	from, to := w.Topology.Device(s.From).Name(), w.Topology.Device(s.To).Name()
	if f.Bytes != 1000 || f.Engine != 0 || from != "n0.s0.c0.p0" || to != "n0.s1.c0.p0" || len(s.Links) != 5 {
		t.Errorf("%+v from %s to %s over %v", f, from, to, s.Links)
	}
}
