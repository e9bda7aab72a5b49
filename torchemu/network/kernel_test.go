package network_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// activity is a kernel or a copy of a SIP.
type activity struct {
	at     sim.Time
	sip    int
	kernel network.Kernel
	copies bool // kernel.Bytes between host and device
	way    network.Way
}

// device runs activities beside the messages of a traffic, whose tokens come first.
type device struct {
	*traffic
	top        *topology.Topology
	activities []activity
}

func (d device) Handle(_ sim.Time, i uint64) {
	a := d.activities[i]
	pe, token := d.top.PE(a.sip, 0, 0), uint64(len(d.messages))+i
	if a.copies {
		d.n.Copy(pe, a.way, a.kernel.Bytes, d.traffic, token)
		return
	}
	d.n.Kernel(pe, a.kernel, d.traffic, token)
}

// play runs messages and activities on an idle network and returns when each ended, messages first.
func play(tb testing.TB, top *topology.Topology, messages []message, activities []activity, faults ...fault) []sim.Time {
	tb.Helper()
	e := sim.NewEngine()
	tr := &traffic{n: network.New(e, top), messages: messages, arrived: make([]sim.Time, len(messages)+len(activities))}
	for _, x := range faults {
		e.At(x.at, 0, injector{tr.n, x}, 0)
	}
	for i, m := range messages {
		e.At(m.at, 0, tr, uint64(i))
	}
	for i, a := range activities {
		e.At(a.at, 0, device{tr, top, activities}, uint64(i))
	}
	for e.Step() {
	}
	if tr.calls != len(tr.arrived) {
		tb.Fatalf("%d ends, want %d", tr.calls, len(tr.arrived))
	}
	if s := tr.n.Leftover(); s != "" {
		tb.Errorf("the idle network is not empty: %s", s)
	}
	return tr.arrived
}

// expectAll returns what the reference says of messages and activities.
func expectAll(t *topology.Topology, messages []message, activities []activity, faults ...fault) []sim.Time {
	r := &reference{t: t, waiting: map[topology.DeviceID][]*job{}, using: map[topology.DeviceID]int{}}
	for _, x := range faults {
		r.slows = append(r.slows, x.slow())
	}
	for _, m := range messages {
		r.jobs = append(r.jobs, r.newJob(m))
	}
	flows := make([][]*job, len(activities))
	for i, a := range activities {
		flows[i] = r.flows(a)
		r.jobs = append(r.jobs, flows[i]...)
	}
	r.run()
	var ends []sim.Time
	for _, j := range r.jobs[:len(messages)] {
		ends = append(ends, j.arrived)
	}
	for i, a := range activities {
		end := a.at
		if a.kernel.Unit == network.Idle {
			end += sim.Time(a.kernel.Ops)
		}
		for _, j := range flows[i] {
			end = max(end, j.arrived)
		}
		ends = append(ends, end)
	}
	return ends
}

// flows are the jobs that an activity is made of.
func (r *reference) flows(a activity) []*job {
	if a.copies {
		return []*job{r.copyFlow(a)}
	}
	var jobs []*job
	if a.kernel.Bytes > 0 {
		links := []topology.LinkID{extra(a.sip, allMemories)}
		for cube := range r.t.CubesPerSIP() {
			links = append(links, r.t.Route(r.t.PE(a.sip, cube, 0), r.t.PE(a.sip, cube, 0))...)
		}
		jobs = append(jobs, deviceJob(a.at, 0, links, big.NewRat(a.kernel.Bytes, int64(r.t.CubesPerSIP()))))
	}
	if a.kernel.Unit == network.Idle { // it uses nothing
		return jobs
	}
	unit, perPE := matrixUnits, int64(0)
	switch c := r.t.Compute(); a.kernel.Unit {
	case network.Vector:
		unit, perPE = vectorUnits, c.VectorF32
	case network.MatrixF8:
		perPE = c.MatrixF8
	case network.MatrixF16:
		perPE = c.MatrixF16
	case network.MatrixF32:
		perPE = c.MatrixF32
	}
	alone := big.NewRat(a.kernel.Ops, perPE)
	alone.Mul(alone, big.NewRat(1e12, int64(r.t.CubesPerSIP()*r.t.PEsPerCube())))
	if ps := round(alone); ps > 0 {
		jobs = append(jobs, deviceJob(a.at, 0, []topology.LinkID{extra(a.sip, unit)}, big.NewRat(int64(ps), 1)))
	}
	return jobs
}

func (r *reference) copyFlow(a activity) *job {
	hbm := r.t.Route(r.t.PE(a.sip, 0, 0), r.t.PE(a.sip, 0, 0))
	links := []topology.LinkID{extra(a.sip, hostToDevice), hbm[1]}
	if a.way == network.ToHost {
		links = []topology.LinkID{extra(a.sip, deviceToHost), hbm[0]}
	}
	latency := sim.Time(r.t.HostLink().Latency + r.t.Link(links[1]).Latency)
	return deviceJob(a.at, latency, links, big.NewRat(a.kernel.Bytes, 1))
}

// deviceJob is one flow, of at least one byte or none.
func deviceJob(at, latency sim.Time, links []topology.LinkID, amount *big.Rat) *job {
	return &job{
		message: message{at: at, bytes: int64(amount.Sign())}, next: at, device: true, amount: amount,
		parts: [][]topology.LinkID{links}, latency: []sim.Time{latency},
	}
}

func agreeAll(t *testing.T, about string, top *topology.Topology, messages []message, activities []activity, faults ...fault) {
	t.Helper()
	want := expectAll(top, messages, activities, faults...)
	for i, got := range play(t, top, messages, activities, faults...) {
		if got == want[i] {
			continue
		}
		if i < len(messages) {
			t.Fatalf("%s: message %+v arrived at %d ps, want %d ps", about, messages[i], got, want[i])
		}
		t.Fatalf("%s: %+v ended at %d ps, want %d ps", about, activities[i-len(messages)], got, want[i])
	}
}

// small is a SIP whose memories move 4 bytes a nanosecond, all four together, and whose four PEs make 16,000 f8
// operations a nanosecond with their matrix units, 8,000 of f16, 4,000 of f32, and 2,000 with their vector units.
const small = `
name: small
system: {sips: {count: 2, link: {bandwidth: 1, latency: 0}}}
sip: {cube_mesh: {w: 2, h: 2}, noc: {bandwidth: 100, latency: 0}, io: {bandwidth: 100, latency: 0}}
cube: {hbm: {bandwidth: 1, latency: 0}, pe_layout: {pe_per_corner: 1, corners: [nw]}}
pe:
  matrix: {f8_tflops: 4, f16_tflops: 2, f32_tflops: 1}
  vector: {f32_tflops: 0.5}
  dma: {engines: 4, bandwidth: 100, setup: 0}
host: {link: {bandwidth: 0.5, latency: 7}}
`

// f is a kernel's numbers in units of a nanosecond's work: b of memory traffic alone, o of operations.
func f(b, o int64, u network.Unit) network.Kernel {
	perNanosecond := map[network.Unit]int64{network.Vector: 2000, network.MatrixF8: 16000, network.MatrixF16: 8000, network.MatrixF32: 4000, network.Idle: 1000}
	return network.Kernel{Bytes: 4 * b, Ops: perNanosecond[u] * o, Unit: u}
}

// Kernels and messages of one SIP; when they end, in nanoseconds, computed by hand.
func TestKernels(t *testing.T) {
	const v, m8, m16, m32 = network.Vector, network.MatrixF8, network.MatrixF16, network.MatrixF32
	for _, c := range []struct {
		name     string
		messages []message // from SIP 0 to SIP 1
		kernels  []activity
		want     []sim.Time
	}{
		{"nothing", nil, []activity{{kernel: f(0, 0, v)}}, []sim.Time{0}},
		{"memory bound", nil, []activity{{kernel: f(30, 20, v)}}, []sim.Time{30}},
		{"compute bound", nil, []activity{{kernel: f(30, 40, m16)}}, []sim.Time{40}},
		{"no operations", nil, []activity{{kernel: f(30, 0, m16)}}, []sim.Time{30}},
		{"no bytes", nil, []activity{{kernel: f(0, 40, m8)}}, []sim.Time{40}},
		{"two share the memories", nil, []activity{{kernel: f(30, 0, v)}, {kernel: f(30, 0, v)}}, []sim.Time{60, 60}},
		{"two share a unit, whatever their elements", nil, []activity{{kernel: f(0, 30, m8)}, {kernel: f(0, 30, m32)}}, []sim.Time{60, 60}},
		{"matrix and vector units work side by side", nil, []activity{{kernel: f(0, 30, m16)}, {kernel: f(0, 30, v)}}, []sim.Time{30, 30}},
		{"one computes while another moves", nil, []activity{{kernel: f(30, 1, v)}, {kernel: f(1, 30, v)}}, []sim.Time{31, 31}},
		{"one that idles", nil, []activity{{kernel: f(0, 30, network.Idle)}}, []sim.Time{30}},
		{"who idles takes nothing from others", nil, []activity{{kernel: f(0, 30, network.Idle)}, {kernel: f(30, 30, v)}, {kernel: f(0, 20, network.Idle)}}, []sim.Time{30, 30, 20}},
		{"two SIPs", nil, []activity{{kernel: f(30, 30, v)}, {sip: 1, kernel: f(30, 30, v)}}, []sim.Time{30, 30}},
		{
			// Half the memory of cube 0 each, so half speed for the kernel in all cubes, until the message is out at 40.
			"a message takes from all of a kernel", []message{{bytes: 20}},
			[]activity{{kernel: f(50, 0, v)}}, []sim.Time{40, 70},
		},
		{
			"so does a message that comes in", []message{{bytes: 20}},
			[]activity{{sip: 1, kernel: f(50, 0, v)}}, []sim.Time{40, 70},
		},
		{"computing does not disturb a message", []message{{bytes: 20}}, []activity{{kernel: f(0, 50, v)}}, []sim.Time{20, 50}},
		{
			// 10 bytes over the host's link at half the memory's bandwidth, and 7 ns.
			"a copy", nil, []activity{{copies: true, kernel: network.Kernel{Bytes: 10}}}, []sim.Time{27},
		},
		{
			"copies both ways share nothing but the memory with a kernel", nil,
			[]activity{
				{copies: true, kernel: network.Kernel{Bytes: 10}},
				{copies: true, way: network.ToHost, kernel: network.Kernel{Bytes: 10}},
				{kernel: f(20, 0, v)},
			},
			[]sim.Time{27, 27, 30},
		},
		{"an empty copy", nil, []activity{{copies: true}}, []sim.Time{7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := parse(t, small)
			for i := range c.messages {
				c.messages[i].src, c.messages[i].dst = top.PE(0, 0, 0), top.PE(1, 0, 0)
			}
			for i, got := range play(t, top, c.messages, c.kernels) {
				if got != c.want[i]*ns {
					t.Errorf("number %d ends at %v, want %v", i, got, c.want[i]*ns)
				}
			}
			agreeAll(t, "the reference disagrees", top, c.messages, c.kernels)
		})
	}
}

// Alone a kernel takes the longer of its two times, each rounded by itself, and k equal ones take k times as long.
func TestKernelTime(t *testing.T) {
	top := parse(t, `
name: odd
system: {sips: {count: 1}}
sip: {cube_mesh: {w: 3, h: 1}}
cube: {hbm: {bandwidth: 7.3, latency: 1}, pe_layout: {pe_per_corner: 1, corners: [nw]}}
pe: {matrix: {f8_tflops: 0.007, f16_tflops: 0.0033, f32_tflops: 0.001}, vector: {f32_tflops: 0.0013}}
`)
	rates := []int64{1300e6, 7e9, 3300e6, 1e9}
	rng := rand.New(rand.NewPCG(1, 6))
	for range 300 {
		k := network.Kernel{Bytes: rng.Int64N(1 << rng.IntN(45)), Ops: rng.Int64N(1 << rng.IntN(45)), Unit: network.Unit(rng.IntN(4))}
		memory := round(new(big.Rat).Mul(big.NewRat(k.Bytes, 3*7300), big.NewRat(1e6, 1)))
		unit := round(new(big.Rat).Mul(big.NewRat(k.Ops, 3*rates[k.Unit]), big.NewRat(1e12, 1)))
		if got := network.New(sim.NewEngine(), top).KernelTime(k); got != max(memory, unit) {
			t.Fatalf("KernelTime(%+v) is %d ps, want %d ps", k, got, max(memory, unit))
		}
		count := 1 + rng.IntN(4)
		for _, got := range play(t, top, nil, slices.Repeat([]activity{{kernel: k}}, count)) {
			want := sim.Time(count) * max(memory, unit)
			if off := got - want; off < -sim.Time(count) || off > sim.Time(count) || count == 1 && off != 0 {
				t.Fatalf("%d × %+v end at %d ps, want %d ps", count, k, got, want)
			}
		}
	}
}

func TestRandomKernelsAgreeWithTheReference(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 7))
		top := randomTopology(t, rng)
		messages := randomMessages(top, rng, rng.IntN(20))
		agreeAll(t, fmt.Sprintf("seed %d", seed), top, messages, randomActivities(top, rng, 1+rng.IntN(20)))
	}
}

// randomActivities draws kernels and copies that take about as long as the messages.
func randomActivities(t *topology.Topology, rng *rand.Rand, count int) []activity {
	var list []activity
	at := sim.Time(0)
	c, pes := t.Compute(), int64(t.CubesPerSIP()*t.PEsPerCube())
	rates := []int64{c.VectorF32, c.MatrixF8, c.MatrixF16, c.MatrixF32}
	for len(list) < count {
		at += []sim.Time{0, 0, 1000, sim.Time(rng.Int64N(1000000))}[rng.IntN(4)]
		a := activity{at: at, sip: rng.IntN(t.SIPs()), copies: rng.IntN(4) == 0, way: network.Way(rng.IntN(2))}
		a.kernel.Bytes = []int64{0, 1000, 1000, 4096, rng.Int64N(10000)}[rng.IntN(5)]
		if u := rng.IntN(4); !a.copies {
			a.kernel.Unit = network.Unit(u)
			a.kernel.Ops = []int64{0, 1, rng.Int64N(1000)}[rng.IntN(3)] * pes * rates[u] / 1e9
		}
		list = append(list, a)
	}
	return list
}

func TestMatrixUnit(t *testing.T) {
	for d, want := range map[dtype.DType]network.Unit{
		dtype.F8E4M3: network.MatrixF8, dtype.F8E5M2: network.MatrixF8, dtype.F16: network.MatrixF16,
		dtype.BF16: network.MatrixF16, dtype.F32: network.MatrixF32, dtype.F64: network.Vector, dtype.I32: network.Vector,
	} {
		if got := network.MatrixUnit(d); got != want {
			t.Errorf("%v is multiplied by unit %d, want %d", d, got, want)
		}
	}
}

func TestKernelsAreNotCountedOnLinks(t *testing.T) {
	top := parse(t, small)
	e := sim.NewEngine()
	n := network.New(e, top)
	tr := &traffic{n: n, arrived: make([]sim.Time, 3)}
	n.Kernel(top.PE(0, 0, 0), f(100, 100, network.Vector), tr, 0)
	n.Copy(top.PE(0, 0, 0), network.ToDevice, 11, tr, 1)
	n.Send(n.Path(top.PE(0, 0, 0), top.PE(1, 0, 0)), 5, tr, 2)
	hbm := top.Route(top.PE(0, 0, 0), top.PE(0, 0, 0))
	if read, write := n.LinkBytes(hbm[0]), n.LinkBytes(hbm[1]); read != 5 || write != 11 {
		t.Errorf("%d bytes read and %d written, want 5 and 11", read, write)
	}
}

func TestBadKernels(t *testing.T) {
	top := parse(t, small)
	n := network.New(sim.NewEngine(), top)
	for about, f := range map[string]func(){
		"-1 bytes": func() { n.Kernel(top.PE(0, 0, 0), network.Kernel{Bytes: -1}, nil, 0) },
		"-3 bytes": func() { n.Copy(top.PE(0, 0, 0), network.ToHost, -3, nil, 0) },
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), about) {
					t.Errorf("panic %v, want one about %q", r, about)
				}
			}()
			f()
		}()
	}
}

func TestCheck(t *testing.T) {
	n := network.New(sim.NewEngine(), parse(t, small))
	const day = 24 * 60 * 60 * 1e9 // ns
	for want, got := range map[string]error{
		"<nil>":                     n.Check(f(day, day, network.MatrixF8)),
		"<nil> (nothing)":           n.Check(network.Kernel{}),
		"<nil> (a copy)":            n.CheckCopy(day / 2),
		"-1 bytes and 0 operations": n.Check(network.Kernel{Bytes: -1}),
		"0 bytes and -7 operations": n.Check(network.Kernel{Ops: -7}),
		"345600000000004 bytes and 0 operations takes longer than a day":    n.Check(f(day+1, 0, network.Vector)),
		"0 bytes and 172800000000002000 operations takes longer than a day": n.Check(f(0, day+1, network.Vector)),
		"9223372036854775807 bytes and 9223372036854775807":                 n.Check(network.Kernel{Bytes: 1<<63 - 1, Ops: 1<<63 - 1}),
		"a copy of -1 bytes": n.CheckCopy(-1),
		"a copy of 43200000000001 bytes takes longer than a day": n.CheckCopy(day/2 + 1),
	} {
		if !strings.Contains(fmt.Sprint(got), strings.Split(want, " (")[0]) {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}
