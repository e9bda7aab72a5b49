package ccl

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// program is a schedule's data side as straight-line code: for every chunk the reductions that its results need, each
// once, in an order that keeps few values alive. Copies have vanished: they only said who else has the value.
type program struct {
	code      []instr
	start     []uint32 // chunk c's code is code[start[c]:start[c+1]]
	registers int      // the most that any chunk uses
	outputs   int      // distinct results
	output    []int32  // the one that each rank has

	scratch sync.Pool // of *scratch, for the registers
}

// instr is dst ← a ⊕ b or, where b is none, dst ← a. A dst that is an output is a final value: it is finished too.
type instr struct{ dst, a, b operand }

// operand is a register, counted from 0; the complement of a rank, whose input it is; or, as dst only, an output,
// counted from firstOutput.
type operand int32

const (
	firstOutput operand = 1 << 30
	none        operand = math.MinInt32
)

func (o operand) isInput() bool { return o < 0 }
func (o operand) isFinal() bool { return o >= firstOutput }

// program returns the schedule's program, compiled on first use.
func (s *Schedule) program() (*program, error) {
	d := &s.derived
	d.programOnce.Do(func() { d.program, d.programErr = compile(s) })
	return d.program, d.programErr
}

// compile makes the program. The error names the block that some rank ends without.
func compile(s *Schedule) (*program, error) {
	n := newNumbering(s)
	n.play()
	if n.err != nil {
		return nil, n.err
	}
	if err := n.checkComplete(); err != nil {
		return nil, err
	}
	p := &program{}
	p.findOutputs(n)
	newCompiler(n, p).compile()
	return p, nil
}

// checkComplete makes sure that every rank ends with a value for all that its result covers.
func (n *numbering) checkComplete() error {
	s := n.schedule
	for at, v := range n.current {
		r, c := at/s.Chunks(), at%s.Chunks()
		if v == nothing && s.covers(r, c) {
			return fmt.Errorf("schedule %s: rank %d ends without chunk %d", s.Algorithm, r, c)
		}
	}
	return nil
}

// covers says whether chunk c is part of rank r's result.
func (s *Schedule) covers(r, c int) bool { return s.Collective != ReduceScatter || c/s.Sub == r }

// findOutputs gives ranks that end with the same values the same output.
func (p *program) findOutputs(n *numbering) {
	s := n.schedule
	p.output = make([]int32, s.World)
	if s.Collective == ReduceScatter {
		for r := range p.output {
			p.output[r] = int32(r)
		}
		p.outputs = s.World
		return
	}
	owners := map[uint64][]int{} // by hash of their values: the first rank of each output
	for r := range s.World {
		row := n.row(r)
		hash := hashOf(row)
		k := slices.IndexFunc(owners[hash], func(o int) bool { return slices.Equal(n.row(o), row) })
		if k >= 0 {
			p.output[r] = p.output[owners[hash][k]]
			continue
		}
		owners[hash] = append(owners[hash], r)
		p.output[r] = int32(p.outputs)
		p.outputs++
	}
}

// row is the values that rank r ends with.
func (n *numbering) row(r int) []valueID {
	chunks := n.schedule.Chunks()
	return n.current[r*chunks : (r+1)*chunks]
}

// hashOf is FNV-1a, by values instead of bytes.
func hashOf(row []valueID) uint64 {
	hash := uint64(14695981039346656037)
	for _, v := range row {
		hash = (hash ^ uint64(v)) * 1099511628211
	}
	return hash
}
