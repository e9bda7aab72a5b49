package network_test

import (
	"fmt"
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// message is one Send of a test.
type message struct {
	at       sim.Time
	src, dst topology.DeviceID
	bytes    int64
}

// traffic sends messages at their times and notes when they arrive.
type traffic struct {
	n        *network.Network
	messages []message
	arrived  []sim.Time
	calls    int
}

func (tr *traffic) Handle(_ sim.Time, i uint64) {
	m := tr.messages[i]
	tr.n.Send(tr.n.Path(m.src, m.dst), m.bytes, tr, i)
}

func (tr *traffic) Delivered(now sim.Time, i uint64) {
	tr.arrived[i] = now
	tr.calls++
}

// send runs messages on an idle network and returns when each arrived.
func send(tb testing.TB, e *sim.Engine, n *network.Network, messages []message) []sim.Time {
	tb.Helper()
	tr := &traffic{n: n, messages: messages, arrived: make([]sim.Time, len(messages))}
	for i, m := range messages {
		e.At(m.at, 0, tr, uint64(i))
	}
	for e.Step() {
	}
	if tr.calls != len(messages) {
		tb.Fatalf("%d messages delivered, want %d", tr.calls, len(messages))
	}
	if last := latest(tr.arrived); e.Now() > max(last, 0) && len(messages) > 0 {
		tb.Errorf("the last message arrived at %v, but events ran until %v", last, e.Now())
	}
	if s := n.Leftover(); s != "" {
		tb.Errorf("the idle network is not empty: %s", s)
	}
	return tr.arrived
}

func latest(times []sim.Time) sim.Time {
	last := sim.Time(0)
	for _, t := range times {
		last = max(last, t)
	}
	return last
}

// parse returns the topology of a YAML text.
func parse(tb testing.TB, yaml string) *topology.Topology {
	tb.Helper()
	t, err := topology.Parse("test.yaml", []byte(yaml))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// sips returns n SIPs in a ring that are otherwise as in the default preset.
func sips(tb testing.TB, n int) *topology.Topology {
	tb.Helper()
	return parse(tb, fmt.Sprintf("name: test\nsystem: {sips: {count: %d}}\n", n))
}

// star returns four SIPs around a switch, with links of 10 GB/s, that is 100 ps a byte, which are all that limits a
// message between SIPs. %s and %d take the forwarding of the switch and the DMA engines of a PE.
const starYAML = `
name: star
system:
  sips: {count: 4, connect: switch, link: {bandwidth: 10, latency: 100}}
  switch: {forwarding: %s, latency: 50}
sip:
  cube_mesh: {w: 1, h: 1}
  io: {bandwidth: 1000, latency: 1, forwarding: cut_through}
cube: {hbm: {bandwidth: 1000, latency: 2}}
pe: {dma: {engines: %d, bandwidth: 500, setup: 5}}
`

// starAlpha is what a message between SIPs of the star takes beside its transmission.
const starAlpha = (5 + 2 + 1 + 100 + 150 + 1 + 2) * sim.Nanosecond

func star(tb testing.TB, forwarding string, engines int) *topology.Topology {
	tb.Helper()
	return parse(tb, fmt.Sprintf(starYAML, forwarding, engines))
}

// delivered handles an event as the arrival of a message.
type delivered struct{ network.Sink }

func (d delivered) Handle(now sim.Time, token uint64) { d.Delivered(now, token) }
