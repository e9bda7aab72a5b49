package prim_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Programs in the styles of other systems, on the same primitives. Each block of a rank has a part of the data of its own:
// so many threads together, as a scope, a queue or a queue pair has.

const part = 64 // bytes that a block sends at once

// fabric is a machine with data and words for programs of several blocks.
type fabric struct {
	*prim.Machine
	data, slots, words *prim.Window
	blocks             int
}

func newFabric(t *testing.T, ranks, blocks int, o prim.Options) *fabric {
	m := machine(t, ranks, o)
	x := &fabric{Machine: m, data: window(t, m, ranks*blocks*part), slots: window(t, m, 2*ranks*blocks*part), blocks: blocks}
	x.words = window(t, m, 8*4*ranks*blocks)
	return x
}

// chunk is a block's part of a chunk of the data, slot that of a place where peers put something, and word a word of it.
func (x *fabric) chunk(rank, block, i int) prim.Addr {
	return x.data.At(rank, (i*x.blocks+block)*part)
}

func (x *fabric) slot(rank, block, i int) prim.Addr {
	return x.slots.At(rank, (i*x.blocks+block)*part)
}

func (x *fabric) word(rank, block, i int) prim.Word {
	return prim.I64(x.words.At(rank, 8*(i*x.blocks+block)))
}

// value is what a rank has at an int32 of its data, in the beginning.
func value(rank, i int) int32 { return int32(1000*rank*rank + 7*i) }

func (x *fabric) fill(t *testing.T, chunks func(rank int) []int) {
	for r := range x.World() {
		for _, c := range chunks(r) {
			raw := make([]byte, x.blocks*part)
			for i := range len(raw) / 4 {
				binary.LittleEndian.PutUint32(raw[4*i:], uint32(value(r, c*len(raw)/4+i)))
			}
			write(t, x.Machine, x.chunk(r, 0, c), raw)
		}
	}
}

// wantData compares the data of all ranks with what want says of each int32.
func (x *fabric) wantData(t *testing.T, what string, want func(rank, i int) int32) {
	t.Helper()
	for r := range x.World() {
		raw := read(t, x.Machine, x.data.At(r, 0), x.data.Bytes)
		for i := range len(raw) / 4 {
			if got := int32(binary.LittleEndian.Uint32(raw[4*i:])); got != want(r, i) {
				t.Fatalf("%s: rank %d has %d at %d, want %d", what, r, got, i, want(r, i))
			}
		}
	}
}

// puts are the ways to send a chunk and to say so.
var puts = map[string]func(c *prim.Context, to, from prim.Addr, w prim.Word){
	"putmem_signal":     func(c *prim.Context, to, from prim.Addr, w prim.Word) { c.PutSignal(to, from, part, w, prim.Add, 1) },
	"putmem_signal_nbi": func(c *prim.Context, to, from prim.Addr, w prim.Word) { c.PutSignalNBI(to, from, part, w, prim.Set, 1) },
	"putmem, fence, signal": func(c *prim.Context, to, from prim.Addr, w prim.Word) {
		c.Put(to, from, part)
		c.Fence()
		c.Signal(w, prim.Add, 1)
	},
	"putmem_nbi, quiet, signal": func(c *prim.Context, to, from prim.Addr, w prim.Word) {
		c.PutNBI(to, from, part)
		c.Quiet()
		c.Signal(w, prim.Set, 1)
	},
}

// ring is an all-reduce among a team: reduce-scatter and all-gather, by puts with signals to the next member.
func (x *fabric) ring(c *prim.Context, team []int, put func(c *prim.Context, to, from prim.Addr, w prim.Word)) {
	n, own, b := len(team), slices.Index(team, c.Rank()), c.Block()
	next, at := team[(own+1)%n], func(i int) int { return (i + 2*n) % n }
	a, sum := c.Tile(0, part), c.Tile(part, part)
	for s := range n - 1 {
		put(c, x.slot(next, b, s), x.chunk(c.Rank(), b, at(own-s)), x.word(next, b, s))
		c.Wait(x.word(c.Rank(), b, s), prim.GE, 1) // signal_wait_until
		mine := x.chunk(c.Rank(), b, at(own-s-1))
		c.Load(a, x.slot(c.Rank(), b, s))
		c.Load(sum, mine)
		c.PipeBarrier(prim.AllPipes)
		c.Combine(tensor.Sum, dtype.I32, sum, a, sum)
		c.PipeBarrier(prim.AllPipes)
		c.Store(mine, sum)
		c.PipeBarrier(prim.AllPipes)
	}
	for s := range n - 1 {
		i := at(own + 1 - s)
		put(c, x.chunk(next, b, i), x.chunk(c.Rank(), b, i), x.word(next, b, n-1+s))
		c.Wait(x.word(c.Rank(), b, n-1+s), prim.GE, 1)
	}
	c.Quiet()
}

// Two teams at once, each with a ring and a barrier of its own, in blocks that know nothing of each other.
func TestPutWithSignalKernels(t *testing.T) {
	for name, put := range puts {
		for seed := range uint64(3) {
			x := newFabric(t, 7, 2, prim.Options{Check: true, Reorder: seed > 0, Seed: seed})
			teams := [][]int{{0, 2, 4, 6}, {5, 1, 3}}
			x.fill(t, func(int) []int { return []int{0, 1, 2, 3} })
			x.submitTeams(t, teams, put)
			if err := x.Run(); err != nil {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
			x.wantData(t, name, func(rank, i int) (sum int32) {
				team := teams[rank%2]
				if i >= len(team)*2*part/4 {
					return map[bool]int32{true: value(rank, i)}[i < 4*2*part/4]
				}
				for _, r := range team {
					sum += value(r, i)
				}
				return sum
			})
		}
	}
}

func (x *fabric) submitTeams(t *testing.T, teams [][]int, put func(c *prim.Context, to, from prim.Addr, w prim.Word)) {
	for _, team := range teams {
		var barriers []*prim.Barrier // one for each block: programs of one number meet
		for b := range x.blocks {
			barrier, err := x.NewBarrier(fmt.Sprint("team ", team, b), team, prim.CreditBarrier)
			if err != nil {
				t.Fatal(err)
			}
			barriers = append(barriers, barrier)
		}
		kernel := func(c *prim.Context) error {
			x.ring(c, team, put)
			c.Barrier(barriers[c.Block()])
			return nil
		}
		if _, err := x.Submit(prim.Task{Name: "ring", Kernel: kernel, Workers: team, Blocks: x.blocks}); err != nil {
			t.Fatal(err)
		}
	}
}

// engines are all-gathers by copy engines and network cards: programs that have a queue each, and say what is complete.
var engines = map[string]func(x *fabric, c *prim.Context){
	// Copies that push, in no order, each with an event; who has the data is told when it is complete.
	"SDMA, pushed": func(x *fabric, c *prim.Context) {
		own, b := c.Rank(), c.Block()
		events := make([]*prim.Event, x.World())
		for r := range x.World() {
			if r != own {
				events[r] = c.Copy(x.chunk(r, b, own), x.chunk(own, b, own), part)
			}
		}
		for r, e := range events {
			if e != nil {
				c.WaitEvent(e)
				c.Signal(x.word(r, b, own), prim.Set, 1)
			}
		}
		x.hear(c)
	},
	// Copies that pull; the sources are there before the kernel.
	"SDMA, pulled": func(x *fabric, c *prim.Context) {
		own, b := c.Rank(), c.Block()
		for r := range x.World() {
			if r != own {
				c.WaitEvent(c.Copy(x.chunk(own, b, r), x.chunk(r, b, r), part))
			}
		}
	},
	// A queue pair for each block: writes with immediate data in the order of posting, completion by polling.
	"queue pairs": func(x *fabric, c *prim.Context) {
		own, b := c.Rank(), c.Block()
		for r := range x.World() {
			if r != own {
				c.PutNBI(x.chunk(r, b, own), x.chunk(own, b, own), part)
				c.Fence() // what a reliable queue pair does by itself
				c.Signal(x.word(r, b, own), prim.Add, 1)
			}
		}
		c.Quiet()
		for r := range x.World() {
			for r != own && !c.Test(x.word(own, b, r), prim.GE, 1) {
			}
		}
	},
	// A block that rings the others' doorbells, and they are the queues: they post what they are told to, and tell it what
	// is complete.
	"doorbells": func(x *fabric, c *prim.Context) {
		own, b, last := c.Rank(), c.Block(), x.World()
		bell, complete := x.word(own, b, last), x.word(own, 0, last+1)
		if b > 0 {
			c.Wait(bell, prim.GE, 1)
		} else {
			for queue := 1; queue < x.blocks; queue++ {
				c.Signal(x.word(own, queue, last), prim.Add, 1)
			}
		}
		for r := range x.World() {
			if r != own {
				c.PutSignalNBI(x.chunk(r, b, own), x.chunk(own, b, own), part, x.word(r, b, own), prim.Add, 1)
			}
		}
		c.Quiet()
		c.Signal(complete, prim.Add, 1)
		if b == 0 {
			c.Wait(complete, prim.GE, int64(x.blocks))
		}
		x.hear(c)
	},
}

// hear waits for a word from every other rank.
func (x *fabric) hear(c *prim.Context) {
	for r := range x.World() {
		if r != c.Rank() {
			c.Wait(x.word(c.Rank(), c.Block(), r), prim.GE, 1)
		}
	}
}

func TestAllGatherByCopyEnginesAndQueuePairs(t *testing.T) {
	for name, kernel := range engines {
		for seed := range uint64(3) {
			x := newFabric(t, 5, 3, prim.Options{Check: true, Reorder: seed > 0, Seed: seed})
			x.fill(t, func(rank int) []int { return []int{rank} })
			run := func(c *prim.Context) error { kernel(x, c); return nil }
			if _, err := x.Submit(prim.Task{Name: name, Kernel: run, Workers: all(5), Blocks: 3}); err != nil {
				t.Fatal(err)
			}
			if err := x.Run(); err != nil {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
			x.wantData(t, name, func(_, i int) int32 { return value(i/(3*part/4), i) })
		}
	}
}
