package prim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
)

// TestCauses names the mistake in programs that hang.
func TestCauses(t *testing.T) {
	for _, c := range []struct {
		name  string
		cause string
		task  prim.Task
		run   func(x *lab, c *prim.Context)
	}{
		{"a circle", "nobody has signalled yet in window \"words\", and ranks 0, 1, 2 wait there", prim.Task{}, func(x *lab, c *prim.Context) {
			c.Wait(x.word(c.Rank(), 0), prim.GE, 1)
			c.Signal(x.word((c.Rank()+1)%3, 0), prim.Add, 1)
		}},
		{"a ring with a silent rank", "rank 2 has heard nothing in window \"words\" from rank 1", prim.Task{}, func(x *lab, c *prim.Context) {
			if c.Rank() != 1 {
				c.Signal(x.word((c.Rank()+1)%3, 0), prim.Add, 1)
			}
			c.Wait(x.word(c.Rank(), 0), prim.GE, 1)
		}},
		{"another word", "to which no signal has come, and the signal of rank 2 at causes_test.go", prim.Task{}, func(x *lab, c *prim.Context) {
			c.Signal(x.word((c.Rank()+1)%3, 0), prim.Add, 1)
			c.Wait(x.word(c.Rank(), 1), prim.GE, 1)
		}},
		{"another rank", "of rank 1 at causes_test.go:34 has come to that of rank 0, which does not wait for it", prim.Task{}, func(x *lab, c *prim.Context) {
			c.Signal(x.word([]int{1, 0, 0}[c.Rank()], c.Rank()), prim.Add, 1)
			c.Wait(x.word(c.Rank(), (c.Rank()+2)%3), prim.GE, 1)
		}},
		{"one word for all", "has come to that at +0, as have those of other ranks", prim.Task{}, func(x *lab, c *prim.Context) {
			for r := range 3 {
				c.Signal(x.word(r, 0), prim.Add, 1)
			}
			for word := range 3 {
				c.Wait(x.word(c.Rank(), word), prim.GE, 1)
			}
		}},
		{"a barrier of which one has ended", "for rank 1, which has come there once less and has ended", prim.Task{}, func(x *lab, c *prim.Context) {
			c.Sync(x.barrier)
			if c.Rank() != 1 {
				c.Sync(x.barrier)
			}
		}},
		{"a rank that waits for something else", "signals and waits are at different words", prim.Task{}, func(x *lab, c *prim.Context) {
			if c.Rank() == 1 {
				c.Wait(x.word(1, 1), prim.GE, 1)
			}
			c.Signal(x.word(1, 0), prim.Add, 1)
			c.Sync(x.barrier)
		}},
		{"a grid of which one has ended", "but 1 of the 3 have ended", prim.Task{Blocks: 3}, func(x *lab, c *prim.Context) {
			if c.Block() != 1 {
				c.FetchAdd(x.word(c.Rank(), 0), 1)
				c.Wait(x.word(c.Rank(), 0), prim.GE, 3)
			}
		}},
		{"signals to two other ranks", "of rank 0 at causes_test.go:67 has come to those of ranks 1, 2, which do not wait for it", prim.Task{}, func(x *lab, c *prim.Context) {
			if c.Rank() == 0 {
				for r := range 2 {
					c.Signal(x.word(r+1, 0), prim.Add, 1)
				}
				c.Wait(x.word(0, 0), prim.GE, 1)
			}
		}},
		{"a word that nobody changes", "nothing has come to a word: that at +4 of window \"words\" on rank 0, for which rank 0 waits", prim.Task{}, func(x *lab, c *prim.Context) {
			c.Signal(x.word((c.Rank()+1)%3, 0), prim.Add, 1)
			for word := range 2 {
				c.Wait(x.word(c.Rank(), word), prim.GE, 1)
			}
		}},
		{"too few signals", "nobody is left who changes a word: that at +0 of window \"words\" on rank 0, for which rank 0 waits", prim.Task{}, func(x *lab, c *prim.Context) {
			c.Signal(x.word((c.Rank()+1)%3, 0), prim.Add, 1)
			c.Wait(x.word(c.Rank(), 0), prim.GE, 2)
		}},
		{"a lock that is kept", "is as the swap of rank 0 at causes_test.go:90 has left it, and that one's kernel has ended", prim.Task{}, func(x *lab, c *prim.Context) {
			if c.Rank() > 0 {
				c.Pass(1 << 20)
				c.WaitAnywhere(x.word(0, 0), prim.LT, 1)
				return
			}
			lock := []prim.Run{{Addr: x.word(0, 0).Addr, Bytes: 4}}
			x.words.Storage(0).Bytes()[0] = 1
			c.Touch("swap", lock, prim.Atomic, false)
			c.Touch("swap", lock, prim.Atomic, false) // takes nothing
		}},
		{"a word that is put and cleared", "waits at causes_test.go:101, is as the clear of rank 1", prim.Task{Threads: 32}, func(x *lab, c *prim.Context) {
			word := []prim.Run{{Addr: x.word(1, 0).Addr, Bytes: 4}}
			switch c.Rank() {
			case 0:
				c.Scatter("store", word, []byte{7, 0, 0, 0}, false)
			case 1:
				c.Wait(x.word(1, 0), prim.GE, 7)
				c.Write("clear", word[0].Addr, make([]byte, 4), false)
				c.Wait(x.word(1, 0), prim.GE, 7)
			}
		}},
		{"threads in roles", "on rank 0 some threads of kernel \"hangs\" wait", prim.Task{Threads: 64}, func(x *lab, c *prim.Context) {
			c.Roles(true)
			c.Wait(x.word(c.Rank(), 0), prim.GE, 1)
			c.Roles(false)
			c.Signal(x.word((c.Rank()+1)%3, 0), prim.Add, 1)
		}},
		{"threads in roles, over", "nobody has signalled yet", prim.Task{Threads: 64}, func(x *lab, c *prim.Context) {
			c.Roles(true)
			c.Roles(false)
			c.Wait(x.word(c.Rank(), 0), prim.GE, 1)
			c.Signal(x.word((c.Rank()+1)%3, 0), prim.Add, 1)
		}},
		{"a grid that does not fit", "so that the grid has at most", prim.Task{Blocks: 3000, Threads: 1024}, func(x *lab, c *prim.Context) {
			c.FetchAdd(x.word(c.Rank(), 0), 1)
			c.Wait(x.word(c.Rank(), 0), prim.GE, 3000)
		}},
		{"a circle, words cleared before", "nobody has signalled yet in window \"words\", and ranks 0, 1, 2 wait there", prim.Task{Threads: 32}, func(x *lab, c *prim.Context) {
			c.Write("clear", x.word(c.Rank(), 0).Addr, make([]byte, 16), false)
			c.Wait(x.word(c.Rank(), 0), prim.GE, 1)
			c.Signal(x.word((c.Rank()+1)%3, 0), prim.Add, 1)
		}},
		{"a signal with the value that is there", "a signal says nothing new: rank 0 waits at", prim.Task{}, func(x *lab, c *prim.Context) {
			c.Signal(x.word((c.Rank()+1)%3, 0), prim.Set, int64((c.Rank()+1)%3))
			if c.Rank() == 0 {
				c.Wait(x.word(0, 0), prim.EQ, 3)
			}
		}},
		{"less of a word that has grown", "a wait for less of a word that has grown", prim.Task{}, func(x *lab, c *prim.Context) {
			c.Signal(x.word((c.Rank()+1)%3, 0), prim.Add, 3)
			c.Wait(x.word(c.Rank(), 0), prim.GE, 3)
			c.Wait(x.word(c.Rank(), 0), prim.LE, 2)
		}},
		{"a lock that is looked at in a loop", "is as the compare_swap of rank 0 at", prim.Task{}, func(x *lab, c *prim.Context) {
			if c.Rank() > 0 {
				c.Pass(1 << 20)
			}
			for c.CompareSwap(x.word(0, 0), 0, 1) != 0 {
			}
		}},
		{"locks in two orders", "programs wait for each other in a circle: rank 0 waits", prim.Task{}, func(x *lab, c *prim.Context) {
			if c.Rank() == 2 {
				return
			}
			for _, lock := range []int{c.Rank(), 1 - c.Rank()} {
				for c.CompareSwap(x.word(2, lock), 0, 1) != 0 {
				}
				c.Pass(1 << 20)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newLab(t, 3, prim.Options{})
			for r := range 3 {
				task := c.task
				task.Name, task.Workers, task.Kernel = "hangs", []int{r}, func(p *prim.Context) error { c.run(x, p); return nil }
				submit(t, x.Machine, task)
			}
			var stuck *prim.DeadlockError
			if err := x.Run(); !errors.As(err, &stuck) || !strings.Contains(stuck.Cause, c.cause) {
				t.Errorf("%v, want %q", err, c.cause)
			}
		})
	}
}

// TestGridsOfTwoSizes names the rank whose grid has fewer programs, whether these wait or have ended.
func TestGridsOfTwoSizes(t *testing.T) {
	for _, ends := range []bool{true, false} {
		x := newLab(t, 2, prim.Options{})
		for r := range 2 {
			submit(t, x.Machine, prim.Task{Name: "meets", Workers: []int{r}, Blocks: 3 - r, Kernel: func(c *prim.Context) error {
				word := 0
				if ends {
					word = c.Block()
				}
				for peer := range 2 {
					c.Signal(x.word(peer, word), prim.Add, 1)
				}
				if ends {
					c.Wait(x.word(c.Rank(), word), prim.GE, 2)
				} else {
					c.Wait(x.word(c.Rank(), word), prim.GE, 6)
				}
				return nil
			}})
		}
		var stuck *prim.DeadlockError
		want := `the grids of a kernel differ: of "meets" rank 0 has launched 3 programs and rank 1 2`
		if err := x.Run(); !errors.As(err, &stuck) || !strings.Contains(stuck.Cause, want) {
			t.Errorf("ends %v: %v", ends, err)
		}
	}
}

// TestBarriersInTwoOrders names the two barriers in which ranks wait for each other.
func TestBarriersInTwoOrders(t *testing.T) {
	x := newLab(t, 2, prim.Options{})
	other, err := x.NewBarrier("of some", all(2), prim.PhaseBarrier)
	if err != nil {
		t.Fatal(err)
	}
	err = runOn(t, x.Machine, all(2), func(c *prim.Context) error {
		first, second := x.barrier, other
		if c.Rank() == 1 {
			first, second = other, x.barrier
		}
		c.Sync(first)
		c.Sync(second)
		return nil
	})
	var stuck *prim.DeadlockError
	if !errors.As(err, &stuck) || !strings.Contains(stuck.Cause, "in the barrier of some: all ranks have to come to their barriers in one order") {
		t.Error(err)
	}
}

// TestLaunchesInTwoOrders names the two kernels that ranks run in different orders.
func TestLaunchesInTwoOrders(t *testing.T) {
	x := newLab(t, 2, prim.Options{})
	kernel := func(i int) prim.Kernel {
		return func(c *prim.Context) error {
			c.Signal(x.word(1-c.Rank(), i), prim.Add, 1)
			c.Wait(x.word(c.Rank(), i), prim.GE, 1)
			return nil
		}
	}
	for r := range 2 {
		for _, i := range []int{r, 1 - r} {
			name := []string{"first", "second"}[i]
			submit(t, x.Machine, prim.Task{Name: name, Workers: []int{r}, Kernel: kernel(i)})
		}
	}
	var stuck *prim.DeadlockError
	if err := x.Run(); !errors.As(err, &stuck) || !strings.Contains(stuck.Cause, "ranks run kernels in different orders: rank 0 is in \"first\" at causes_test.go") {
		t.Error(err)
	}
}

// TestWordsThatAreTooShort refuses values that a word of 32 bits cannot have.
func TestWordsThatAreTooShort(t *testing.T) {
	for _, waits := range []bool{false, true} {
		x := newLab(t, 1, prim.Options{})
		err := runOn(t, x.Machine, all(1), func(c *prim.Context) error {
			c.Signal(x.word(0, 0), prim.Set, 1<<32-1)
			if waits {
				c.Wait(x.word(0, 0), prim.EQ, 1<<40)
			}
			c.Signal(x.word(0, 0), prim.Set, 1<<40)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "1099511627776 does not fit into the word of 32 bits") {
			t.Error(err)
		}
	}
}

// TestWhatIsQueuedBehindIsNotBlamed hangs in a kernel that sends what it waits for, one signal too few or to another rank,
// with another kernel behind it.
func TestWhatIsQueuedBehindIsNotBlamed(t *testing.T) {
	for cause, run := range map[string]func(x *lab, c *prim.Context){
		"": func(x *lab, c *prim.Context) {
			c.Signal(x.word((c.Rank()+1)%3, 0), prim.Add, 1)
			c.Wait(x.word(c.Rank(), 0), prim.GE, 2)
		},
		"a signal has gone to another rank": func(x *lab, c *prim.Context) {
			c.Signal(x.word((c.Rank()+1)%3, c.Rank()), prim.Add, 1)
			c.Wait(x.word(c.Rank(), (c.Rank()+1)%3), prim.GE, 1)
		},
	} {
		x := newLab(t, 3, prim.Options{})
		x.Launch("steals", func(c *prim.Context) error { run(x, c); return nil })
		x.Launch("reads", func(*prim.Context) error { return nil })
		var stuck *prim.DeadlockError
		if err := x.Run(); !errors.As(err, &stuck) || !strings.HasPrefix(stuck.Cause, cause) || strings.Contains(stuck.Cause, "reads") {
			t.Errorf("%q: %v", cause, err)
		}
	}
}

// TestWaitsTwiceForOneSignal puts without a fence and signals, and waits for the signal twice: that the second wait brings nothing
// new is not what is wrong, on the putting rank neither.
func TestWaitsTwiceForOneSignal(t *testing.T) {
	for to := range 2 {
		x := newLab(t, 2, prim.Options{Check: true, Fences: true})
		err := runOn(t, x.Machine, all(2), func(c *prim.Context) error {
			if c.Rank() == 0 {
				c.PutNBI(x.at(to, 64), x.at(0, 0), 64)
				c.Signal(x.word(to, 0), prim.Set, 1)
			}
			if c.Rank() == to {
				for range 2 {
					c.Wait(x.word(to, 0), prim.EQ, 1)
				}
				c.Load(c.Tile(0, 64), x.at(to, 64))
			}
			return nil
		})
		if err == nil || strings.Contains(err.Error(), "needs a phase") || !strings.Contains(err.Error(), "landed") {
			t.Errorf("to rank %d: %v", to, err)
		}
	}
}
