package torchemu_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

const us = sim.Microsecond

// handy is one SIP whose memories move a byte a picosecond, all together, and whose host takes 5 us for a launch.
const handy = `
name: handy
system: {sips: {count: 2}}
sip: {cube_mesh: {w: 2, h: 2}}
cube: {hbm: {bandwidth: 250, latency: 100}}
host: {launch_overhead: 5000, link: {bandwidth: 50, latency: 1000}}
`

func newHandy(t testing.TB) (*torchemu.World, *torchemu.Rank) {
	t.Helper()
	topo, err := topology.Parse("handy.yaml", []byte(handy))
	if err != nil {
		t.Fatal(err)
	}
	w := torchemu.NewWorld(topo)
	r, err := w.Rank(0)
	if err != nil {
		t.Fatal(err)
	}
	return w, r
}

// launch adds a kernel that takes the given time alone.
func launch(t testing.TB, s *torchemu.Stream, took sim.Time, outs ...*tensor.Tensor) *torchemu.Event {
	t.Helper()
	e, err := s.Kernel("a kernel", network.Kernel{Bytes: int64(took)}, outs...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func run(w *torchemu.World) {
	for !w.Engine.Idle() {
		w.Engine.Step()
	}
}

func wantEnd(t *testing.T, what string, e *torchemu.Event, want sim.Time) {
	t.Helper()
	if !e.Done() || e.At() != want {
		t.Errorf("%s: done is %v, at %v, want %v", what, e.Done(), e.At(), want)
	}
}

// A kernel starts when it has been launched and those before it have ended.
func TestKernelsRunOneAfterAnother(t *testing.T) {
	w, r := newHandy(t)
	long, short := launch(t, r.Stream(), 20*us), launch(t, r.Stream(), 1*us)
	if r.Now() != 10*us {
		t.Errorf("the host is at %v after two launches", r.Now())
	}
	if long.Done() || !long.Settled() || !short.Settled() {
		t.Error("data that is in place is not settled, or time has passed")
	}
	run(w)
	wantEnd(t, "the first", long, 25*us)
	wantEnd(t, "the second", short, 26*us)
	idle := launch(t, r.Stream(), 1*us) // the host comes to it at 26 us + 5 us
	run(w)
	wantEnd(t, "on an idle stream", idle, 32*us)
}

func TestKernelsWithoutCostTakeNoTime(t *testing.T) {
	w, r := newHandy(t)
	e, err := r.Stream().Kernel("nothing", network.Kernel{})
	if err != nil || e.Done() {
		t.Fatalf("done is %v, %v", e.Done(), err)
	}
	run(w)
	wantEnd(t, "nothing", e, 5*us)
}

func TestKernelsOfTwoStreamsShareTheDevice(t *testing.T) {
	w, r := newHandy(t)
	a, b := launch(t, r.Stream(), 20*us), launch(t, r.NewStream(), 20*us)
	run(w)
	wantEnd(t, "the first", a, 40*us) // alone from 5 to 10 us, then with the other: 15 us of its work are left
	wantEnd(t, "the second", b, 45*us)
}

// A host that reads a tensor waits for the kernel that wrote it.
func TestKernelsArePendingOnTheirOutputs(t *testing.T) {
	w, r := newHandy(t)
	x, y := filled(t, 1), filled(t, 2)
	e := launch(t, r.Stream(), 20*us, x)
	if pending(x) != e || pending(y) != nil || r.Outstanding() != e {
		t.Error("the kernel is pending on other tensors than its output, or not outstanding")
	}
	run(w)
	if pending(x) != nil || r.Outstanding() != nil {
		t.Error("a kernel that has ended is pending")
	}
}

// What a stream waits for comes before its later kernels, be it of another stream or a collective.
func TestAStreamWaitsForAnother(t *testing.T) {
	w, r := newHandy(t)
	first, second := r.Stream(), r.NewStream()
	a := launch(t, first, 20*us)
	second.Wait(first.Record())
	b := launch(t, second, 1*us)
	collective := torchemu.NewEvent(reason("a collective"))
	first.Wait(collective)
	c := launch(t, first, 1*us)
	if got := c.Reason().String(); got != "a kernel, which follows a collective" && got != "a kernel, which follows a kernel" {
		t.Errorf("waits for %q", got)
	}
	w.At(60*us, func(now sim.Time) { collective.Finish(now) })
	run(w)
	wantEnd(t, "the first", a, 25*us)
	wantEnd(t, "of the other stream", b, 26*us)
	wantEnd(t, "behind a collective", c, 61*us)
}

func TestCopiesTakeTheHostsLink(t *testing.T) {
	w, r := newHandy(t)
	in, err := r.Stream().Copy(network.ToDevice, 1000)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Stream().Copy(network.ToHost, 500)
	if err != nil {
		t.Fatal(err)
	}
	run(w)
	const latency = us + 100*sim.Nanosecond // of the host's link and of the memory
	wantEnd(t, "to the device", in, 5*us+20*sim.Nanosecond+latency)
	wantEnd(t, "to the host", out, 10*us+10*sim.Nanosecond+latency)
	if in.Reason().String() != "a copy to the device" || out.Reason().String() != "a copy to the host" {
		t.Errorf("they are %s and %s", in.Reason(), out.Reason())
	}
}

// An event is recorded when the work before it has ended, but not before the host says so: the time between two events
// around one kernel is the kernel's, exactly.
func TestRecord(t *testing.T) {
	w, r := newHandy(t)
	s := r.Stream()
	idle := s.Record()
	launch(t, s, 3*us)
	start := s.Record() // the kernel before ends at 8 us
	launch(t, s, 7*us)  // from 10 us to 17 us
	end := s.Record()
	r.Spend(100 * us)
	late := s.Record() // the host is at 110 us
	for _, e := range []*torchemu.Event{start, end, late} {
		if e.Done() || !e.Settled() {
			t.Error("a record is done before its time, or its data is not settled")
		}
	}
	run(w)
	wantEnd(t, "on an idle stream", idle, 0)
	wantEnd(t, "before the kernel", start, 8*us)
	wantEnd(t, "after it", end, 17*us)
	wantEnd(t, "when the host has slept", late, 110*us)
}

// An event settles with all that is before it, and fails as the last of it does.
func TestRecordSettlesWithTheWork(t *testing.T) {
	w, r := newHandy(t)
	s := r.Stream()
	collective := torchemu.NewEvent(reason("a collective"))
	s.Wait(collective)
	launch(t, s, us)
	e := s.Record()
	if e.Settled() || e.Reason().String() != "a kernel, which follows a collective" {
		t.Errorf("it is settled, or waits for %q", e.Reason())
	}
	collective.Settle()
	if !e.Settled() || e.Done() {
		t.Error("it has not settled with the collective, or is done")
	}
	collective.Finish(9 * us)
	run(w)
	wantEnd(t, "it", e, 10*us)

	boom := errors.New("boom")
	failing := torchemu.NewEvent(reason("a collective"))
	s.Wait(failing)
	e = s.Record()
	failing.Fail(boom, 20*us)
	if !errors.Is(e.Err(), boom) {
		t.Errorf("it failed with %v", e.Err())
	}
}

// What is queued behind something that fails does not happen; what comes later does.
func TestKernelsBehindAFailure(t *testing.T) {
	w, r := newHandy(t)
	boom := errors.New("boom")
	collective := torchemu.NewEvent(reason("a collective"))
	r.Stream().Wait(collective)
	first, second := launch(t, r.Stream(), us), launch(t, r.Stream(), us)
	collective.Fail(boom, 20*us)
	later := launch(t, r.Stream(), us)
	run(w)
	wantEnd(t, "later", later, 16*us)
	if !errors.Is(first.Err(), boom) || !errors.Is(second.Err(), boom) || later.Err() != nil {
		t.Errorf("they end with %v, %v and %v", first.Err(), second.Err(), later.Err())
	}
}

const many = 100_000

// A hundred thousand kernels ahead of the device need neither deep recursion nor much memory, and leave nothing.
func TestManyKernels(t *testing.T) {
	w, r := newHandy(t)
	x := filled(t, 1)
	gate := torchemu.NewEvent(reason("a gate"))
	r.Stream().Wait(gate)
	var before, ahead runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var last *torchemu.Event
	for range many {
		last = launch(t, r.Stream(), us, x)
	}
	runtime.GC()
	runtime.ReadMemStats(&ahead)
	if each := (ahead.HeapAlloc - before.HeapAlloc) / many; each > 300 {
		t.Errorf("a kernel takes %d bytes", each)
	}
	gate.Finish(many * 5 * us)
	run(w)
	wantEnd(t, "the last", last, many*6*us)
	runtime.GC()
	runtime.ReadMemStats(&ahead)
	if left := int64(ahead.HeapAlloc - before.HeapAlloc); left > 1<<20 {
		t.Errorf("%d bytes are left", left)
	}
	if ahead.StackInuse > before.StackInuse+1<<20 {
		t.Errorf("the stack grew by %d bytes", ahead.StackInuse-before.StackInuse)
	}
	runtime.KeepAlive(w)
}

// Waits that keep a stream busy for ever keep nothing that is over.
func TestABusyStreamForgetsWhatIsOver(t *testing.T) {
	w, r := newHandy(t)
	s := r.Stream()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	previous := torchemu.NewEvent(reason("x"))
	s.Wait(previous)
	for range many {
		e := torchemu.NewEvent(reason("x"))
		s.Wait(e)
		previous.Finish(0)
		previous = e
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if left := int64(after.HeapAlloc - before.HeapAlloc); left > 1<<20 {
		t.Errorf("%d bytes are left", left)
	}
	runtime.KeepAlive(w)
}

func BenchmarkKernel(b *testing.B) {
	w, r := newHandy(b)
	x, err := tensor.New(dtype.F32, 3)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := range b.N {
		launch(b, r.Stream(), us, x)
		if i%1000 == 999 {
			run(w)
		}
	}
}

// TestTheVectorUnitsHaveALaunchOfTheirOwn compares kernels that go through as much memory, alone and as KernelTime has them.
func TestTheVectorUnitsHaveALaunchOfTheirOwn(t *testing.T) {
	const text = "system: {sips: {count: 1}}\nkernels: {launch: 2000%s}\n"
	for _, c := range []struct {
		more string
		want sim.Time // that products take more
	}{
		{"", 0},
		{", vector_launch: 1300", 700 * sim.Nanosecond},
	} {
		topo, err := topology.Parse("launch.yaml", fmt.Appendf(nil, text, c.more))
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []network.Kernel{{Bytes: 1 << 20}, {Ops: 1 << 20}, {Bytes: 1 << 20, Ops: 1}, {}} {
			took := map[network.Unit]sim.Time{}
			for _, unit := range []network.Unit{network.Vector, network.MatrixF32} {
				k.Unit = unit
				w := torchemu.NewWorld(topo)
				r, err := w.Rank(0)
				if err != nil {
					t.Fatal(err)
				}
				end, err := r.Stream().Kernel("k", k)
				if err != nil {
					t.Fatal(err)
				}
				began := r.Now()
				for w.Engine.Run(1<<20) > 0 {
				}
				took[unit] = end.At() - began
				if alone := w.Network.KernelTime(k); took[unit] != alone {
					t.Errorf("%v, %q: takes %v, alone %v", k, c.more, took[unit], alone)
				}
			}
			if k.Ops <= 1 && took[network.MatrixF32]-took[network.Vector] != c.want {
				t.Errorf("%v, %q: a product takes %v, and not %v more than %v", k, c.more, took[network.MatrixF32], c.want, took[network.Vector])
			}
		}
	}
}
