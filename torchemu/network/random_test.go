package network_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// randomTopology draws a small system whose bandwidths are close enough to one another that any link may be the
// tightest.
func randomTopology(tb testing.TB, rng *rand.Rand) *topology.Topology {
	bandwidth := func() any { return []any{1, 2, 3, 5, 7.5, 10, 20}[rng.IntN(7)] }
	latency := func() any { return []any{0, 1, 2.5, 10}[rng.IntN(4)] }
	forwarding := func() any { return []string{"cut_through", "store_and_forward"}[rng.IntN(2)] }
	connect := []string{
		"count: 4, connect: ring", "count: 5, connect: ring", "count: 6, connect: torus2d, w: 3, h: 2",
		"count: 3, connect: fully_connected", "count: 4, connect: switch",
	}[rng.IntN(5)]
	return parse(tb, fmt.Sprintf(`
name: random
system:
  sips: {%s, link: {bandwidth: %v, latency: %v}}
  switch: {forwarding: %v, latency: %v}
sip:
  cube_mesh: {w: 2, h: 1}
  noc: {bandwidth: %v, latency: %v, forwarding: %v}
  io: {bandwidth: %v, latency: %v, forwarding: %v}
cube:
  hbm: {bandwidth: %v, latency: %v}
  pe_layout: {pe_per_corner: 1, corners: [nw, ne]}
pe: {dma: {engines: %d, bandwidth: %v, setup: %v}}
`, connect, bandwidth(), latency(), forwarding(), latency(), bandwidth(), latency(), forwarding(), bandwidth(),
		latency(), forwarding(), bandwidth(), latency(), 1+rng.IntN(3), bandwidth(), latency()))
}

// randomMessages draws messages that often start together or are alike.
func randomMessages(t *topology.Topology, rng *rand.Rand, count int) []message {
	pe := func() topology.DeviceID {
		return t.PE(rng.IntN(t.SIPs()), rng.IntN(t.CubesPerSIP()), rng.IntN(t.PEsPerCube()))
	}
	size := func() int64 { return []int64{0, 1, 1000, 1000, 1000, 4096, rng.Int64N(10000)}[rng.IntN(7)] }
	var messages []message
	at := sim.Time(0)
	for len(messages) < count {
		at += []sim.Time{0, 0, 0, 1, 1000, sim.Time(rng.Int64N(1000000))}[rng.IntN(6)]
		messages = append(messages, message{at, pe(), pe(), size()})
	}
	return messages
}

func TestRandomTrafficAgreesWithTheReference(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		top := randomTopology(t, rng)
		agree(t, seed, top, randomMessages(top, rng, 1+rng.IntN(30)))
	}
}

// Few bytes at bandwidths that are powers of two, or three times that, so that many exact times end in half a
// picosecond.
func TestHalvesAreRoundedAlike(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		bandwidth := func() int { return []int{24, 32, 48, 64, 80, 96, 128}[rng.IntN(7)] }
		top := parse(t, fmt.Sprintf(`
name: halves
system: {sips: {count: 6, link: {bandwidth: %d, latency: 1}}}
sip: {cube_mesh: {w: 1, h: 1}, io: {bandwidth: %d, latency: 1}}
cube: {hbm: {bandwidth: %d, latency: 1}}
pe: {dma: {engines: 64, bandwidth: %d, setup: 1}}
`, bandwidth(), bandwidth(), bandwidth(), bandwidth()))
		var messages []message
		for range 30 {
			src, dst := top.PE(rng.IntN(6), 0, rng.IntN(8)), top.PE(rng.IntN(6), 0, rng.IntN(8))
			messages = append(messages, message{0, src, dst, 1 + rng.Int64N(12)})
		}
		agree(t, seed, top, messages)
	}
}

// agree compares an idle network's arrivals with those of the reference.
func agree(t *testing.T, seed uint64, top *topology.Topology, messages []message) {
	t.Helper()
	want := expect(top, messages)
	e := sim.NewEngine()
	got := send(t, e, network.New(e, top), messages)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("seed %d: message %d of %d, %+v, arrived at %d ps, want %d ps",
				seed, i, len(messages), messages[i], got[i], want[i])
		}
	}
}

// With engines for all, what is sent at one time may be given to the network in any order.
func TestOrderOfSimultaneousMessagesDoesNotMatter(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		top := star(t, "store_and_forward", 64)
		messages := randomMessages(top, rng, 60)
		e := sim.NewEngine()
		want := send(t, e, network.New(e, top), messages)

		order := rng.Perm(len(messages))
		shuffled := make([]message, len(messages))
		for i, k := range order {
			shuffled[i] = messages[k]
		}
		e = sim.NewEngine()
		got := send(t, e, network.New(e, top), shuffled)
		for i, k := range order {
			if got[i] != want[k] {
				t.Fatalf("seed %d: message %+v arrives at %d ps or at %d ps, depending on the order",
					seed, messages[k], want[k], got[i])
			}
		}
	}
}

// A network that has come to rest is as good as new: the same messages take the same times again.
func TestTrafficLeavesNothingBehind(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		top := randomTopology(t, rng)
		messages := randomMessages(top, rng, 40)
		e := sim.NewEngine()
		n := network.New(e, top)
		first := send(t, e, n, messages)
		start := e.Now()
		for i := range messages {
			messages[i].at += start
		}
		for i, arrived := range send(t, e, n, messages) {
			if arrived != first[i]+start {
				t.Fatalf("seed %d: message %d took %v at first and %v later", seed, i, first[i], arrived-start)
			}
		}
	}
}

func TestLinksCountEveryByte(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 4))
		top := randomTopology(t, rng)
		e := sim.NewEngine()
		n := network.New(e, top)
		want := make([]int64, top.NumLinks())
		for range 2 { // what was read once must not be counted again
			messages := randomMessages(top, rng, 30)
			for i := range messages {
				messages[i].at += e.Now()
			}
			send(t, e, n, messages)
			for _, m := range messages {
				for _, l := range top.Route(m.src, m.dst) {
					want[l] += m.bytes
				}
			}
			for l := range want {
				if got := n.LinkBytes(topology.LinkID(l)); got != want[l] {
					t.Fatalf("seed %d: link %d carried %d bytes, want %d", seed, l, got, want[l])
				}
			}
		}
	}
}
