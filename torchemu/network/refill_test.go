package network_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// After every instant, every flow has the rate that filling everything from 0 gives it, to the last bit: whatever came
// and went, in small systems whose links are alike and in a torus that is full of messages.
func TestRatesAreThoseOfFillingEverythingAnew(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 9))
		top := randomTopology(t, rng)
		messages, activities := randomMessages(top, rng, rng.IntN(60)), randomActivities(top, rng, rng.IntN(20))
		fillAnew(t, fmt.Sprintf("seed %d", seed), top, messages, activities, randomFaults(top, rng, rng.IntN(6)))
	}
	top := parse(t, "name: test\nsystem: {sips: {count: 16, connect: torus2d, w: 4, h: 4}}\npe: {dma: {engines: 3}}")
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 10))
		faults := randomFaults(top, rng, 5)
		fillAnew(t, fmt.Sprintf("torus, seed %d", seed), top, everybody(top, rng), randomActivities(top, rng, 30), faults)
	}
}

// everybody has all SIPs send to all others, most of them within a microsecond and a part alike.
func everybody(t *topology.Topology, rng *rand.Rand) []message {
	var messages []message
	for i := range t.SIPs() {
		start := sim.Time(rng.Int64N(1_000_000))
		for j := range t.SIPs() {
			size := []int64{4096, 100_000, rng.Int64N(200_000)}[rng.IntN(3)]
			messages = append(messages, message{start, t.PE(i, 0, 0), t.PE((i+j)%t.SIPs(), 0, 0), size})
		}
	}
	return messages
}

// fillAnew runs it all and compares the rates at the end of every instant.
func fillAnew(t *testing.T, about string, top *topology.Topology, messages []message, activities []activity, faults []fault) {
	t.Helper()
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
		if next, more := e.Next(); more && next == e.Now() {
			continue
		}
		if wrong := tr.n.CompareWithRefilling(); wrong != "" {
			t.Fatalf("%s: at %d ps %s", about, e.Now(), wrong)
		}
	}
	if tr.calls != len(tr.arrived) {
		t.Fatalf("%s: %d ends, want %d", about, tr.calls, len(tr.arrived))
	}
}
