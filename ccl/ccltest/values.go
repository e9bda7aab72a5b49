package ccltest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/ccl"
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

// memory is the value of each chunk at each rank.
type memory [][]value

func (m memory) clone() memory {
	c := make(memory, len(m))
	for r := range m {
		c[r] = slices.Clone(m[r])
	}
	return c
}

// inputs is what the ranks start with: everything is their own, but for an all-gather only their own block is there.
func inputs(s *ccl.Schedule) memory {
	m := make(memory, s.World)
	for r := range m {
		m[r] = make([]value, s.Chunks())
		for c := range m[r] {
			m[r][c] = value(r)
			if s.Collective == ccl.AllGather && c/s.Sub != r {
				m[r][c] = undefined
			}
		}
	}
	return m
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
			for c := step.Lo; c < step.Hi; c++ {
				arriving := from[step.Src][c]
				if step.Kind == ccl.Reduce {
					arriving = v.reduce(arriving, end[step.Dst][c])
				}
				end[step.Dst][c] = arriving
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
	block := c / s.Sub
	switch {
	case s.Collective == ccl.ReduceScatter && block != r:
		return nil // nobody will look
	case got == undefined:
		return errors.New("nothing was sent that was there")
	case s.Collective == ccl.AllGather && got != value(block):
		return fmt.Errorf("want the input of rank %d, got inputs %v", block, v.terms[got])
	case s.Collective == ccl.AllGather:
		return nil
	case slices.ContainsFunc(v.terms[got], func(n int) bool { return n != 1 }):
		return fmt.Errorf("inputs of ranks are in it %v times, want each once", v.terms[got])
	case s.Collective == ccl.AllReduce && got != end[0][c]:
		return errors.New("was reduced in another order than at rank 0, so its last bits may differ")
	}
	return nil
}
