package kernels

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Domain is what one rank gives an example: its place among the members, its buffers, and its part of the members'
// window. Elements are float32. Published examples of one-chip-per-rank systems use this form.
type Domain struct {
	Members       []int // ranks of the machine, in the order of the domain
	Rank          int   // the own place among them
	Count         int   // elements: of the vector, or of one rank's block where ranks have blocks
	Root          int   // of a broadcast
	Input, Output prim.Addr
	Scratch       prim.Addr // on the own rank; at the same offset on all members, zeroed, and for one use
}

// Example is a collective in the form of the published examples: ranks stage their inputs in their windows, signal in
// rows of words after them, and read each other's windows. Its signal rows are for one use: the window has to be fresh.
type Example struct {
	Name  string
	data  func(n, count int) int // elements of the window before the signal rows
	rows  func(n int) int
	check func(n, count int) error
	run   func(x *example)
}

// MaxMembers is how many members a domain can have: a row has a word for each.
const MaxMembers = 16

const (
	elemBytes    = 4
	sumBytes     = 4
	rowBytes     = 4 * MaxMembers
	exampleTiles = 3 // in the scratch memory
)

// WindowBytes is how many bytes of window the example needs on each of n members.
func (e *Example) WindowBytes(n, count int) int {
	return e.data(n, count)*elemBytes + e.rows(n)*rowBytes
}

// Examples lists the examples, in alphabetical order.
func Examples() []*Example {
	return []*Example{allGatherExample(), allReduceBothWays(), allReduceIbing(), allReduceOnePhase(), allReducePullRing(),
		allReduceTwoPhase(), allToAllExample(), broadcastExample(), reduceScatterExample()}
}

// LookupExample finds an example by its name; the error lists the names.
func LookupExample(name string) (*Example, error) {
	var names []string
	for _, e := range Examples() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return nil, fmt.Errorf("unknown example %q: want one of %v", name, names)
}

// Run is the example's kernel. The error says what it cannot do.
func (e *Example) Run(c *prim.Context, d Domain) error {
	n := len(d.Members)
	if n < 1 || n > MaxMembers || d.Rank < 0 || d.Rank >= n || d.Members[d.Rank] != c.Rank() {
		return fmt.Errorf("%s: place %d among members %v on rank %d; there can be 1 to %d members", e.Name, d.Rank, d.Members, c.Rank(), MaxMembers)
	}
	if e.check != nil {
		if err := e.check(n, d.Count); err != nil {
			return err
		}
	}
	if most := c.ScratchBytes() / exampleTiles / elemBytes; d.Count > most {
		return fmt.Errorf("%s: %d elements; the tiles of a PE hold %d", e.Name, d.Count, most)
	}
	x := &example{Domain: d, c: c, n: n, words: d.Scratch + prim.Addr(e.data(n, d.Count)*elemBytes)}
	e.run(x)
	return nil
}

// example is a run of an example on one rank.
type example struct {
	Domain
	c     *prim.Context
	n     int
	words prim.Addr
}

// tile is the i-th tile, with so many elements.
func (x *example) tile(i, elems int) prim.Tile {
	return x.c.Tile(i*(x.c.ScratchBytes()/exampleTiles/elemBytes*elemBytes), elems*elemBytes)
}

func at(a prim.Addr, elem int) prim.Addr { return a + prim.Addr(elem*elemBytes) }

// of is the window of a member, from an element on.
func (x *example) of(member, elem int) prim.Addr {
	return at(x.Scratch, elem).On(x.Members[mod(member, x.n)])
}

// word is the word of a row that one member bumps on another.
func (x *example) word(on, row, by int) prim.Word {
	a := x.words + prim.Addr(row*rowBytes+sumBytes*mod(by, x.n))
	return prim.I32(a.On(x.Members[mod(on, x.n)]))
}

// drain waits for the pipes.
func (x *example) drain() { x.c.PipeBarrier(prim.AllPipes) }

// move brings elements from one place to another, through a tile, and waits.
func (x *example) move(to, from prim.Addr, elems int) {
	t := x.tile(0, elems)
	x.c.Load(t, from)
	x.drain()
	x.c.Store(to, t)
	x.drain()
}

// add loads elements and adds them to a tile: sum = loaded + sum.
func (x *example) add(sum prim.Tile, from prim.Addr) {
	next := x.tile(1, sum.Bytes/elemBytes)
	x.c.Load(next, from)
	x.drain()
	x.c.Combine(tensor.Sum, dtype.F32, sum, next, sum)
	x.drain()
}

// notify bumps the own word of a row on another member, in order with what was put there.
func (x *example) notify(member, row int) {
	x.c.Fence()
	x.c.Signal(x.word(member, row, x.Rank), prim.Add, 1)
}

// await waits for another member's bump.
func (x *example) await(member, row int) { x.c.Wait(x.word(x.Rank, row, member), prim.GE, 1) }

// meet is the barrier of one row.
func (x *example) meet(row int) {
	x.drain()
	for _, r := range x.others() {
		x.notify(r, row)
	}
	for _, r := range x.others() {
		x.await(r, row)
	}
	x.drain()
}

// others are the other members, ascending.
func (x *example) others() []int {
	list := make([]int, 0, x.n)
	for r := range x.n {
		if r != x.Rank {
			list = append(list, r)
		}
	}
	return slices.Clip(list)
}

// sumInto adds up one part of all members' windows, the own input first and then the others ascending, and stores it.
func (x *example) sumInto(to []prim.Addr, own prim.Addr, elem, elems int) {
	sum := x.tile(0, elems)
	x.c.Load(sum, own)
	x.drain()
	for _, r := range x.others() {
		x.add(sum, x.of(r, elem))
	}
	for _, a := range to {
		x.c.Store(a, sum)
	}
	x.drain()
}

// whole and oneRow are the simplest needs.
func whole(_, count int) int { return count }

func perRank(n, count int) int { return n * count }

func oneRow(int) int { return 1 }
