package ccltest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// A value is a number that stands for the contents of a chunk. Two equal numbers mean the same bits: both are the same
// rank's input, or reductions of the same two values (which commute, bit for bit). The same number in different chunks
// means the same formula.
type value int

const undefined value = -1

// values numbers the formulas.
type values struct {
	known map[[2]value]value
	terms [][]int // terms[v][r] is how often rank r's input occurs in v
}

// newValues numbers the inputs 0 … world-1.
func newValues(world int) *values {
	v := &values{known: map[[2]value]value{}}
	for r := range world {
		terms := make([]int, world)
		terms[r] = 1
		v.terms = append(v.terms, terms)
	}
	return v
}

func (v *values) reduce(a, b value) value {
	if a == undefined || b == undefined {
		return undefined
	}
	key := [2]value{min(a, b), max(a, b)}
	if id, ok := v.known[key]; ok {
		return id
	}
	terms := slices.Clone(v.terms[a])
	for r, n := range v.terms[b] {
		terms[r] += n
	}
	id := value(len(v.terms))
	v.terms = append(v.terms, terms)
	v.known[key] = id
	return id
}

// reduceAll reduces what members have of a chunk, in their order.
func (v *values) reduceAll(members []int32, from memory, c int) value {
	all := from[members[0]][c]
	for _, m := range members[1:] {
		all = v.reduce(from[m][c], all)
	}
	return all
}

// memory is the value of each chunk at each rank.
type memory [][]value

func (m memory) clone() memory {
	c := make(memory, len(m))
	for r := range m {
		c[r] = slices.Clone(m[r])
	}
	return c
}

// inputs is what the ranks start with: what is there is their own.
func inputs(s *ccl.Schedule) memory {
	m := make(memory, s.World)
	for r := range m {
		m[r] = make([]value, s.Chunks())
		for c := range m[r] {
			m[r][c] = value(r)
			if !starts(s, r, c/s.Sub) {
				m[r][c] = undefined
			}
		}
	}
	return m
}

// starts says whether a rank has a block at the start.
func starts(s *ccl.Schedule, r, block int) bool {
	switch s.Collective {
	case collective.AllGather, collective.Gather:
		return block == r
	case collective.Broadcast, collective.Scatter:
		return r == s.Root
	}
	return true
}

// ends says whether a rank must have a block at the end.
func ends(s *ccl.Schedule, r, block int) bool {
	switch s.Collective {
	case collective.ReduceScatter, collective.Scatter:
		return block == r
	case collective.Reduce, collective.Gather:
		return r == s.Root
	}
	return true
}

// source is the rank whose input a block must be at the end, where nothing is reduced.
func source(s *ccl.Schedule, r, block int) (rank int, ok bool) {
	switch s.Collective {
	case collective.AllGather, collective.Gather:
		return block, true
	case collective.Broadcast, collective.Scatter:
		return s.Root, true
	case collective.AllToAll:
		return (r + s.World - block) % s.World, true
	}
	return 0, false
}

// results runs the schedule on values and checks what every rank ends with.
func results(s *ccl.Schedule) error {
	v, start := newValues(s.World), inputs(s)
	end := start.clone()
	for k := range s.Rounds {
		before := end.clone()
		lo, hi := round(s, k)
		for _, step := range s.Steps[lo:hi] {
			from := before
			if step.FromInput {
				from = start
			}
			for place := step.Lo; place < step.Hi; place++ {
				c := s.Chunk(place)
				arriving := from[step.Src][c]
				switch step.Kind {
				case ccl.Reduce:
					arriving = v.reduce(arriving, end[step.Dst][c])
				case ccl.ReduceInSwitch:
					arriving = v.reduceAll(s.Groups[step.Group], from, c)
				}
				for _, rank := range written(s, step) {
					end[rank][c] = arriving
				}
			}
		}
	}
	return promise(s, v, end)
}

// promise checks a collective's result.
func promise(s *ccl.Schedule, v *values, end memory) error {
	var errs []error
	for r := range end {
		for c, got := range end[r] {
			if err := chunk(s, v, end, r, c, got); err != nil {
				errs = append(errs, fmt.Errorf("rank %d, chunk %d: %w", r, c, err))
			}
		}
	}
	return errors.Join(errs...)
}

func chunk(s *ccl.Schedule, v *values, end memory, r, c int, got value) error {
	want, moved := source(s, r, c/s.Sub)
	switch {
	case !ends(s, r, c/s.Sub):
		return nil // nobody will look
	case got == undefined:
		return errors.New("nothing was sent that was there")
	case moved && got != value(want):
		return fmt.Errorf("want the input of rank %d, got inputs %v", want, v.terms[got])
	case moved:
		return nil
	case slices.ContainsFunc(v.terms[got], func(n int) bool { return n != 1 }):
		return fmt.Errorf("inputs of ranks are in it %v times, want each once", v.terms[got])
	case s.Collective == collective.AllReduce && got != end[0][c]:
		return errors.New("was reduced in another order than at rank 0, so its last bits may differ")
	}
	return nil
}
