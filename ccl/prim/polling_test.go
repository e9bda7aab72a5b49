package prim_test

import (
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
)

// looks are the ways to poll a word of rank 0 until it is 1.
var looks = map[string]func(x *lab, c *prim.Context) bool{
	"compare_swap": func(x *lab, c *prim.Context) bool { return c.CompareSwap(x.word(0, 0), 1, 2) == 1 },
	"test of two": func(x *lab, c *prim.Context) bool {
		return c.Test(x.word(0, 1), prim.EQ, 1) || c.Test(x.word(0, 0), prim.EQ, 1)
	},
}

// Two blocks poll for what nobody brings: both are in the report.
func TestPollingForEverIsADeadlock(t *testing.T) {
	for name, look := range looks {
		x := newLab(t, 1, prim.Options{})
		poll := func(c *prim.Context) error {
			for !look(x, c) {
			}
			return nil
		}
		if _, err := x.Submit(prim.Task{Name: "poll", Kernel: poll, Workers: []int{0}, Blocks: 2}); err != nil {
			t.Fatal(err)
		}
		d := wantDeadlock(t, x.Run(), `kernel "poll" on rank 0 at polling_test.go:`)
		if d != nil && len(d.Blocked) != 2 {
			t.Errorf("%s: %d programs are blocked, want 2:\n%v", name, len(d.Blocked), d)
		}
		if d != nil && name != "compare_swap" {
			wantText(t, d, "a test of the word at rank 0", "to be EQ 1; it is 0")
		}
	}
}

// Whoever still signals ends the polling, however late: here after twice the time of the looks that patience allows. And
// who gives up by itself before is not held up.
func TestPollingEndsWithALateSignal(t *testing.T) {
	for name, look := range looks {
		x := newLab(t, 2, prim.Options{})
		x.Launch("poll", func(c *prim.Context) error {
			if c.Rank() == 0 {
				for !look(x, c) {
				}
				return nil
			}
			for i := range 1 << 18 { // looks too, at two words in turn
				c.Test(x.word(1, i%2), prim.NE, 0)
			}
			c.Signal(x.word(0, 0), prim.Add, 1)
			return nil
		})
		if err := x.Run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Looks at different words are no polling, however many they are.
func TestReadingATableIsNoPolling(t *testing.T) {
	const words = 1<<17 + 10
	x := newLab(t, 1, prim.Options{})
	table := window(t, x.Machine, 4*words)
	x.Launch("read", func(c *prim.Context) error {
		for i := range words {
			if c.Test(prim.I32(table.At(0, 4*i)), prim.NE, 0) {
				t.Errorf("word %d is not 0", i)
			}
		}
		return nil
	})
	if err := x.Run(); err != nil {
		t.Error(err)
	}
}
