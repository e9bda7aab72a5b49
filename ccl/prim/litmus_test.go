package prim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// lab is a machine for a small program: a window whose bytes are 1 on all ranks, and one of zeroed words.
type lab struct {
	*prim.Machine
	data, words *prim.Window
	barrier     *prim.Barrier
}

func newLab(t *testing.T, ranks int, o prim.Options) *lab {
	m := machine(t, ranks, o)
	x := &lab{Machine: m, data: window(t, m, 4096)}
	ones := make([]byte, 4096)
	for i := range ones {
		ones[i] = 1
	}
	for r := range ranks {
		write(t, m, x.data.At(r, 0), ones)
	}
	var err error
	if x.words, err = m.Allocate("words", all(ranks), 512); err != nil {
		t.Fatal(err)
	}
	if x.barrier, err = m.NewBarrier("all", all(ranks), prim.PhaseBarrier); err != nil {
		t.Fatal(err)
	}
	return x
}

// at is data of a rank, and word a word of it.
func (x *lab) at(rank, offset int) prim.Addr { return x.data.At(rank, offset) }

func (x *lab) word(rank, i int) prim.Word { return prim.I32(x.words.At(rank, 4*i)) }

// litmus is a program that is wrong without one rule and right with it.
type litmus struct {
	name  string
	ranks int
	o     prim.Options
	kind  prim.Kind // what is found without the rule
	run   func(x *lab, c *prim.Context, rule bool)
}

const n = 64 // bytes that the programs move

var reorder = prim.Options{Reorder: true}

var litmusTests = []litmus{
	{"flag from load to vector", 1, prim.Options{}, prim.UnorderedRead, func(x *lab, c *prim.Context, rule bool) {
		a, b := c.Tile(0, n), c.Tile(n, n)
		c.Load(a, x.at(0, 0))
		if rule {
			c.SetFlag(prim.Load, prim.Vector, 3)
			c.WaitFlag(prim.Load, prim.Vector, 3)
		}
		c.Combine(tensor.Sum, dtype.F32, b, a, a)
	}},
	{"flag from vector to load", 1, prim.Options{}, prim.UnorderedRead, func(x *lab, c *prim.Context, rule bool) {
		a, b := c.Tile(0, n), c.Tile(n, n)
		c.Load(a, x.at(0, 0))
		c.PipeBarrier(prim.AllPipes)
		c.Combine(tensor.Sum, dtype.F32, b, a, a)
		if rule {
			c.SetFlag(prim.Vector, prim.Load, 0)
			c.WaitFlag(prim.Vector, prim.Load, 0)
		}
		c.Load(a, x.at(0, n))
	}},
	{"flag from matrix to store", 1, prim.Options{}, prim.UnorderedRead, func(x *lab, c *prim.Context, rule bool) {
		a, b := c.Tile(0, n), c.Tile(n, n)
		c.Load(a, x.at(0, 0))
		c.PipeBarrier(prim.AllPipes)
		c.Dot(b, a, a, 4, 4, 4, false)
		if rule {
			c.SetFlag(prim.Matrix, prim.Store, 0)
			c.WaitFlag(prim.Matrix, prim.Store, 0)
		}
		c.Store(x.at(0, 0), b)
	}},
	{"flag to the scalar pipe", 1, prim.Options{}, prim.UnorderedRead, func(x *lab, c *prim.Context, rule bool) {
		a := c.Tile(0, n)
		c.Load(a, x.at(0, 0))
		if rule {
			c.SetFlag(prim.Load, prim.Scalar, 0)
			c.WaitFlag(prim.Load, prim.Scalar, 0)
		}
		c.Put(x.at(0, n), a.Addr, n)
	}},
	{"drain of a local store before the signal", 2, prim.Options{}, prim.SignalOvertakes, func(x *lab, c *prim.Context, rule bool) {
		a := c.Tile(0, n)
		if c.Rank() == 0 {
			c.Fill(a, 2)
			c.PipeBarrier(prim.AllPipes)
			c.Store(x.at(0, 0), a)
			if rule {
				c.PipeBarrier(prim.AllPipes)
			}
			c.Signal(x.word(1, 0), prim.Add, 1)
			return
		}
		c.Wait(x.word(1, 0), prim.GE, 1)
		c.Load(a, x.at(0, 0))
	}},
	{"drain of a remote store before the signal", 2, prim.Options{}, prim.SignalOvertakes, func(x *lab, c *prim.Context, rule bool) {
		a := c.Tile(0, n)
		if c.Rank() == 0 {
			c.Fill(a, 2)
			c.PipeBarrier(prim.AllPipes)
			c.Store(x.at(1, 0), a)
			if rule {
				c.PipeBarrier(prim.AllPipes)
			}
			c.Signal(x.word(1, 0), prim.Add, 1)
			return
		}
		c.Wait(x.word(1, 0), prim.GE, 1)
		c.Load(a, x.at(1, 0))
	}},
	{"fence between store and signal", 2, reorder, prim.SignalOvertakes, func(x *lab, c *prim.Context, rule bool) {
		a := c.Tile(0, n)
		if c.Rank() == 0 {
			c.Fill(a, 2)
			c.PipeBarrier(prim.AllPipes)
			c.Store(x.at(1, 0), a)
			c.PipeBarrier(prim.AllPipes)
			if rule {
				c.Fence()
			}
			c.Signal(x.word(1, 0), prim.Add, 1)
			return
		}
		c.Wait(x.word(1, 0), prim.GE, 1)
		c.Load(a, x.at(1, 0))
	}},
	{"fence between put and signal", 2, reorder, prim.SignalOvertakes, putThenSignal(func(x *lab, c *prim.Context, rule bool) {
		c.Put(x.at(1, 0), x.at(0, 0), n)
		if rule {
			c.Fence()
		}
		c.Signal(x.word(1, 0), prim.Add, 1)
	})},
	{"put with signal", 2, reorder, prim.SignalOvertakes, putThenSignal(func(x *lab, c *prim.Context, rule bool) {
		if rule {
			c.PutSignal(x.at(1, 0), x.at(0, 0), n, x.word(1, 0), prim.Add, 1)
			return
		}
		c.Put(x.at(1, 0), x.at(0, 0), n)
		c.Signal(x.word(1, 0), prim.Add, 1)
	})},
	{"quiet between put and signal", 2, reorder, prim.SignalOvertakes, putThenSignal(func(x *lab, c *prim.Context, rule bool) {
		c.PutNBI(x.at(1, 0), x.at(0, 0), n)
		if rule {
			c.Quiet()
		}
		c.Signal(x.word(1, 0), prim.Set, 1)
	})},
	{"quiet for a third rank", 3, prim.Options{}, prim.SignalOvertakes, func(x *lab, c *prim.Context, rule bool) {
		switch c.Rank() {
		case 0:
			c.Put(x.at(1, 0), x.at(0, 0), n)
			if rule {
				c.Quiet()
			}
			c.Signal(x.word(2, 0), prim.Add, 1)
		case 2:
			c.Wait(x.word(2, 0), prim.GE, 1)
			c.Get(x.at(2, 0), x.at(1, 0), n)
		}
	}},
	{"quiet before the source changes", 2, prim.Options{}, prim.UnorderedRead, func(x *lab, c *prim.Context, rule bool) {
		if c.Rank() == 0 {
			a := c.Tile(0, n)
			c.Fill(a, 2)
			c.PipeBarrier(prim.AllPipes)
			c.PutNBI(x.at(1, 0), x.at(0, 0), n)
			if rule {
				c.Quiet()
			}
			c.Store(x.at(0, 0), a)
		}
	}},
	{"quiet after a get", 2, prim.Options{}, prim.UnorderedRead, func(x *lab, c *prim.Context, rule bool) {
		if c.Rank() == 0 {
			c.GetNBI(x.at(0, 0), x.at(1, 0), n)
			if rule {
				c.Quiet()
			}
			c.Load(c.Tile(0, n), x.at(0, 0))
		}
	}},
	{"the event of a copy", 1, prim.Options{}, prim.UnorderedRead, func(x *lab, c *prim.Context, rule bool) {
		e := c.Copy(x.at(0, 0), x.at(0, n), n)
		if rule {
			c.WaitEvent(e)
		}
		c.Load(c.Tile(0, n), x.at(0, 0))
	}},
	{"a wait", 2, prim.Options{}, prim.UnorderedRead, func(x *lab, c *prim.Context, rule bool) {
		if c.Rank() == 0 {
			c.Put(x.at(1, 0), x.at(0, 0), n)
			c.Signal(x.word(1, 0), prim.Add, 1)
			return
		}
		if rule {
			c.Wait(x.word(1, 0), prim.NE, 0)
		}
		c.Load(c.Tile(0, n), x.at(1, 0))
	}},
	{"a test that holds", 2, prim.Options{}, prim.UnorderedRead, func(x *lab, c *prim.Context, rule bool) {
		if c.Rank() == 0 {
			c.Put(x.at(1, 0), x.at(0, 0), n)
			c.Signal(x.word(1, 0), prim.Set, 7)
			return
		}
		for !c.Test(x.word(1, 0), prim.EQ, 7) && rule {
		}
		c.Load(c.Tile(0, n), x.at(1, 0))
	}},
	{"all signals of a counter", 3, prim.Options{}, prim.UnorderedRead, func(x *lab, c *prim.Context, rule bool) {
		if c.Rank() > 0 {
			c.Put(x.at(0, n*c.Rank()), x.at(c.Rank(), 0), n)
			c.Signal(x.word(0, 0), prim.Add, 1)
			return
		}
		wanted := int64(1)
		if rule {
			wanted = 2
		}
		c.Wait(x.word(0, 0), prim.GE, wanted)
		c.Load(c.Tile(0, 3*n), x.at(0, 0))
	}},
	{"barrier instead of sync", 3, prim.Options{}, prim.SignalOvertakes, func(x *lab, c *prim.Context, rule bool) {
		if c.Rank() == 0 {
			c.Put(x.at(1, 0), x.at(0, 0), n)
		}
		if rule {
			c.Barrier(x.barrier)
		} else {
			c.Sync(x.barrier)
		}
		if c.Rank() == 2 {
			c.Get(x.at(2, 0), x.at(1, 0), n)
		}
	}},
	{"atomic stores", 3, prim.Options{}, prim.UnorderedWrites, func(x *lab, c *prim.Context, rule bool) {
		if c.Rank() == 0 {
			return
		}
		if rule {
			c.PutReduce(tensor.Sum, dtype.I32, x.at(0, 0), x.at(c.Rank(), 0), n)
		} else {
			c.Put(x.at(0, 0), x.at(c.Rank(), 0), n)
		}
	}},
	{"a lock", 3, prim.Options{}, prim.UnorderedWrites, func(x *lab, c *prim.Context, rule bool) {
		lock := x.word(0, 0)
		for rule && c.CompareSwap(lock, 0, 1) != 0 {
		}
		c.Put(x.at(0, n), x.at(c.Rank(), 0), n)
		c.Quiet()
		c.Exchange(lock, 0)
	}},
}

func putThenSignal(send func(x *lab, c *prim.Context, rule bool)) func(x *lab, c *prim.Context, rule bool) {
	return func(x *lab, c *prim.Context, rule bool) {
		if c.Rank() == 0 {
			send(x, c, rule)
			return
		}
		c.Wait(x.word(1, 0), prim.GE, 1)
		c.Load(c.Tile(0, n), x.at(1, 0))
	}
}

func TestLitmus(t *testing.T) {
	for _, l := range litmusTests {
		t.Run(l.name, func(t *testing.T) {
			for _, rule := range []bool{false, true} {
				for seed := range uint64(4) {
					o := l.o
					o.Check, o.Seed = true, seed
					x := newLab(t, l.ranks, o)
					x.Launch(l.name, func(c *prim.Context) error { l.run(x, c, rule); return nil })
					err := x.Run()
					if rule && err != nil {
						t.Fatalf("with the rule, seed %d: %v", seed, err)
					}
					if !rule {
						wantKind(t, err, l.kind)
					}
				}
			}
		})
	}
}

// wantKind looks for a finding.
func wantKind(t *testing.T, err error, kind prim.Kind) *prim.Finding {
	t.Helper()
	var found *prim.FindingsError
	if errors.As(err, &found) {
		for i := range found.Findings {
			if found.Findings[i].Kind == kind {
				return &found.Findings[i]
			}
		}
	}
	t.Errorf("found %v, want %q", err, kind)
	return nil
}

// What the rules are for: without them the data is wrong in some order, and with them in none.
func TestRulesDecideTheData(t *testing.T) {
	for _, c := range []struct {
		name string
		o    prim.Options
		send func(x *lab, c *prim.Context, rule bool)
	}{
		{"fence", reorder, func(x *lab, c *prim.Context, rule bool) {
			c.Put(x.at(1, 0), x.at(0, n), n)
			if rule {
				c.Fence()
			}
			c.Signal(x.word(1, 0), prim.Add, 1)
		}},
		{"drain", prim.Options{}, func(x *lab, c *prim.Context, rule bool) {
			a := c.Tile(0, n)
			c.Load(a, x.at(0, n))
			c.SetFlag(prim.Load, prim.Store, 0)
			c.WaitFlag(prim.Load, prim.Store, 0)
			c.Store(x.at(1, 0), a)
			if rule {
				c.PipeBarrier(prim.AllPipes)
			}
			c.Signal(x.word(1, 0), prim.Add, 1)
		}},
	} {
		for _, rule := range []bool{false, true} {
			_, err := prim.Explore(sips(t, 2), 2, c.o, 1<<16, func(m *prim.Machine) (func() error, error) {
				x := &lab{Machine: m}
				x.data, _ = m.Allocate("data", all(2), 512)
				x.words, _ = m.Allocate("words", all(2), 512)
				write(t, m, x.at(0, n), []byte{9})
				m.Launch(c.name, func(p *prim.Context) error {
					if p.Rank() == 0 {
						c.send(x, p, rule)
						return nil
					}
					p.Wait(x.word(1, 0), prim.GE, 1)
					p.Put(x.at(1, n), x.at(1, 0), n)
					return nil
				})
				return func() error {
					if got := read(t, m, x.at(1, n), 1)[0]; got != 9 {
						return fmt.Errorf("the data is %d", got)
					}
					return nil
				}, nil
			})
			if rule && err != nil {
				t.Errorf("%s, with the rule: %v", c.name, err)
			}
			if !rule {
				wantText(t, err, "the data is 0", "in this order")
			}
		}
	}
}

// TestAtomicDataIsNoSignal reduces into data that nobody waits for: reports of races there are not those of words.
func TestAtomicDataIsNoSignal(t *testing.T) {
	for _, clears := range []bool{false, true} {
		x := newLab(t, 2, prim.Options{Check: true})
		err := runOn(t, x.Machine, all(2), func(c *prim.Context) error {
			switch {
			case c.Rank() == 0:
				c.PutReduce(tensor.Sum, dtype.I32, x.at(1, 0), x.at(0, 0), n)
			case clears:
				c.Put(x.at(1, 0), x.at(1, n), n)
			default:
				c.Load(c.Tile(0, n), x.at(1, 0))
			}
			return nil
		})
		var found *prim.FindingsError
		if !errors.As(err, &found) {
			t.Fatal(err)
		}
		kind, lost := prim.UnorderedRead, false
		if clears {
			kind, lost = prim.UnorderedWrites, true
		}
		f := found.Findings[0]
		if f.Kind != kind || !strings.Contains(f.Missing, "no signal, barrier or event leads from rank") ||
			strings.Contains(f.Missing, "may be lost: the put is not atomic") != lost {
			t.Errorf("the memory is cleared %v: %v", clears, &f)
		}
	}
}

// TestSignalsThatAnotherRankSendsOn puts data to rank 2 and tells rank 1, which tells rank 2: that takes a quiet, and the report
// names what rank 2 has heard of it, not what it had heard of the sender before.
func TestSignalsThatAnotherRankSendsOn(t *testing.T) {
	err := checked(t, 3, 1, prim.Options{Fences: true}, func(x *lab, c *prim.Context) {
		switch c.Rank() {
		case 0:
			c.Signal(x.word(2, 1), prim.Add, 1)
			c.PutNBI(x.at(2, 0), x.at(0, 0), n)
			c.Fence()
			c.Signal(x.word(1, 0), prim.Add, 1)
		case 1:
			c.Wait(x.word(1, 0), prim.GE, 1)
			c.Signal(x.word(2, 0), prim.Add, 1)
		case 2:
			c.Wait(x.word(2, 1), prim.GE, 1)
			c.Wait(x.word(2, 0), prim.GE, 1)
			c.Load(c.Tile(0, n), x.at(2, 0))
		}
	})
	f := wantKind(t, err, prim.SignalOvertakes)
	if f == nil {
		return
	}
	for _, part := range []string{"rank 2 knows by the signal of rank 1 at ", "rank 0 has told others than rank 2, so that a quiet is missing"} {
		if !strings.Contains(f.Missing, part) {
			t.Errorf("%q lacks %q", f.Missing, part)
		}
	}
}

// TestBytesThatTwoRanksShare gives two tasks of two ranks bytes of a host that are partly the same, one after the other or not.
func TestBytesThatTwoRanksShare(t *testing.T) {
	for _, follows := range []bool{true, false} {
		m := machine(t, 2, prim.Options{Check: true})
		bytes := make([]byte, n+n/2)
		var windows [2]*prim.Window
		for r := range windows {
			w, err := m.Attach("host", r, bytes[r*n/2:r*n/2+n])
			if err != nil {
				t.Fatal(err)
			}
			w.Share(1000 + r*n/2)
			windows[r] = w
		}
		store := prim.Task{Name: "stores", Workers: []int{0}, Kernel: func(c *prim.Context) error {
			c.Fill(c.Tile(0, n), 1)
			c.PipeBarrier(prim.AllPipes)
			c.Store(windows[0].At(0, 0), c.Tile(0, n))
			return nil
		}}
		load := prim.Task{Name: "loads", Workers: []int{1}, Kernel: func(c *prim.Context) error {
			c.Load(c.Tile(0, n), windows[1].At(1, 0))
			return nil
		}}
		first, err := m.Submit(store)
		if err != nil {
			t.Fatal(err)
		}
		if follows {
			load.After = []*prim.Job{first}
		}
		if _, err := m.Submit(load); err != nil {
			t.Fatal(err)
		}
		err = m.Run()
		if follows && err != nil {
			t.Error(err)
		}
		if !follows {
			wantReport(t, wantKind(t, err, prim.UnorderedRead), "store by kernel \"stores\" on rank 0", "load by kernel \"loads\" on rank 1", "byte 0", "one has to follow the other one, by the tags")
		}
	}
}
