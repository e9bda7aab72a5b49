package network_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// ns is for literals.
const ns = sim.Nanosecond

// scenario is messages between the SIPs of the star, from PE to PE of their only cubes, and when the last byte of
// each leaves, computed by hand: 100 ps a byte on a link of one's own.
type scenario struct {
	name     string
	messages []hop
	leaves   []sim.Time
}

// hop is a message from PE pe of one SIP to the same PE of another.
type hop struct {
	at         sim.Time
	src, dst   int
	pe         int
	kilobytes  int64 // 1000 bytes, 100 ns on a link of one's own
	extraBytes int64
}

func TestSharing(t *testing.T) {
	for _, s := range []scenario{
		{"one", []hop{{0, 0, 1, 0, 1, 0}}, []sim.Time{100 * ns}},
		{"one byte", []hop{{0, 0, 1, 0, 0, 1}}, []sim.Time{100}},
		{"two directions", []hop{{0, 0, 1, 0, 1, 0}, {0, 1, 0, 0, 1, 0}}, []sim.Time{100 * ns, 100 * ns}},
		{"two apart", []hop{{0, 0, 1, 0, 1, 0}, {0, 2, 3, 0, 1, 0}}, []sim.Time{100 * ns, 100 * ns}},
		{"one source", []hop{{0, 0, 1, 0, 1, 0}, {0, 0, 2, 0, 1, 0}}, []sim.Time{200 * ns, 200 * ns}},
		{"one target", []hop{{0, 0, 1, 0, 1, 0}, {0, 2, 1, 0, 1, 0}}, []sim.Time{200 * ns, 200 * ns}},
		{
			"three of one byte, where a third of 10 GB/s is no whole number",
			[]hop{{0, 0, 1, 0, 0, 1}, {0, 0, 1, 1, 0, 1}, {0, 0, 1, 2, 0, 1}},
			[]sim.Time{300, 300, 300},
		},
		{
			// Both go at half speed from 50 on; the first has 500 bytes left then, and the second 500 at 150.
			"the second starts half way through the first",
			[]hop{{0, 0, 1, 0, 1, 0}, {50 * ns, 0, 1, 1, 1, 0}},
			[]sim.Time{150 * ns, 200 * ns},
		},
		{
			"the second starts when the first has left",
			[]hop{{0, 0, 1, 0, 1, 0}, {100 * ns, 0, 1, 1, 1, 0}},
			[]sim.Time{100 * ns, 200 * ns},
		},
		{
			// Thirds until the 1 kB is out at 300, then halves until the 2 kB is out 200 later, then 1 kB alone.
			"sizes 1, 2 and 3",
			[]hop{{0, 0, 1, 0, 1, 0}, {0, 0, 1, 1, 2, 0}, {0, 0, 1, 2, 3, 0}},
			[]sim.Time{300 * ns, 500 * ns, 600 * ns},
		},
		{
			// SIP 0 sends three messages, a third each; the one that also goes to SIP 1 leaves two thirds there.
			"max-min: what one cannot use another may",
			[]hop{{0, 0, 1, 0, 1, 0}, {0, 0, 2, 1, 1, 0}, {0, 0, 3, 2, 1, 0}, {0, 2, 1, 3, 2, 0}},
			[]sim.Time{300 * ns, 300 * ns, 300 * ns, 300 * ns},
		},
		{
			// The second halves the first; when the third halves the second from another side at 100, the first
			// has 500 bytes left and gets no more than its half until the second is through.
			"chain",
			[]hop{{0, 0, 1, 0, 1, 0}, {0, 2, 1, 1, 1, 0}, {100 * ns, 2, 3, 2, 1, 0}},
			[]sim.Time{200 * ns, 200 * ns, 250 * ns},
		},
		{"none", []hop{{0, 0, 1, 0, 0, 0}}, []sim.Time{0}},
		{"none needs no link", []hop{{0, 0, 1, 0, 1, 0}, {0, 0, 1, 1, 0, 0}}, []sim.Time{100 * ns, 0}},
	} {
		t.Run(s.name, func(t *testing.T) {
			top := star(t, "cut_through", 4)
			e := sim.NewEngine()
			got := send(t, e, network.New(e, top), hops(top, s.messages))
			for i := range got {
				got[i] -= starAlpha
			}
			if !slices.Equal(got, s.leaves) {
				t.Errorf("last bytes leave at %v, want %v", got, s.leaves)
			}
		})
	}
}

// hops are the messages of a scenario.
func hops(top *topology.Topology, list []hop) []message {
	var messages []message
	for _, h := range list {
		messages = append(messages,
			message{h.at, top.PE(h.src, 0, h.pe), top.PE(h.dst, 0, h.pe), 1000*h.kilobytes + h.extraBytes})
	}
	return messages
}

// k equal messages over one link take k times as long as one.
func TestEqualFlowsOnOneLink(t *testing.T) {
	top := star(t, "cut_through", 64)
	for _, bytes := range []int64{1, 999, 1 << 20, 1 << 40, 1 << 50} {
		for _, k := range []int{1, 2, 3, 7, 8, 64, 100} {
			if bytes > 1<<40 && k > 64 {
				continue // more time than there is
			}
			var messages []message
			for i := range k {
				messages = append(messages, message{0, top.PE(0, 0, i%8), top.PE(1, 0, 7-i%8), bytes})
			}
			want := starAlpha + sim.Time(k)*sim.Time(bytes)*100
			e := sim.NewEngine()
			for i, got := range send(t, e, network.New(e, top), messages) {
				if got != want {
					t.Fatalf("%d × %d bytes: message %d arrives at %d ps, want %d ps", k, bytes, i, got, want)
				}
			}
		}
	}
}

// A PE with two engines sends two messages at a time, in order.
func TestMessagesWaitForDMAEngines(t *testing.T) {
	top := star(t, "cut_through", 2)
	src := top.PE(0, 0, 0)
	to := func(sip int, bytes int64) message { return message{0, src, top.PE(sip, 0, 0), bytes} }
	e := sim.NewEngine()
	got := send(t, e, network.New(e, top), []message{
		// Two share the uplink until the shorter is out at 200 ns; then the third comes in. The longer one is out
		// at 600 ns: 2000 bytes of it were left. The third has 1000 bytes left then, which takes until 700 ns if it
		// is alone; but the fourth has come in.
		to(1, 3000), to(2, 1000), to(3, 3000), to(1, 500),
	})
	want := []sim.Time{600 * ns, 200 * ns, 0, 0}
	want[3] = 700 * ns // 500 bytes at half speed
	want[2] = 750 * ns // 500 bytes of its last 1000 by then, the others alone
	for i := range got {
		if got[i]-starAlpha != want[i] {
			t.Errorf("the last byte of message %d leaves at %v, want %v", i, got[i]-starAlpha, want[i])
		}
	}
}

// A single engine sends one message after another, each as if alone.
func TestOneDMAEngine(t *testing.T) {
	top := star(t, "cut_through", 1)
	src := top.PE(2, 0, 3)
	e := sim.NewEngine()
	messages := []message{
		{0, src, top.PE(0, 0, 0), 700},
		{0, src, top.PE(0, 0, 0), 0},
		{0, src, top.PE(1, 0, 0), 1},
		{10 * ns, src, top.PE(0, 0, 0), 299},
		{500 * ns, src, top.PE(0, 0, 0), 1000},
		{550 * ns, src, top.PE(0, 0, 0), 1000},
		{600 * ns, src, top.PE(0, 0, 0), 1000}, // comes when the engine is free, but not to be had
	}
	want := []sim.Time{70 * ns, 0, 70*ns + 100, 100 * ns, 600 * ns, 700 * ns, 800 * ns}
	for i, got := range send(t, e, network.New(e, top), messages) {
		if got-starAlpha != want[i] {
			t.Errorf("the last byte of message %d leaves at %v, want %v", i, got-starAlpha, want[i])
		}
	}
}

// Over h links: cut-through takes sum(latency) + S/B, store-and-forward a S/B more for each such device.
func TestForwarding(t *testing.T) {
	const bytes = 12345
	slow, fast := sim.Time(bytes*100), sim.Time(bytes*2) // 10 GB/s and, for the DMA engine, 500 GB/s
	for _, c := range []struct {
		nic, net string
		want     sim.Time
	}{
		{"cut_through", "cut_through", slow},
		{"cut_through", "store_and_forward", slow + slow},
		{"store_and_forward", "cut_through", fast + slow + bytes},
		{"store_and_forward", "store_and_forward", fast + slow + slow + bytes},
	} {
		top := parse(t, fmt.Sprintf(`
name: forwarding
system:
  nodes: {count: 2}
  sips: {count: 2}
  network: {nic: {bandwidth: 10, latency: 1000}, forwarding: %s, latency: 300}
sip: {cube_mesh: {w: 1, h: 1}, io: {bandwidth: 1000, latency: 1, forwarding: %s}}
cube: {hbm: {bandwidth: 1000, latency: 2}}
pe: {dma: {engines: 1, bandwidth: 500, setup: 5}}
`, c.net, c.nic))
		src, dst := top.PE(0, 0, 0), top.PE(1, 0, 0)
		alpha := (5 + 2 + 1 + 1 + 1000 + 1300 + 1 + 1 + 2) * ns
		e := sim.NewEngine()
		n := network.New(e, top)
		p := n.Path(src, dst)
		got := send(t, e, n, []message{{0, src, dst, bytes}})[0]
		if got != alpha+c.want || n.Uncontended(p, bytes) != got || n.Alpha(p) != alpha {
			t.Errorf("IO %s, network %s: takes %v, foretold %v, alpha %v; want %v with alpha %v",
				c.nic, c.net, got, n.Uncontended(p, bytes), n.Alpha(p), alpha+c.want, alpha)
		}
	}
}

// Alone, a message takes exactly what Uncontended says, also over links in whose rates no byte takes a whole number
// of picoseconds.
func TestAlone(t *testing.T) {
	top := parse(t, "{name: odd, system: {sips: {count: 9, link: {bandwidth: 7.3, latency: 0.001}}}}")
	for _, bytes := range []int64{0, 1, 2, 3, 1000, 12345677, 1 << 40, 1 << 50} {
		for dst := range top.SIPs() {
			e := sim.NewEngine()
			n := network.New(e, top)
			m := message{5, top.PE(0, 3, 1), top.PE(dst, 15, 7), bytes}
			got := send(t, e, n, []message{m})[0] - 5
			if want := n.Uncontended(n.Path(m.src, m.dst), bytes); got != want {
				t.Errorf("%d bytes to SIP %d take %d ps alone, foretold %d ps", bytes, dst, got, want)
			}
		}
	}
}

func TestReduce(t *testing.T) {
	top := parse(t, "{name: r, system: {sips: {count: 1}}, pe: {vector: {reduce_bandwidth: 3}}}")
	e := sim.NewEngine()
	n := network.New(e, top)
	tr := &traffic{n: n, arrived: make([]sim.Time, 5)}
	a, b := top.PE(0, 0, 0), top.PE(0, 0, 1)
	n.Reduce(a, 1, delivered{tr}, 0) // 1/3 ns
	n.Reduce(a, 2, delivered{tr}, 1) // 2/3 ns, after the first
	n.Reduce(b, 3, delivered{tr}, 2)
	n.Reduce(b, 0, delivered{tr}, 3)
	for e.Step() {
	}
	n.Reduce(a, 300, delivered{tr}, 4)
	for e.Step() {
	}
	if want := []sim.Time{333, 333 + 667, 1000, 1000, 101000}; !slices.Equal(tr.arrived, want) {
		t.Errorf("reductions are done at %v, want %v", tr.arrived, want)
	}
	if s := n.Leftover(); s != "" {
		t.Error(s)
	}
}

func TestBadUse(t *testing.T) {
	top := star(t, "cut_through", 1)
	n := network.New(sim.NewEngine(), top)
	p := n.Path(top.PE(0, 0, 0), top.PE(1, 0, 0))
	if p != n.Path(top.PE(0, 0, 0), top.PE(1, 0, 0)) {
		t.Error("the same path has two names")
	}
	for about, f := range map[string]func(){
		"-1 bytes":                              func() { n.Send(p, -1, nil, 0) },
		"-2 bytes":                              func() { n.Reduce(top.PE(0, 0, 0), -2, nil, 0) },
		"no route from n0.s0.c0 to n0.s0.c0.p0": func() { n.Path(top.PE(0, 0, 0)-2, top.PE(0, 0, 0)) },
		"10 messages that share links take longer": func() {
			var messages []message
			for range 10 {
				messages = append(messages, message{0, top.PE(0, 0, 0), top.PE(1, 0, 0), 1 << 56})
			}
			top = star(t, "cut_through", 10)
			e := sim.NewEngine()
			send(t, e, network.New(e, top), messages)
		},
		"9223372036854775807 bytes at 10000000000 bytes per second": func() { n.Uncontended(p, 1<<63-1) },
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
