package network_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// witness writes down what an observer is told.
type witness struct {
	flows      []network.Flow
	reductions []sim.Time
}

func (w *witness) Flowed(f network.Flow) { w.flows = append(w.flows, f) }

func (w *witness) Reduced(_ topology.DeviceID, _ int64, start, end sim.Time) {
	w.reductions = append(w.reductions, start, end)
}

// What an observer sees must add up to what the network has done: bytes, the bandwidth of links, engines one message
// at a time, and arrivals.
func TestObserverSeesAllThatFlows(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			topo := randomTopology(t, rng)
			e := sim.NewEngine()
			n := network.New(e, topo)
			w := &witness{}
			n.Observe(w)
			messages := randomMessages(topo, rng, 40)
			arrived := send(t, e, n, messages)
			checkBytes(t, n, topo, w.flows)
			checkRates(t, n, topo, w.flows)
			checkEngines(t, n, w.flows)
			checkLast(t, n, topo, messages, arrived, w.flows)
		})
	}
}

func checkBytes(t *testing.T, n *network.Network, topo *topology.Topology, flows []network.Flow) {
	t.Helper()
	seen := map[topology.LinkID]int64{}
	for _, f := range flows {
		for _, l := range n.Segment(f.Segment).Links {
			seen[l] += f.Bytes
		}
	}
	for l := range topology.LinkID(topo.NumLinks()) {
		if seen[l] != n.LinkBytes(l) {
			t.Errorf("%s: flows of %d bytes, but it carried %d", topo.LinkName(l), seen[l], n.LinkBytes(l))
		}
	}
}

// change is a flow's beginning, end or change on a link.
type change struct {
	at   sim.Time
	rate float64 // by which the load of the link changes
}

func checkRates(t *testing.T, n *network.Network, topo *topology.Topology, flows []network.Flow) {
	t.Helper()
	loads := map[topology.LinkID][]change{}
	for _, f := range flows {
		moved, before := 0.0, 0.0
		for i, r := range f.Rates {
			end := f.End
			if i+1 < len(f.Rates) {
				end = f.Rates[i+1].From
			}
			if r.From > end || i == 0 && r.From != f.Start {
				t.Fatalf("rates out of order: %+v", f)
			}
			moved += r.BytesPerSecond * float64(end-r.From) / float64(sim.Second)
			for _, l := range n.Segment(f.Segment).Links {
				loads[l] = append(loads[l], change{r.From, r.BytesPerSecond - before})
			}
			before = r.BytesPerSecond
		}
		for _, l := range n.Segment(f.Segment).Links {
			loads[l] = append(loads[l], change{f.End, -before})
		}
		if math.Abs(moved-float64(f.Bytes)) > 1 { // its times are rounded
			t.Errorf("at the rates of %+v, %f bytes were moved", f, moved)
		}
	}
	for l, changes := range loads {
		checkLoad(t, topo.LinkName(l), float64(topo.Link(l).Bandwidth), changes)
	}
}

func checkLoad(t *testing.T, name string, bandwidth float64, changes []change) {
	t.Helper()
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	load := 0.0
	for i, c := range changes {
		load += c.rate
		if last := i == len(changes)-1 || changes[i+1].at > c.at; last && load > bandwidth*(1+1e-9) {
			t.Errorf("%s carries %g bytes per second at %v, and can %g", name, load, c.at, bandwidth)
		}
	}
}

func checkEngines(t *testing.T, n *network.Network, flows []network.Flow) {
	t.Helper()
	type engine struct {
		at     topology.DeviceID
		number int
	}
	busy := map[engine][]network.Flow{}
	for _, f := range flows {
		if f.Engine >= 0 {
			key := engine{n.Segment(f.Segment).From, f.Engine}
			busy[key] = append(busy[key], f)
		}
	}
	for key, list := range busy {
		slices.SortFunc(list, func(a, b network.Flow) int { return cmp.Compare(a.Start, b.Start) })
		for i := 1; i < len(list); i++ {
			if list[i].Start < list[i-1].End {
				t.Errorf("engine %v sends two messages at once: %+v and %+v", key, list[i-1], list[i])
			}
		}
	}
}

// checkLast compares arrivals with the ends of flows, plus what a message takes besides, where nothing stores and
// forwards.
func checkLast(t *testing.T, n *network.Network, topo *topology.Topology, messages []message, arrived []sim.Time, flows []network.Flow) {
	t.Helper()
	ends := map[sim.Time]bool{}
	for _, f := range flows {
		ends[f.End] = true
	}
	for i, m := range messages {
		alpha := n.Alpha(n.Path(m.src, m.dst))
		if m.bytes > 0 && !stores(topo, m) && !ends[arrived[i]-alpha] {
			t.Errorf("%+v arrived at %v: no flow ended %v earlier", m, arrived[i], alpha)
		}
	}
}

func stores(topo *topology.Topology, m message) bool {
	return slices.ContainsFunc(topo.Route(m.src, m.dst), func(l topology.LinkID) bool {
		return topo.Device(topo.Link(l).To).StoreAndForward
	})
}

func TestObserverOfFaultsCopiesAndReductions(t *testing.T) {
	topo := star(t, "cut_through", 1)
	e := sim.NewEngine()
	n := network.New(e, topo)
	w := &witness{}
	n.Observe(w)
	done := sinkFunc(func() {})
	p := n.Path(topo.PE(0, 0, 0), topo.PE(1, 0, 0))
	n.Send(p, 1000, done, 0)
	n.Copy(topo.PE(2, 0, 0), network.ToHost, 1000, done, 0)
	n.Kernel(topo.PE(3, 0, 0), network.Kernel{Bytes: 1000}, done, 0)
	n.Reduce(topo.PE(1, 0, 0), 500, delivered{done}, 0)
	e.At(40*ns, 0, handlerFunc(func() { n.SlowLink(topo.Route(topo.PE(0, 0, 0), topo.PE(1, 0, 0))[2], 2) }), 0)
	for e.Step() {
	}
	if len(w.flows) != 2 {
		t.Fatalf("%d flows, want the message and the copy, without the kernel", len(w.flows))
	}
	sent := w.flows[slices.IndexFunc(w.flows, func(f network.Flow) bool { return !n.Segment(f.Segment).Host })]
	want := []network.Rate{{From: 0, BytesPerSecond: 10e9}, {From: 40 * ns, BytesPerSecond: 5e9}}
	if !slices.Equal(sent.Rates, want) || sent.End != 160*ns {
		t.Errorf("the message went at %+v until %v, want %+v until 160 ns", sent.Rates, sent.End, want)
	}
	if took := n.ReduceTime(500); !slices.Equal(w.reductions, []sim.Time{0, took}) {
		t.Errorf("the reduction was seen at %v, want 0 to %v", w.reductions, took)
	}
}

type sinkFunc func()

func (f sinkFunc) Delivered(sim.Time, uint64) { f() }

type handlerFunc func()

func (f handlerFunc) Handle(sim.Time, uint64) { f() }
