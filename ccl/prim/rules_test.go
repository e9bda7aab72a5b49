package prim_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
)

// rule is a litmus test of what orders programs, tasks and messages: what is found without it, and nothing with it.
type rule struct {
	name  string
	kinds []prim.Kind // any of them
	run   func(t *testing.T, with bool) error
}

// checked runs a kernel on some ranks, with blocks.
func checked(t *testing.T, ranks, blocks int, o prim.Options, kernel func(x *lab, c *prim.Context)) error {
	o.Check = true
	x := newLab(t, ranks, o)
	x.submit(t, prim.Task{Name: "rule", Workers: all(ranks), Blocks: blocks, Kernel: func(c *prim.Context) error {
		kernel(x, c)
		return nil
	}})
	return x.Run()
}

func (x *lab) submit(t *testing.T, task prim.Task) *prim.Job {
	t.Helper()
	job, err := x.Submit(task)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

var rules = []rule{
	{"instructions of one pipe", []prim.Kind{prim.UnorderedWrites}, func(t *testing.T, with bool) error {
		return checked(t, 1, 1, prim.Options{}, func(x *lab, c *prim.Context) {
			a := c.Tile(0, n)
			c.Fill(a, 1)
			c.PipeBarrier(prim.AllPipes)
			c.Store(x.at(0, 0), a)
			if with {
				c.Store(x.at(0, 0), a)
			} else {
				c.Put(x.at(0, 0), x.at(0, n), n)
			}
		})
	}},
	{"deliveries in the order of sending", []prim.Kind{prim.SignalOvertakes}, func(t *testing.T, with bool) error {
		return checked(t, 2, 1, prim.Options{Reorder: !with}, func(x *lab, c *prim.Context) {
			if c.Rank() == 0 {
				c.Put(x.at(1, 0), x.at(0, 0), n)
				c.Signal(x.word(1, 0), prim.Add, 1)
				return
			}
			c.Wait(x.word(1, 0), prim.GE, 1)
			c.Load(c.Tile(0, n), x.at(1, 0))
		})
	}},
	{"no order between PEs of a rank", []prim.Kind{prim.SignalOvertakes}, func(t *testing.T, with bool) error {
		return checked(t, 2, 2, prim.Options{}, func(x *lab, c *prim.Context) {
			switch {
			case c.Rank() == 1 && c.Block() == 0:
				c.Wait(x.word(1, 0), prim.GE, 1)
				c.Load(c.Tile(0, n), x.at(1, 0))
			case c.Rank() == 0 && c.Block() == 0:
				c.Put(x.at(1, 0), x.at(0, 0), n)
				if with {
					c.Quiet()
				}
				c.Signal(x.word(0, 1), prim.Add, 1)
			case c.Rank() == 0:
				c.Wait(x.word(0, 1), prim.GE, 1)
				c.Signal(x.word(1, 0), prim.Add, 1)
			}
		})
	}},
	{"a message that is received", []prim.Kind{prim.UnorderedRead, prim.SignalOvertakes}, func(t *testing.T, with bool) error {
		var q *prim.Queue
		return checked(t, 2, 1, prim.Options{}, func(x *lab, c *prim.Context) {
			if q == nil {
				var err error
				if q, err = x.NewQueue("q", 0, 1, 2, n); err != nil {
					t.Fatal(err)
				}
			}
			if c.Rank() == 0 {
				c.Put(x.at(1, 0), x.at(0, 0), n)
				c.Quiet()
				c.Send(q, x.at(0, n), n)
				return
			}
			if with {
				c.Recv(q, x.at(1, n), n)
			}
			c.Load(c.Tile(0, n), x.at(1, 0))
		})
	}},
	{"a task that follows another", []prim.Kind{prim.UnorderedRead, prim.SignalOvertakes}, func(t *testing.T, with bool) error {
		return twoTasks(t, with, true)
	}},
	{"a quiet before the end of a task", []prim.Kind{prim.UnorderedRead, prim.SignalOvertakes}, func(t *testing.T, with bool) error {
		return twoTasks(t, true, with)
	}},
	{"all that was added, but not what was set before", []prim.Kind{prim.UnorderedRead, prim.RowReused}, func(t *testing.T, with bool) error {
		return checked(t, 3, 1, prim.Options{}, func(x *lab, c *prim.Context) {
			op := map[bool]prim.SignalOp{true: prim.Add, false: prim.Set}[with]
			if c.Rank() > 0 {
				c.PutSignal(x.at(0, n*c.Rank()), x.at(c.Rank(), 0), n, x.word(0, 0), op, int64(c.Rank()))
				return
			}
			c.Wait(x.word(0, 0), prim.GE, map[bool]int64{true: 3, false: 2}[with])
			c.Load(c.Tile(0, 3*n), x.at(0, 0))
		})
	}},
}

// twoTasks is one that puts data on another rank, and one there that reads it.
func twoTasks(t *testing.T, follows, quiet bool) error {
	x := newLab(t, 2, prim.Options{Check: true})
	first := x.submit(t, prim.Task{Name: "put", Workers: []int{0}, Kernel: func(c *prim.Context) error {
		c.Put(x.at(1, 0), x.at(0, 0), n)
		if quiet {
			c.Quiet()
		}
		return nil
	}})
	second := prim.Task{Name: "read", Workers: []int{1}, Kernel: func(c *prim.Context) error {
		c.Load(c.Tile(0, n), x.at(1, 0))
		return nil
	}}
	if follows {
		second.After = []*prim.Job{first}
	}
	x.submit(t, second)
	return x.Run()
}

// wantAnyKind looks for a finding of one of some kinds.
func wantAnyKind(t *testing.T, err error, kinds []prim.Kind) {
	t.Helper()
	var found *prim.FindingsError
	if errors.As(err, &found) {
		for _, f := range found.Findings {
			if slices.Contains(kinds, f.Kind) {
				return
			}
		}
	}
	t.Errorf("without the rule: %v, want any of %v", err, kinds)
}

func TestRules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if err := r.run(t, true); err != nil {
				t.Errorf("with the rule: %v", err)
			}
			wantAnyKind(t, r.run(t, false), r.kinds)
		})
	}
}

// A flag that each call sets to the same value tells of the first one only, however late its waiter looks.
func TestFlagOfAnEarlierCall(t *testing.T) {
	for _, phase := range []bool{true, false} {
		for _, cmp := range []prim.Cmp{prim.EQ, prim.GE} {
			if phase && cmp == prim.EQ {
				continue // which the next call's value may overtake
			}
			x := newLab(t, 2, prim.Options{Check: true})
			for call := range 2 {
				value := int64(1)
				if phase {
					value += int64(call)
				}
				x.Launch("push", func(c *prim.Context) error {
					c.Put(x.at(1-c.Rank(), call*n), x.at(c.Rank(), staged), n)
					c.Fence()
					c.Signal(x.word(1-c.Rank(), 0), prim.Set, value)
					return nil
				})
				x.Launch("read", func(c *prim.Context) error {
					for range 100 {
						c.Test(x.word(c.Rank(), 5), prim.EQ, 1)
					}
					c.Wait(x.word(c.Rank(), 0), cmp, value)
					c.Load(c.Tile(0, n), x.at(c.Rank(), call*n))
					return nil
				})
			}
			err := x.Run()
			if phase && err != nil {
				t.Errorf("%v, a value for each call: %v", cmp, err)
			}
			if !phase {
				f := wantKind(t, err, prim.RowReused)
				wantReport(t, f, "put by", "load by", "may be over by an earlier signal, that of rank", "a value of its own for each call")
			}
		}
	}
}
