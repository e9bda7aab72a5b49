package ccl_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// arrival keeps when a message arrived.
type arrival struct{ at sim.Time }

func (a *arrival) Delivered(now sim.Time, _ uint64) { a.at = now }

// messages sends messages at once and returns when each has arrived, in ns.
func messages(topo *topology.Topology, list ...ccl.Message) []float64 {
	e := sim.NewEngine()
	x := ccl.NewExecutor(e, network.New(e, topo))
	sinks := make([]arrival, len(list))
	for i, m := range list {
		x.Send(m, &sinks[i], 0)
	}
	e.Run(math.MaxInt)
	var took []float64
	for _, s := range sinks {
		took = append(took, float64(s.at)/float64(sim.Nanosecond))
	}
	return took
}

func TestMessagesByTransportTakeTheirClosedForm(t *testing.T) {
	topo := carriedTopology(t, 4)
	for bytes := 4; bytes <= 1<<30; bytes *= 4 {
		want := carriedLaunch + 2097 + float64(bytes)/(175*0.66)
		if bytes > 524288 {
			want = carriedLaunch + 2097 + 2358 + float64(bytes)/377
		}
		there := ccl.Message{From: topo.PE(0, 0, 0), To: topo.PE(1, 0, 0), Elems: bytes / 4, ElemSize: 4}
		back := ccl.Message{From: there.To, To: there.From, Elems: there.Elems, ElemSize: 4}
		for i, got := range messages(topo, there, back) { // a link has two directions
			within(t, fmt.Sprintf("message %d of %d bytes", i, bytes), got, want, 0.001)
		}
		aside := ccl.Message{From: topo.PE(0, 0, 0), To: topo.PE(2, 0, 0), Elems: there.Elems, ElemSize: 4}
		both := messages(topo, there, aside)
		if shared := max(want, carriedLaunch+2*float64(bytes)/carriedLink); both[0] < want*0.999 || max(both[0], both[1]) < shared*0.999 {
			t.Errorf("two messages of %d bytes from one rank take %v, one %.0f", bytes, both, want)
		}
	}
}

func TestMessagesWithoutBytes(t *testing.T) {
	for _, name := range []string{"default", "h200_8"} {
		topo, err := topology.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		messages(topo, ccl.Message{From: topo.PE(0, 0, 0), To: topo.PE(1, 0, 0), ElemSize: 4})
	}
}

// Without a transport, and inside of a SIP, a message is the network's own.
func TestMessagesWithoutTransport(t *testing.T) {
	for _, c := range []struct {
		topology string
		to       [3]int
	}{{"default", [3]int{1, 0, 0}}, {"default", [3]int{0, 1, 0}}, {"h200_8", [3]int{0, 0, 1}}} {
		topo, err := topology.Load(c.topology)
		if err != nil {
			t.Fatal(err)
		}
		m := ccl.Message{From: topo.PE(0, 0, 0), To: topo.PE(c.to[0], c.to[1], c.to[2]), Elems: 1000, ElemSize: 2}
		e := sim.NewEngine()
		n := network.New(e, topo)
		var want arrival
		n.Send(n.Path(m.From, m.To), 2000, &want, 0)
		e.Run(math.MaxInt)
		if got := messages(topo, m)[0]; got != float64(want.at)/float64(sim.Nanosecond) {
			t.Errorf("%s: a message to %v takes %v ns, by the network %v", c.topology, c.to, got, want.at)
		}
	}
}
