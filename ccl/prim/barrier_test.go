package prim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

var barrierKinds = []prim.BarrierKind{prim.PhaseBarrier, prim.SenseBarrier, prim.CreditBarrier}

// meet makes every rank cross a barrier some times. No rank may pass a round before all have begun it, and what each
// put to the others before it came must have landed.
func meet(kind prim.BarrierKind, rounds int, full bool) prim.Setup {
	return func(m *prim.Machine) (func() error, error) {
		b, err := m.NewBarrier("all", all(m.World()), kind)
		if err != nil {
			return nil, err
		}
		begun := make([]int, m.World())
		m.Launch("meet", func(c *prim.Context) error {
			for round := 1; round <= rounds; round++ {
				begun[c.Rank()] = round
				if full {
					c.Barrier(b)
				} else {
					c.Sync(b)
				}
				for r, n := range begun {
					if n < round {
						return fmt.Errorf("rank %d has passed round %d and rank %d is in round %d", c.Rank(), round, r, n)
					}
				}
			}
			return nil
		})
		return nil, nil
	}
}

// Every order in which signals can land and ranks can run. Three rounds, for a fast rank is one round ahead, and the
// rows of a sense barrier are used again in the third.
func TestBarriersInAllOrders(t *testing.T) {
	for _, c := range []struct {
		ranks, rounds int
		reorder       bool
		kinds         []prim.BarrierKind
	}{
		{2, 5, false, barrierKinds},
		{2, 5, true, barrierKinds},
		{3, 2, false, []prim.BarrierKind{prim.PhaseBarrier, prim.CreditBarrier}},
		{3, 3, false, barrierKinds[1:2]},
		{3, 2, true, []prim.BarrierKind{prim.SenseBarrier, prim.CreditBarrier}},
	} {
		if testing.Short() && c.ranks > 2 {
			continue
		}
		for _, kind := range c.kinds {
			x, err := prim.Explore(sips(t, c.ranks), c.ranks, prim.Options{Reorder: c.reorder}, 1<<18, meet(kind, c.rounds, false))
			if err != nil {
				t.Fatalf("%v barrier, %d ranks: %v", kind, c.ranks, err)
			}
			if x.States < 50 {
				t.Errorf("%v barrier, %d ranks: %d states are too few to be all", kind, c.ranks, x.States)
			}
			t.Logf("%v barrier, %d ranks, %d rounds, reorder %v: %d states in %d runs", kind, c.ranks, c.rounds, c.reorder, x.States, x.Runs)
		}
	}
}

// The checker sees no fault in them either, in any order at two ranks, nor in random orders at 16, with data that is
// written before and read after.
func TestBarriersOrderData(t *testing.T) {
	for _, kind := range barrierKinds {
		o := prim.Options{Check: true, Reorder: true}
		if _, err := prim.Explore(sips(t, 2), 2, o, 1<<18, meet(kind, 3, true)); err != nil {
			t.Errorf("%v barrier: %v", kind, err)
		}
		for seed := range uint64(6) {
			if err := exchange(t, 16, kind, prim.Options{Check: true, Reorder: true, Seed: seed}); err != nil {
				t.Errorf("%v barrier, seed %d: %v", kind, seed, err)
			}
		}
	}
}

// exchange makes every rank write a word of its own memory, cross a barrier, get everybody's, and cross it again.
func exchange(t *testing.T, ranks int, kind prim.BarrierKind, o prim.Options) error {
	m := machine(t, ranks, o)
	w := window(t, m, 8*(ranks+1))
	b, err := m.NewBarrier("all", all(ranks), kind)
	if err != nil {
		t.Fatal(err)
	}
	m.Launch("exchange", func(c *prim.Context) error {
		own, tile := w.At(c.Rank(), 0), c.Tile(0, 8)
		for round := range 3 {
			c.Fill(tile, byte(10*round+c.Rank()))
			c.PipeBarrier(prim.AllPipes)
			c.Store(own, tile)
			c.Barrier(b)
			for r := range ranks {
				c.GetNBI(w.At(c.Rank(), 8*(r+1)), w.At(r, 0), 8)
			}
			c.Barrier(b)
			for r := range ranks {
				if got := read(t, m, w.At(c.Rank(), 8*(r+1)), 1)[0]; got != byte(10*round+r) {
					return fmt.Errorf("round %d: rank %d's word is %d", round, r, got)
				}
			}
		}
		return nil
	})
	return m.Run()
}

// A barrier with one row set to 1 and 0 in turn: a fast rank may set the row again before a slow one has looked.
func TestOneRowOfSensesIsTooFew(t *testing.T) {
	wrong := func(m *prim.Machine) (func() error, error) {
		w, err := m.Allocate("row", all(m.World()), 64)
		if err != nil {
			return nil, err
		}
		m.Launch("meet", func(c *prim.Context) error {
			for round := range 3 {
				peer := 1 - c.Rank()
				c.Signal(prim.I64(w.At(peer, 0)), prim.Set, int64(1-round%2))
				c.Wait(prim.I64(w.At(c.Rank(), 0)), prim.EQ, int64(1-round%2))
			}
			return nil
		})
		return nil, nil
	}
	_, err := prim.Explore(sips(t, 2), 2, prim.Options{}, 1<<16, wrong)
	wantText(t, err, "deadlock", "EQ 1; it is 0", "in this order:", `kernel "meet" runs on rank 0`, "barrier_test.go")
	_, err = prim.Explore(sips(t, 2), 2, prim.Options{Check: true}, 1<<16, wrong)
	wantText(t, err, "signal row reused without a phase")
}

// One counter for all: right for two ranks; among three a fast rank's second credit stands in for a slow one's first.
func TestOneCounterOfCreditsIsTooFew(t *testing.T) {
	wrong := func(m *prim.Machine) (func() error, error) {
		n := m.World()
		w, err := m.Allocate("counter", all(n), 64)
		if err != nil {
			return nil, err
		}
		seen, err := m.Allocate("seen", all(n), 64)
		if err != nil {
			return nil, err
		}
		m.Launch("meet", func(c *prim.Context) error {
			for round := 1; round <= 2; round++ {
				last := n - 1 // the rank whose data the first one looks at
				if c.Rank() == last {
					c.Signal(prim.I64(seen.At(0, 0)), prim.Set, int64(round))
				}
				for d := 1; d < n; d++ {
					c.Signal(prim.I64(w.At((c.Rank()+d)%n, 0)), prim.Add, 1)
				}
				own := prim.I64(w.At(c.Rank(), 0))
				c.Wait(own, prim.GE, int64(n-1))
				c.FetchAdd(own, -int64(n-1))
				if c.Rank() == 0 && c.Fetch(prim.I64(seen.At(0, 0))) < int64(round) {
					return fmt.Errorf("the data of round %d has not landed", round)
				}
			}
			return nil
		})
		return nil, nil
	}
	if _, err := prim.Explore(sips(t, 2), 2, prim.Options{}, 1<<18, wrong); err != nil {
		t.Errorf("two ranks: %v", err)
	}
	if testing.Short() {
		return // the orders of three ranks take seconds, and minutes under the race detector
	}
	_, err := prim.Explore(sips(t, 3), 3, prim.Options{}, 1<<18, wrong)
	wantText(t, err, "has not landed", "in this order:")
}

func TestExploreGivesUp(t *testing.T) {
	_, err := prim.Explore(sips(t, 2), 2, prim.Options{}, 20, meet(prim.PhaseBarrier, 5, false))
	wantText(t, err, "more than 20 states")
	_, err = prim.Explore(sips(t, 2), 3, prim.Options{}, 20, meet(prim.PhaseBarrier, 5, false))
	wantText(t, err, "3 ranks")
}

func TestTeamBarrier(t *testing.T) {
	m := machine(t, 4, prim.Options{Check: true})
	w := window(t, m, 64)
	team, err := m.NewBarrier("odd", []int{3, 1}, prim.PhaseBarrier)
	if err != nil {
		t.Fatal(err)
	}
	m.Launch("team", func(c *prim.Context) error {
		if c.Rank()%2 == 0 {
			return nil
		}
		peer := 4 - c.Rank()
		tile := c.Tile(0, 4)
		c.Fill(tile, 0)
		c.PipeBarrier(prim.AllPipes)
		c.StoreReduce(tensor.Sum, dtype.F32, w.At(peer, 0), tile)
		c.Barrier(team)
		c.Load(tile, w.At(c.Rank(), 0))
		return nil
	})
	if err := m.Run(); err != nil {
		t.Error(err)
	}
	if _, err := m.NewBarrier("bad", []int{1, 1}, prim.PhaseBarrier); err == nil {
		t.Error("a team with a rank twice is accepted")
	}
	m.Launch("stranger", func(c *prim.Context) error { c.Sync(team); return nil })
	wantText(t, m.Run(), "is for ranks [3 1], and this is rank 0")
}

// wantText looks for parts of an error's text.
func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error has no %q:\n%v", p, err)
		}
	}
}
