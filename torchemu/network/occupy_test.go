package network_test

import (
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// at does something at a time.
type at func(now sim.Time)

func (a at) Handle(now sim.Time, _ uint64) { a(now) }

// A kernel that computes for 100 ms is slowed by half while there is a collective, however many there are, and a fault
// slows it besides.
func TestCollectivesTakeFromKernels(t *testing.T) {
	topo := parse(t, tiled+"kernels: {collective: 0.5}\n")
	kernel := network.Kernel{Ops: 1e12, Unit: network.MatrixF16} // at 10 TFLOPS
	pe := topo.PE(0, 0, 0)
	for _, c := range []struct {
		name string
		does map[sim.Time]func(n *network.Network)
		want sim.Time
	}{
		{"nothing", nil, 100 * sim.Millisecond},
		{"one", map[sim.Time]func(n *network.Network){
			20: func(n *network.Network) { n.Occupy(pe) }, 60: func(n *network.Network) { n.Vacate(pe) },
		}, 120 * sim.Millisecond},
		{"two", map[sim.Time]func(n *network.Network){
			20: func(n *network.Network) { n.Occupy(pe) }, 30: func(n *network.Network) { n.Occupy(pe) },
			40: func(n *network.Network) { n.Vacate(pe) }, 60: func(n *network.Network) { n.Vacate(pe) },
		}, 120 * sim.Millisecond},
		{"and a fault", map[sim.Time]func(n *network.Network){
			20: func(n *network.Network) { n.Occupy(pe) }, 40: func(n *network.Network) { n.SlowSIP(0, 2) },
			60: func(n *network.Network) { n.Vacate(pe) },
		}, (60 + 2*65) * sim.Millisecond},
	} {
		e := sim.NewEngine()
		n := network.New(e, topo)
		done := &arrivals{}
		n.Kernel(pe, kernel, done, 0)
		for when, do := range c.does {
			e.At(when*sim.Millisecond, 0, at(func(sim.Time) { do(n) }), 0)
		}
		for e.Run(1<<10) > 0 {
		}
		if done.last != c.want {
			t.Errorf("%s: %v, want %v", c.name, done.last, c.want)
		}
	}
}
