package order_test

import (
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/order"
)

// TestClocksAreTheirEntries compares clocks with maps of their entries, after random joins and sets.
func TestClocksAreTheirEntries(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		clocks := make([]order.Clock, 4)
		entries := make([]map[int32]uint32, 4)
		for i := range entries {
			entries[i] = map[int32]uint32{}
		}
		for range 60 {
			i, lane := rng.IntN(4), rng.Int32N(50)
			k := (i + 1 + rng.IntN(3)) % 4
			switch rng.IntN(3) {
			case 0:
				m := order.Moment{Lane: lane, Tick: entries[i][lane] + 1}
				clocks[i].Set(m)
				entries[i][lane] = m.Tick
			case 1:
				clocks[i].Join(clocks[k])
				for l, v := range entries[k] {
					entries[i][l] = max(entries[i][l], v)
				}
			case 2:
				clocks[i] = clocks[k].Clone()
				entries[i] = map[int32]uint32{}
				for l, v := range entries[k] {
					entries[i][l] = v
				}
			}
		}
		for i := range clocks {
			for lane := range int32(64) {
				if got, want := clocks[i].At(lane), entries[i][lane]; got != want {
					t.Fatalf("seed %d: lane %d of clock %d is at %d, want %d", seed, lane, i, got, want)
				}
			}
			for k := range clocks {
				if got, want := clocks[i].Covers(clocks[k]), covers(entries[i], entries[k]); got != want {
					t.Fatalf("seed %d: clock %d covers %d: %v, want %v", seed, i, k, got, want)
				}
			}
		}
	}
}

func covers(a, b map[int32]uint32) bool {
	for lane, v := range b {
		if a[lane] < v {
			return false
		}
	}
	return true
}

// TestPointsLearnLater: what a point of an operation with others gets to know, those know that came after it.
func TestPointsLearnLater(t *testing.T) {
	var lanes order.Lanes
	mine, theirs := lanes.NewLine(), lanes.NewLine()
	late := theirs.Advance()
	first := mine.Advance()
	end := order.NewPoint(nil, mine.Here())
	mine.Learn(end)
	mine.Learn(end)
	mine.Advance()
	here, called := mine.Here(), 0
	here.When(func() { called++ })
	if !here.Clock().Knows(first) || here.Clock().Knows(late) || here.Complete() || called > 0 {
		t.Fatal("what is not over is known")
	}
	end.Add(theirs.Here())
	end.Seal()
	if !here.Clock().Knows(late) || !here.Complete() || called != 1 || !mine.Here().Clock().Knows(late) {
		t.Error("what is over is not known")
	}
	here.When(func() { called++ })
	if called != 2 {
		t.Error("When does not call at once")
	}
}

// TestLongChainsAreCompletedOnce: thousands of operations that each wait for two others end with the first.
func TestLongChainsAreCompletedOnce(t *testing.T) {
	var lanes order.Lanes
	m := order.Moment{Lane: lanes.New(), Tick: 1}
	first := order.NewPoint(nil)
	a, b := first, first
	for range 5000 {
		a, b = order.NewPoint(nil, a, b).Seal(), a
	}
	first.Tell(order.Clock{})
	var c order.Clock
	c.Set(m)
	first.Tell(c)
	first.Seal()
	if !a.Complete() || !a.Clock().Knows(m) {
		t.Error("the end of the chain does not know its begin")
	}
}
