package ccl

import (
	"math"
	"slices"
	"sync"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// program is a schedule's data side as straight-line code: for every chunk the reductions that its results need, each
// once, in an order that keeps few values alive. Copies have vanished: they only said who else has the value.
//
// It is compiled as far as it is needed, a batch of chunks at a time: a small vector in a world of thousands fills only
// the first of as many chunks.
type program struct {
	schedule *Schedule
	width    int // chunks of a batch

	mutex    sync.Mutex
	surveyed []survey // of the first batches
	kept     int      // instructions of the batches that are kept

	scratch sync.Pool // of *scratch, for the registers
}

// survey is what is known of a batch.
type survey struct {
	uniform bool   // all ranks end with the same values
	batch   *batch // nil when it was too large to keep
}

const (
	batchValues     = 1 << 20 // chunks × ranks of a batch
	maxInstructions = 8 << 20 // of all batches that a program keeps: 96 MB
)

// batch is the code of the chunks from first on.
type batch struct {
	first     int
	code      []instr
	start     []uint32 // chunk first+k has code[start[k]:start[k+1]]
	registers int      // the most that any chunk uses

	// In an AllReduce ranks of one class end with the same values. The code leaves them with the first of them; rank 0
	// has class 0. Otherwise it leaves a rank's result with that rank, and there are no classes.
	class []int32
}

// instr is dst ← a ⊕ b or, where b is none, dst ← a. A dst that is a result is a final value: it is finished too.
type instr struct{ dst, a, b operand }

// operand is a register, counted from 0; the complement of a rank, whose input it is; or, as dst only, a rank plus
// firstResult, whose result it is.
type operand int32

const (
	firstResult operand = 1 << 30
	none        operand = math.MinInt32
)

func (o operand) isInput() bool  { return o < 0 }
func (o operand) isResult() bool { return o >= firstResult }

// program returns the schedule's program, of which nothing has been compiled when it is first used.
func (s *Schedule) program() *program {
	s.derived.programOnce.Do(func() {
		s.derived.program = &program{schedule: s, width: s.batchWidth()}
	})
	return s.derived.program
}

// batchWidth is how many chunks to number at a time.
func (s *Schedule) batchWidth() int { return min(max(1, batchValues/s.World), s.Chunks()) }

// survey says whether all ranks end with the same values in batch k; all earlier ones must have been surveyed.
func (p *program) survey(k int) (uniform bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if k == len(p.surveyed) {
		b := p.compile(k)
		s := survey{uniform: b.class != nil && slices.Max(b.class) == 0}
		if p.kept+len(b.code) <= maxInstructions {
			p.kept += len(b.code)
			s.batch = b
		}
		p.surveyed = append(p.surveyed, s)
	}
	return p.surveyed[k].uniform
}

// batch returns batch k, which has been surveyed.
func (p *program) batch(k int) *batch {
	p.mutex.Lock()
	b := p.surveyed[k].batch
	p.mutex.Unlock()
	if b == nil {
		b = p.compile(k)
	}
	return b
}

func (p *program) compile(k int) *batch {
	n := newNumbering(p.schedule, k*p.width, min((k+1)*p.width, p.schedule.Chunks()))
	n.play()
	b := &batch{first: n.lo}
	if p.schedule.Collective.EndsAlike() {
		b.class = n.classes()
	}
	newCompiler(n, b).compile()
	return b
}

// classes gives ranks that end with the same values the same number. Numbers are in the order of ranks.
func (n *numbering) classes() []int32 {
	class := make([]int32, n.schedule.World)
	owners := map[uint64][]int{} // by hash of their values: the first rank of each class
	count := int32(0)
	for r := range class {
		row := n.row(r)
		hash := hashOf(row)
		k := slices.IndexFunc(owners[hash], func(o int) bool { return slices.Equal(n.row(o), row) })
		if k >= 0 {
			class[r] = class[owners[hash][k]]
			continue
		}
		owners[hash] = append(owners[hash], r)
		class[r] = count
		count++
	}
	return class
}

// hashOf is FNV-1a, by values instead of bytes.
func hashOf(row []valueID) uint64 {
	hash := uint64(14695981039346656037)
	for _, v := range row {
		hash = (hash ^ uint64(v)) * 1099511628211
	}
	return hash
}

// owners lists the ranks with which the code leaves results: for each class the first.
func (b *batch) owners(s *Schedule) []int {
	switch ends := s.Collective.Ends(); {
	case ends.Root:
		return []int{s.Root}
	case ends.Share == collective.Block:
		return everyRank(s.World)
	}
	var ranks []int
	for r, k := range b.class {
		if int(k) == len(ranks) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
