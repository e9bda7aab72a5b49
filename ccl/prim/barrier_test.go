package prim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
)

var barrierKinds = []prim.BarrierKind{prim.PhaseBarrier, prim.SenseBarrier, prim.CreditBarrier}

// meet is a program that crosses a barrier some times. Before each it puts the round's number to every other rank, and
// after it looks whether all have done so: a rank that passes too early sees an old number, and one that comes back
// too early overwrites what a slow one has still to see.
func meet(rounds int, sync func(c *prim.Context, round int)) func(w *prim.Window) prim.Kernel {
	return func(w *prim.Window) prim.Kernel {
		return func(c *prim.Context) error {
			for round := 1; round <= rounds; round++ {
				for r := range c.World() {
					c.Signal(prim.I64(w.At(r, 8*c.Rank())), prim.Set, int64(round))
				}
				sync(c, round)
				for r := range c.World() {
					got := c.Fetch(prim.I64(w.At(c.Rank(), 8*r)))
					if got != int64(round) && got != int64(round+1) {
						return fmt.Errorf("round %d: rank %d's number is %d", round, r, got)
					}
				}
			}
			return nil
		}
	}
}

func setupBarrier(kind prim.BarrierKind, rounds int) prim.Setup {
	return func(m *prim.Machine) (func() error, error) {
		w, err := m.Allocate("numbers", all(m.World()), 512)
		if err != nil {
			return nil, err
		}
		b, err := m.NewBarrier("all", all(m.World()), kind)
		if err != nil {
			return nil, err
		}
		arrived := make([]int, m.World())
		m.Launch("meet", func(c *prim.Context) error {
			for round := 1; round <= rounds; round++ {
				arrived[c.Rank()] = round
				c.Sync(b)
				for r, n := range arrived {
					if n < round {
						return fmt.Errorf("rank %d has passed round %d and rank %d is in round %d", c.Rank(), round, r, n)
					}
				}
			}
			return nil
		})
		_ = w
		return nil, nil
	}
}

func TestBarriersInAllOrders(t *testing.T) {
	for _, kind := range barrierKinds {
		for _, ranks := range []int{2, 3} {
			for _, reorder := range []bool{false, true} {
				o := prim.Options{Reorder: reorder}
				x, err := prim.Explore(sips(t, ranks), ranks, o, 1<<20, setupBarrier(kind, 3))
				if err != nil {
					t.Errorf("%v barrier, %d ranks: %v", kind, ranks, err)
				}
				t.Logf("%v barrier, %d ranks, reorder %v: %d states in %d runs", kind, ranks, reorder, x.States, x.Runs)
			}
		}
	}
	_ = strings.Repeat
}
