package network

import (
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// With rates of a few whole bytes per second much is lost to rounding: links are full that seem to have something left, and
// different links are full at levels that differ by one. Rates are those of progressive filling all the same.
func TestLevelsAreRoundedDownAsInFilling(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 12))
		e := sim.NewEngine()
		c := &coarse{network: New(e, onePE(t)), rng: rng}
		c.network.filling.shift = 0
		c.lay(2+rng.IntN(8), 1+rng.IntN(20))
		for range flows {
			e.At(sim.Time(rng.IntN(20))*sim.Second, flowPriority, c, 0)
		}
		for e.Step() {
			if next, more := e.Next(); more && next == e.Now() {
				continue
			}
			if wrong := c.network.CompareWithRefilling(); wrong != "" {
				t.Fatalf("seed %d: at %v %s", seed, e.Now(), wrong)
			}
		}
		if left := c.network.Leftover(); left != "" || c.ended != flows {
			t.Fatalf("seed %d: %d flows ended, want %d; %s", seed, c.ended, flows, left)
		}
	}
}

const flows = 60

func onePE(t *testing.T) *topology.Topology {
	top, err := topology.Parse("one.yaml", []byte("system: {sips: {count: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// coarse starts flows on links that have hardly more than a byte per second for each.
type coarse struct {
	network  *Network
	rng      *rand.Rand
	segments []int32
	ended    int
}

// lay makes links, and segments of up to five of them.
func (c *coarse) lay(links, segments int) {
	for range links {
		c.network.newLink(flows + c.rng.Uint64N(60))
	}
	for range segments {
		s := c.network.newSegment()
		for _, l := range c.rng.Perm(links)[:1+c.rng.IntN(min(links, 5))] {
			c.network.append(&s, int32(l))
		}
		i := c.network.addSegment(s)
		c.network.tightenAll(i)
		c.segments = append(c.segments, i)
	}
}

func (c *coarse) Handle(sim.Time, uint64) {
	c.network.flow(c.segments[c.rng.IntN(len(c.segments))], 1+c.rng.Int64N(1000), c, 0)
}

func (c *coarse) Delivered(sim.Time, uint64) { c.ended++ }
