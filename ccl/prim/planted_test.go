package prim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// pull is an all-reduce as published examples have it: each rank stages its input, all meet, and each sums what its
// peers have staged. Its barrier is for one use: every rank bumps a word of every other, which waits for it to be 1.
type pull struct {
	*lab
	noBarrier, noDrain, skips, equal bool
	rounds                           int
	value                            int64 // that a wait is for
}

const staged = 1024 // where in the window

func (p *pull) kernel(c *prim.Context) error {
	own, sum, next := c.Rank(), c.Tile(0, n), c.Tile(n, n)
	for range p.rounds {
		c.Load(sum, p.at(own, 0))
		c.SetFlag(prim.Load, prim.Store, 0)
		c.WaitFlag(prim.Load, prim.Store, 0)
		c.Store(p.at(own, staged), sum)
		if !p.noDrain {
			c.PipeBarrier(prim.AllPipes)
		}
		if !p.noBarrier {
			p.meet(c)
		}
		for r := range c.World() {
			if r == own {
				continue
			}
			c.Load(next, p.at(r, staged))
			c.PipeBarrier(prim.AllPipes)
			c.Combine(tensor.Sum, dtype.F32, sum, next, sum)
			c.PipeBarrier(prim.AllPipes)
		}
	}
	return nil
}

func (p *pull) meet(c *prim.Context) {
	own := c.Rank()
	for r := range c.World() {
		if r != own && !(p.skips && own == 2) {
			c.Signal(p.word(r, own), prim.Add, 1)
		}
	}
	for r := range c.World() {
		if r != own {
			cmp := prim.GE
			if p.equal {
				cmp = prim.EQ
			}
			c.Wait(p.word(own, r), cmp, p.value)
		}
	}
}

func (p *pull) run(t *testing.T, ranks int) error {
	t.Helper()
	p.lab = newLab(t, ranks, prim.Options{Check: true})
	p.rounds, p.value = max(1, p.rounds), max(1, p.value)
	p.Launch("allreduce", p.kernel)
	return p.Run()
}

func TestPlanted(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		if err := (&pull{}).run(t, 4); err != nil {
			t.Error(err)
		}
	})
	t.Run("no barrier", func(t *testing.T) {
		f := wantKind(t, (&pull{noBarrier: true}).run(t, 4), prim.UnorderedRead)
		wantReport(t, f, "planted_test.go:", `kernel "allreduce"`, "no signal, barrier or event leads from rank")
	})
	t.Run("notify before the drain", func(t *testing.T) {
		f := wantKind(t, (&pull{noDrain: true}).run(t, 4), prim.SignalOvertakes)
		wantReport(t, f, "signal overtakes its data", "store by", "load by", "a pipe barrier to drain the store pipe is missing before the signal")
	})
	t.Run("window reused without a phase", func(t *testing.T) {
		f := wantKind(t, (&pull{rounds: 2}).run(t, 4), prim.WindowReused)
		wantReport(t, f, "window reused without a phase", "has finished reading", "planted_test.go:")
	})
	t.Run("window reused by another dispatch", func(t *testing.T) {
		p := &pull{}
		if err := p.run(t, 4); err != nil {
			t.Fatal(err)
		}
		p.Launch("again", p.kernel)
		f := wantKind(t, p.Run(), prim.RowReused)
		wantReport(t, f, "signal row reused without a phase", "satisfied by the signals that had satisfied")
	})
	t.Run("one rank skips its notify", func(t *testing.T) {
		d := wantDeadlock(t, (&pull{skips: true}).run(t, 4), "a rank skips its notify", "from rank 2")
		if d != nil && (len(d.Blocked) != 3 || !strings.Contains(d.Blocked[0].On, "GE 1; it is 0")) {
			t.Errorf("blocked: %+v, want ranks 0, 1 and 3 waiting for GE 1 at words that are 0", d.Blocked)
		}
	})
	t.Run("EQ wait overshot", func(t *testing.T) {
		err := (&pull{equal: true, rounds: 2}).run(t, 2)
		wantReport(t, wantKind(t, err, prim.Overshoot), "EQ wait overshot", "wait with GE")
	})
}

// What a program's own pipes get wrong is told in the program's order, whichever had its effect first.
func TestOwnPipesInTheProgramsOrder(t *testing.T) {
	x := newLab(t, 1, prim.Options{Check: true})
	x.Launch("own", func(c *prim.Context) error {
		a := c.Tile(0, n)
		c.Fill(a, 1)
		c.SetFlag(prim.Vector, prim.Store, 0)
		c.WaitFlag(prim.Vector, prim.Store, 0)
		c.Store(x.at(0, 0), a)
		c.Load(c.Tile(n, n), x.at(0, 0)) // earlier than the store, which waits for the vector pipe
		return nil
	})
	f := wantKind(t, x.Run(), prim.UnorderedRead)
	wantReport(t, f, "load by kernel", "missing: the load pipe does not wait for the store pipe: a flag from one to the other")
}

// A read that came too early found unwritten memory: it is one mistake, and one finding, of two ranks alike.
func TestOneMistakeIsOneFinding(t *testing.T) {
	m := machine(t, 2, prim.Options{Check: true})
	slot, words := window(t, m, n), window(t, m, 8)
	m.Launch("push", func(c *prim.Context) error {
		a, peer := c.Tile(0, n), 1-c.Rank()
		c.Fill(a, 1)
		c.PipeBarrier(prim.AllPipes)
		c.Store(slot.At(peer, 0), a)
		c.Signal(prim.I32(words.At(peer, 0)), prim.Add, 1)
		c.Wait(prim.I32(words.At(c.Rank(), 0)), prim.GE, 1)
		c.Load(c.Tile(n, n), slot.At(c.Rank(), 0))
		return nil
	})
	err := m.Run()
	wantKind(t, err, prim.SignalOvertakes)
	if len(m.Findings()) != 1 {
		t.Errorf("%d findings, want 1:\n%v", len(m.Findings()), err)
	}
}

// A counter that two ranks bump, and a wait for it to be 1: whether that ends depends on the times. One order passes,
// and yet the checker names the mistake; in the other the run ends in a deadlock that does.
func TestOvershootIsFoundInEitherOrder(t *testing.T) {
	for _, late := range []bool{false, true} {
		x := newLab(t, 3, prim.Options{Check: true})
		x.Launch("count", func(c *prim.Context) error {
			if c.Rank() > 0 {
				if c.Rank() == 2 && !late {
					c.Quiet() // nothing; and then some time
					for range 10 {
						c.Test(x.word(2, 5), prim.EQ, 1)
					}
				}
				c.Signal(x.word(0, 0), prim.Add, 1)
				return nil
			}
			if late {
				for range 100 {
					c.Test(x.word(0, 5), prim.EQ, 1)
				}
			}
			c.Wait(x.word(0, 0), prim.EQ, 1)
			return nil
		})
		err := x.Run()
		wantKind(t, err, prim.Overshoot)
		if late {
			wantDeadlock(t, err, "EQ wait overshot", "it is 2")
		}
	}
}

func TestSendAndWaitInSeparateDispatches(t *testing.T) {
	x := newLab(t, 2, prim.Options{})
	wait := func(c *prim.Context) error { c.Wait(x.word(c.Rank(), 0), prim.GE, 1); return nil }
	send := func(c *prim.Context) error { c.Signal(x.word(1-c.Rank(), 0), prim.Add, 1); return nil }
	x.Launch("wait", wait)
	x.Launch("send", send)
	d := wantDeadlock(t, x.Run(), "send and wait in separate dispatches", `task "send"`, `"wait" on worker 0`)
	if d != nil && len(d.Queued) != 2 {
		t.Errorf("queued: %+v", d.Queued)
	}
	y := newLab(t, 2, prim.Options{})
	x = y
	x.Launch("send", send)
	x.Launch("wait", wait)
	if err := x.Run(); err != nil {
		t.Errorf("sends first: %v", err)
	}
}

// A collective as two single tasks, with a group between them that holds the second one's worker.
func TestGroupAndSinglesBlockEachOther(t *testing.T) {
	for _, grouped := range []bool{false, true} {
		x := newLab(t, 2, prim.Options{})
		half := func(c *prim.Context) error {
			c.Signal(x.word(1-c.Rank(), 0), prim.Add, 1)
			c.Wait(x.word(c.Rank(), 0), prim.GE, 1)
			return nil
		}
		submit := func(name string, workers ...int) {
			if _, err := x.Submit(prim.Task{Name: name, Kernel: half, Workers: workers}); err != nil {
				t.Fatal(err)
			}
		}
		if grouped {
			submit("halves", 0, 1)
			submit("group", 0, 1)
			if err := x.Run(); err != nil {
				t.Error(err)
			}
			continue
		}
		submit("half 0", 0)
		submit("group", 0, 1)
		submit("half 1", 1)
		wantDeadlock(t, x.Run(), "a group and single tasks block each other", `group "group" holds worker 1`, `"half 0" on worker 0`)
	}
}

func wantReport(t *testing.T, f *prim.Finding, parts ...string) {
	t.Helper()
	if f == nil {
		return
	}
	for _, p := range parts {
		if !strings.Contains(f.String(), p) {
			t.Errorf("the report has no %q:\n%v", p, f)
		}
	}
}

func wantDeadlock(t *testing.T, err error, parts ...string) *prim.DeadlockError {
	t.Helper()
	var d *prim.DeadlockError
	if !errors.As(err, &d) {
		t.Errorf("%v, want a deadlock", err)
		return nil
	}
	wantText(t, d, parts...)
	return d
}

// Waits of a ring, whose members signal their neighbours only, are no sign of a rank that skips its notify; and a kernel that
// has ended before and has signalled nobody is not what sends.
func TestNoRankOfARingSkipsItsNotify(t *testing.T) {
	x := newLab(t, 4, prim.Options{})
	b, err := x.NewBarrier("all", []int{0, 1, 2, 3}, prim.PhaseBarrier)
	if err != nil {
		t.Fatal(err)
	}
	meet := func(c *prim.Context) error { c.Barrier(b); return nil }
	x.Launch("meet", meet)
	x.Launch("ring", func(c *prim.Context) error {
		c.Signal(x.word((c.Rank()+1)%4, 0), prim.Set, 1)
		c.Wait(x.word(c.Rank(), 0), prim.EQ, 2)
		return nil
	})
	x.Launch("meet", meet)
	d := wantDeadlock(t, x.Run(), "to be EQ 2; it is 1 since the signal of rank 3 at planted_test.go:")
	if d != nil && !strings.HasPrefix(d.Cause, "nobody is left who changes a word: that at +0 of window") {
		t.Errorf("the cause is said to be %q, want that nobody changes the word any more", d.Cause)
	}
}

// A pipe that waits for a flag which nobody sets is named before those that wait for it.
func TestFlagThatNobodySets(t *testing.T) {
	x := newLab(t, 1, prim.Options{})
	x.Launch("flags", func(c *prim.Context) error {
		c.WaitFlag(prim.Vector, prim.Store, 3)
		c.Store(x.at(0, 0), c.Tile(0, n))
		c.SetFlag(prim.Store, prim.Load, 0)
		c.WaitFlag(prim.Store, prim.Load, 0)
		c.PipeBarrier(prim.AllPipes)
		return nil
	})
	wantDeadlock(t, x.Run(), "the store pipe waits for flag 3 from the vector pipe at planted_test.go:281; the load pipe waits for flag 0 from the store pipe at planted_test.go:284")
}

// Bytes that a put is still to read are written, which a quiet would order.
func TestSourceOfAPutIsWritten(t *testing.T) {
	x := newLab(t, 2, prim.Options{Check: true})
	x.Launch("put", func(c *prim.Context) error {
		c.PutNBI(x.at(1-c.Rank(), 0), x.at(c.Rank(), staged), n)
		return nil
	})
	x.Launch("fill", func(c *prim.Context) error {
		c.Fill(c.Tile(0, n), 1)
		c.PipeBarrier(prim.AllPipes)
		c.Store(x.at(c.Rank(), staged), c.Tile(0, n))
		return nil
	})
	f := wantKind(t, x.Run(), prim.UnorderedRead)
	wantReport(t, f, "put_nbi by", "store by", "may still read the bytes: a quiet is missing after it")
}

// TestASignalOvertakesACopy lets an engine copy to another rank, and tells of that after a fence, which does not order it,
// and after the copy's event.
func TestASignalOvertakesACopy(t *testing.T) {
	for _, waits := range []bool{true, false} {
		x := newLab(t, 2, prim.Options{Check: true})
		x.Launch("copies", func(c *prim.Context) error {
			if c.Rank() == 0 {
				e := c.Copy(x.at(1, 0), x.at(0, 0), 64)
				if waits {
					c.WaitEvent(e)
				}
				c.Fence()
				c.Signal(x.word(1, 0), prim.Add, 1)
				return nil
			}
			c.Wait(x.word(1, 0), prim.GE, 1)
			c.Copy(x.at(1, 256), x.at(1, 0), 64)
			c.Quiet()
			return nil
		})
		if err := x.Run(); waits && err != nil {
			t.Error(err)
		} else if !waits {
			wantReport(t, wantKind(t, err, prim.SignalOvertakes), "or a wait for its event; a fence does not order it")
		}
	}
}

// Where two programs of one grid reuse memory it is one of them that has to tell the other one.
func TestReuseByProgramsOfAGrid(t *testing.T) {
	x := newLab(t, 1, prim.Options{Check: true})
	submit(t, x.Machine, prim.Task{Name: "refills", Workers: []int{0}, Blocks: 2, Kernel: func(c *prim.Context) error {
		tile := c.Tile(0, n)
		if c.Block() == 1 {
			c.Wait(x.word(0, 0), prim.GE, 1)
			c.Load(tile, x.at(0, 0))
			c.PipeBarrier(prim.AllPipes)
			return nil
		}
		for range 2 {
			c.Fill(tile, 1)
			c.PipeBarrier(prim.AllPipes)
			c.Store(x.at(0, 0), tile)
			c.PipeBarrier(prim.AllPipes)
			c.Signal(x.word(0, 0), prim.Add, 1)
			c.Pass(1 << 30)
		}
		return nil
	}})
	f := wantKind(t, x.Run(), prim.WindowReused)
	wantReport(t, f, "nothing tells program 0 of rank 0 that program 1 of rank 0 has finished reading")
}
