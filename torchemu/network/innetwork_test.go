package network_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// sharpYAML is the star, whose switch also works on data itself. %d is the DMA engines of a PE, %s more keys.
const sharpYAML = `
name: sharp
system:
  sips: {count: 4, connect: switch, link: {bandwidth: 10, latency: 100}}
  switch: {latency: 50, in_network: {multicast: true, reduce: [sum, max], latency: 7%s}}
sip:
  cube_mesh: {w: 2, h: 1}
  noc: {bandwidth: 1000, latency: 3}
  io: {bandwidth: 1000, latency: 1}
cube: {hbm: {bandwidth: 1000, latency: 2}}
pe: {dma: {engines: %d, bandwidth: 500, setup: 5}}
`

func sharp(tb testing.TB, engines int, more string) *topology.Topology {
	tb.Helper()
	return parse(tb, fmt.Sprintf(sharpYAML, more, engines))
}

// order is something for a switch to do: to multicast from the first PE to all, or to reduce from all for it.
type order struct {
	at      sim.Time
	reduces bool
	pes     []topology.DeviceID
	bytes   int64
}

func (o order) path(n *network.Network) network.PathID {
	if o.reduces {
		return n.ReduceInSwitch(o.pes, o.pes[0])
	}
	return n.Multicast(o.pes[0], o.pes)
}

// links are those of an order: every way to the switch and from it, each link once.
func (o order) links(top *topology.Topology) (up, down []topology.LinkID) {
	senders, receivers := o.pes[:1], o.pes
	if o.reduces {
		senders, receivers = o.pes, o.pes[:1]
	}
	for _, pe := range senders {
		up = append(up, top.ToSwitch(pe)...)
	}
	for _, pe := range receivers {
		down = append(down, top.FromSwitch(pe)...)
	}
	slices.Sort(up)
	slices.Sort(down)
	return slices.Compact(up), slices.Compact(down)
}

// alpha is what an order takes beside its transmission: the set-up, the longest way in and the longest way out.
func (o order) alpha(top *topology.Topology) sim.Time {
	total := top.DMA().Setup
	longest := [2]int64{}
	for _, pe := range o.pes {
		for side, route := range [2][]topology.LinkID{top.ToSwitch(pe), top.FromSwitch(pe)} {
			if single := side == 0 != o.reduces; single && pe != o.pes[0] {
				continue
			}
			latency := int64(0)
			for _, l := range route {
				latency += top.Link(l).Latency
			}
			longest[side] = max(longest[side], latency)
		}
	}
	if o.reduces {
		total += top.InNetwork().Latency
	}
	return sim.Time(total + longest[0] + longest[1])
}

// busy is traffic that the switch takes part in: the first of its numbers are orders, then come messages.
type busy struct {
	*traffic
	orders []order
}

func (b *busy) Handle(_ sim.Time, i uint64) {
	if int(i) < len(b.orders) {
		b.n.Send(b.orders[i].path(b.n), b.orders[i].bytes, b, i)
		return
	}
	m := b.messages[int(i)-len(b.orders)]
	b.n.Send(b.n.Path(m.src, m.dst), m.bytes, b, i)
}

// obey runs orders, and messages beside them, and returns when each was done.
func obey(tb testing.TB, n *network.Network, e *sim.Engine, orders []order, messages []message) []sim.Time {
	tb.Helper()
	b := &busy{&traffic{n: n, messages: messages, arrived: make([]sim.Time, len(orders)+len(messages))}, orders}
	for i, o := range orders {
		e.At(o.at, 0, b, uint64(i))
	}
	for i, m := range messages {
		e.At(m.at, 0, b, uint64(len(orders)+i))
	}
	for e.Step() {
	}
	if b.calls != len(b.arrived) {
		tb.Fatalf("%d deliveries, want %d", b.calls, len(b.arrived))
	}
	if s := n.Leftover(); s != "" {
		tb.Errorf("the idle network is not empty: %s", s)
	}
	return b.arrived
}

// A kB takes 100 ns on a SIP's link. What n SIPs order at once shares these links: each is crossed by all orders in one
// direction and by one in the other.
func TestInNetworkByHand(t *testing.T) {
	const setup, way = 5 * ns, (2 + 1 + 100) * ns // a way to the switch; the one back takes 50 more
	for _, c := range []struct {
		name   string
		more   string
		orders func(pe func(int) topology.DeviceID) []order
		want   []sim.Time
	}{
		{"a multicast crosses each link once", "", func(pe func(int) topology.DeviceID) []order {
			return []order{{0, false, []topology.DeviceID{pe(0), pe(1), pe(2), pe(3)}, 1000}}
		}, []sim.Time{setup + 2*way + 50*ns + 100*ns}},
		{"a reduction too, and takes longer", "", func(pe func(int) topology.DeviceID) []order {
			return []order{{0, true, []topology.DeviceID{pe(2), pe(1), pe(0), pe(3)}, 1000}}
		}, []sim.Time{setup + 2*way + 57*ns + 100*ns}},
		{"all multicast: four share each way back", "", func(pe func(int) topology.DeviceID) []order {
			return everyone(pe, false)
		}, slices.Repeat([]sim.Time{setup + 2*way + 50*ns + 400*ns}, 4)},
		{"all reduce: four share each way there", "", func(pe func(int) topology.DeviceID) []order {
			return everyone(pe, true)
		}, slices.Repeat([]sim.Time{setup + 2*way + 57*ns + 400*ns}, 4)},
		{"both: five share each way", "", func(pe func(int) topology.DeviceID) []order {
			return append(everyone(pe, false), everyone(pe, true)...)
		}, append(slices.Repeat([]sim.Time{setup + 2*way + 50*ns + 500*ns}, 4), slices.Repeat([]sim.Time{setup + 2*way + 57*ns + 500*ns}, 4)...)},
		{"at half the link's rate", ", bandwidth: 5", func(pe func(int) topology.DeviceID) []order {
			return everyone(pe, false)
		}, slices.Repeat([]sim.Time{setup + 2*way + 50*ns + 800*ns}, 4)},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := sharp(t, 8, c.more)
			e := sim.NewEngine()
			n := network.New(e, top)
			orders := c.orders(func(sip int) topology.DeviceID { return top.PE(sip, 0, 0) })
			if got := obey(t, n, e, orders, nil); !slices.Equal(got, c.want) {
				t.Errorf("done at %v, want %v", got, c.want)
			}
		})
	}
}

// everyone lists an order from each SIP.
func everyone(pe func(int) topology.DeviceID, reduces bool) []order {
	var orders []order
	for i := range 4 {
		orders = append(orders, order{0, reduces, []topology.DeviceID{pe(i), pe((i + 1) % 4), pe((i + 2) % 4), pe((i + 3) % 4)}, 1000})
	}
	return orders
}

// What the limit on a SIP's link leaves belongs to messages.
func TestInNetworkBandwidthIsNotForMessages(t *testing.T) {
	top := sharp(t, 8, ", bandwidth: 2.5")
	e := sim.NewEngine()
	n := network.New(e, top)
	pe := func(sip int) topology.DeviceID { return top.PE(sip, 0, 0) }
	orders := []order{{0, false, []topology.DeviceID{pe(0), pe(1), pe(2)}, 1000}}
	messages := []message{{0, pe(0), pe(3), 3000}}
	alpha := orders[0].alpha(top)
	if got, want := obey(t, n, e, orders, messages), []sim.Time{alpha + 400*ns, alpha + 400*ns}; !slices.Equal(got, want) {
		t.Errorf("done at %v, want %v: a quarter of the link for the multicast, three for the message", got, want)
	}
}

// randomOrders draws orders of PEs of several cubes that often begin together.
func randomOrders(top *topology.Topology, rng *rand.Rand, count int) []order {
	var orders []order
	at := sim.Time(0)
	for len(orders) < count {
		at += []sim.Time{0, 0, 1000, sim.Time(rng.Int64N(1000000))}[rng.IntN(4)]
		o := order{at: at, reduces: rng.IntN(2) == 0, bytes: []int64{0, 1, 1000, 1000, rng.Int64N(10000)}[rng.IntN(5)]}
		for _, sip := range rng.Perm(top.SIPs())[:1+rng.IntN(top.SIPs())] {
			o.pes = append(o.pes, top.PE(sip, rng.IntN(top.CubesPerSIP()), 0))
		}
		orders = append(orders, o)
	}
	return orders
}

// The reference fills links by exact fractions, and it is all one to it which links a flow has.
func TestInNetworkAgreesWithTheReference(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 11))
		top := sharp(t, 1+rng.IntN(3), "")
		orders, messages := randomOrders(top, rng, 1+rng.IntN(20)), randomMessages(top, rng, rng.IntN(20))
		e := sim.NewEngine()
		n := network.New(e, top)
		got := obey(t, n, e, orders, messages)

		r := &reference{t: top, waiting: map[topology.DeviceID][]*job{}, using: map[topology.DeviceID]int{}}
		carried := map[topology.LinkID]int64{}
		for _, o := range orders {
			up, down := o.links(top)
			j := &job{
				message: message{o.at, o.pes[0], o.pes[0], o.bytes}, next: o.at, amount: new(big.Rat).SetInt64(o.bytes),
				parts: [][]topology.LinkID{slices.Concat(up, down)}, latency: []sim.Time{o.alpha(top)},
			}
			r.jobs = append(r.jobs, j)
			for _, l := range j.parts[0] {
				carried[l] += o.bytes
			}
		}
		for _, m := range messages {
			r.jobs = append(r.jobs, r.newJob(m))
			for _, l := range top.Route(m.src, m.dst) {
				carried[l] += m.bytes
			}
		}
		r.run()
		for i, j := range r.jobs {
			if got[i] != j.arrived {
				t.Fatalf("seed %d: number %d of %d orders and %d messages is done at %d ps, want %d ps",
					seed, i, len(orders), len(messages), got[i], j.arrived)
			}
		}
		for l := range topology.LinkID(top.NumLinks()) {
			if n.LinkBytes(l) != carried[l] {
				t.Fatalf("seed %d: %s carried %d bytes, want %d", seed, top.LinkName(l), n.LinkBytes(l), carried[l])
			}
		}
	}
}

// A path is made once, whichever order the PEs are named in is another one; alone it takes what it says.
func TestInNetworkPaths(t *testing.T) {
	top := sharp(t, 8, "")
	e := sim.NewEngine()
	n := network.New(e, top)
	for _, o := range everyone(func(sip int) topology.DeviceID { return top.PE(sip, sip%2, 0) }, true) {
		p := o.path(n)
		if p != o.path(n) {
			t.Errorf("a second path for %v", o.pes)
		}
		if got, want := n.Uncontended(p, o.bytes), o.alpha(top)+100*ns; got != want {
			t.Errorf("alone %v, want %v", got, want)
		}
	}
}

// A multicast over a link that is lost, or to a SIP that is cut off, arrives nowhere.
func TestInNetworkFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		strike func(n *network.Network, top *topology.Topology)
	}{
		{"dropped", func(n *network.Network, top *topology.Topology) { n.DropLink(top.FromSwitch(top.PE(2, 0, 0))[0]) }},
		{"halted", func(n *network.Network, _ *topology.Topology) { n.Halt(2) }},
	} {
		for _, late := range []bool{false, true} {
			top := sharp(t, 8, "")
			e := sim.NewEngine()
			l := &lossy{&traffic{n: network.New(e, top)}, e, top}
			pe := func(sip int) topology.DeviceID { return top.PE(sip, 0, 0) }
			if late {
				c.strike(l.n, top)
			}
			for i, o := range []order{
				{0, false, []topology.DeviceID{pe(0), pe(1), pe(2)}, 1000}, {0, false, []topology.DeviceID{pe(3), pe(1)}, 1000},
			} {
				l.arrived = append(l.arrived, -1)
				l.n.Send(o.path(l.n), o.bytes, l, uint64(i))
			}
			if !late {
				c.strike(l.n, top)
			}
			l.runUntil(1 << 62)
			if l.arrived[0] >= 0 || l.arrived[1] < 0 {
				t.Errorf("%s: done at %v, want only the one that has nothing to do with SIP 2", c.name, l.arrived)
			}
		}
	}
}

// A node may stand for another one: what its switch does takes as long. Within it no SIP may.
func TestInNetworkWhereANodeStandsForAnother(t *testing.T) {
	top := twoNodes(t)
	orders := everyone(func(sip int) topology.DeviceID { return top.PE(sip, 0, 0) }, true)
	e := sim.NewEngine()
	whole := obey(t, network.New(e, top), e, orders, nil)
	e = sim.NewEngine()
	n := network.New(e, top)
	if err := n.Fold(topology.Fold{0, 1, 2, 3, 0, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if got := obey(t, n, e, orders, nil); !slices.Equal(got, whole) {
		t.Errorf("done at %v, want %v as without a fold", got, whole)
	}
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "another stands for n1.s4.c0.p0") {
			t.Errorf("panic %q", got)
		}
	}()
	n.Multicast(top.PE(4, 0, 0), []topology.DeviceID{top.PE(4, 0, 0), top.PE(5, 0, 0)})
}

// twoNodes are two of sharp.
func twoNodes(t *testing.T) *topology.Topology {
	return parse(t, strings.NewReplacer("count: 4", "count: 8", "system:", "system:\n  nodes: {count: 2}\n  network: {nic: {bandwidth: 1, latency: 1}}").
		Replace(fmt.Sprintf(sharpYAML, "", 8)))
}

func TestInNetworkPanics(t *testing.T) {
	plain := star(t, "cut_through", 4)
	nodes := twoNodes(t)
	for want, f := range map[string]func(){
		"do not multicast": func() {
			network.New(sim.NewEngine(), plain).Multicast(plain.PE(0, 0, 0), []topology.DeviceID{plain.PE(1, 0, 0)})
		},
		"do not reduce": func() {
			network.New(sim.NewEngine(), plain).ReduceInSwitch([]topology.DeviceID{plain.PE(1, 0, 0)}, plain.PE(0, 0, 0))
		},
		"no switch in common": func() {
			network.New(sim.NewEngine(), nodes).Multicast(nodes.PE(0, 0, 0), []topology.DeviceID{nodes.PE(4, 0, 0)})
		},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want one with %q", got, want)
				}
			}()
			f()
		}()
	}
}
