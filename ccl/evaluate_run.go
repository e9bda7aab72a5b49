package ccl

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// A register holds blockBytes of values, so that the registers of a block, and what it reads, stay in the cache from
// one instruction to the next.
const blockBytes = 32 << 10

// A worker is worth its start from about this many bytes of input on.
const bytesPerWorker = 512 << 10

// scratch is the memory of one worker's registers, each blockBytes long; float32 values when wide.
type scratch struct {
	words  []uint64 // aligned for every dtype
	bytes  []byte   // the same memory
	floats []float32
}

// queue hands out units of work, in whatever order: units are independent of one another, so the result is the same.
type queue struct {
	units int
	next  atomic.Int64
}

// take returns the next unit, or -1 when there are none left.
func (q *queue) take() int {
	if k := int(q.next.Add(1)) - 1; k < q.units {
		return k
	}
	return -1
}

// share lets as many workers as that many bytes are worth take units until there are none left.
func (q *queue) share(bytes int, work func()) {
	workers := min(runtime.GOMAXPROCS(0), runtime.NumCPU(), bytes/bytesPerWorker, q.units)
	var others sync.WaitGroup
	for range workers - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// run executes a batch. Its units are blocks of elements, as many for each chunk as the longest has.
func (e *evaluation) run(b *batch) {
	q := &queue{units: (len(b.start) - 1) * e.perChunk}
	q.share(len(e.Inputs)*len(e.Inputs[0]), func() { e.work(b, q) })
}

// blockElems is the elements of a block.
func (e *evaluation) blockElems() int {
	if e.wide {
		return blockBytes / dtype.F32.Size()
	}
	return blockBytes / e.size
}

// longest is the elements of the longest chunk.
func (c *cut) longest() int {
	longest := c.elems / c.blocks
	if c.starts == nil && c.elems%c.blocks > 0 {
		longest++
	}
	for b := 1; b < len(c.starts); b++ {
		longest = max(longest, c.starts[b]-c.starts[b-1])
	}
	return (longest + c.sub - 1) / c.sub
}

// filled is the number of chunks up to the last that is not empty.
func (c *cut) filled() int {
	last := min(c.elems, c.blocks) - 1
	if c.starts != nil {
		last = c.blocks - 1
		for last >= 0 && c.starts[last] == c.elems {
			last--
		}
	}
	if last < 0 {
		return 0
	}
	lo, hi := c.block(last)
	return last*c.sub + min(hi-lo, c.sub)
}

// work executes blocks until there are none left.
func (e *evaluation) work(b *batch, q *queue) {
	w := worker{evaluation: e, batch: b, scratch: e.program.takeScratch(b.registers + 2)}
	defer e.program.scratch.Put(w.scratch)
	for k := q.take(); k >= 0; k = q.take() {
		c := b.first + k/e.perChunk
		lo, hi := e.cut.chunk(c)
		lo += k % e.perChunk * e.blockElems()
		w.block(c, lo, min(hi, lo+e.blockElems()))
	}
}

// takeScratch returns memory for that many registers.
func (p *program) takeScratch(registers int) *scratch {
	words := registers * blockBytes / 8
	s, _ := p.scratch.Get().(*scratch)
	if s == nil || len(s.words) < words {
		s = &scratch{words: make([]uint64, words)}
		start := unsafe.Pointer(unsafe.SliceData(s.words))
		s.bytes = unsafe.Slice((*byte)(start), 8*words)
		s.floats = unsafe.Slice((*float32)(start), 2*words)
	}
	return s
}

// worker executes the code of one block after another.
type worker struct {
	*evaluation
	batch   *batch
	scratch *scratch // two registers more than the code uses, for operands on their way to float32

	// The bytes of the present block: [inLo, inHi) of each input, [outLo, outHi) of each result.
	inLo, inHi, outLo, outHi int
}

// block executes the code of chunk c for the elements [lo, hi) of the whole vector.
func (w *worker) block(c, lo, hi int) {
	if lo >= hi {
		return
	}
	w.inLo, w.inHi = lo*w.size, hi*w.size
	w.outLo, w.outHi = w.inLo, w.inHi
	if w.Collective.Scatters() { // a result is its rank's block only
		first, _ := w.cut.block(c / w.Sub)
		w.outLo, w.outHi = w.outLo-first*w.size, w.outHi-first*w.size
	}
	b := w.batch
	code := b.code[b.start[c-b.first]:b.start[c-b.first+1]]
	if w.wide {
		w.wideCode(code)
	} else {
		w.code(code)
	}
	if !w.shared && w.Collective.EndsAlike() {
		w.spread()
	}
}

// spread copies each result from the first rank of its class to the others.
func (w *worker) spread() {
	owner := make([]int, 0, len(w.outputs))
	for r, k := range w.batch.class {
		if int(k) == len(owner) {
			owner = append(owner, r)
			continue
		}
		copy(w.outputs[r][w.outLo:w.outHi], w.outputs[owner[k]][w.outLo:w.outHi])
	}
}

// code reduces in the dtype itself: every instruction rounds.
func (w *worker) code(code []instr) {
	for i, in := range code {
		w.prefetch(code, i+lookahead)
		dst := w.at(in.dst)
		if in.b == none {
			copy(dst, w.at(in.a))
		} else {
			tensor.Combine(w.Op, w.DType, dst, w.at(in.a), w.at(in.b))
		}
		if in.dst.isResult() {
			tensor.Finish(w.Op, w.DType, dst, w.World)
		}
	}
}

// lookahead is how many instructions before its own an input is asked for.
const lookahead = 4

// prefetch asks for the inputs of an instruction to come. Those of a small block are in as many places as there are
// ranks, each of them new to the processor; in a large one it sees by itself what comes next.
func (w *worker) prefetch(code []instr, i int) {
	if i >= len(code) || w.inHi-w.inLo > maxPrefetch {
		return
	}
	for _, o := range [...]operand{code[i].a, code[i].b} {
		if o.isInput() && o != none {
			tensor.Prefetch(w.at(o))
		}
	}
}

// maxPrefetch is the size of a block from which on prefetching does not pay.
const maxPrefetch = 4 << 10

// at is where the bytes of an operand are.
func (w *worker) at(o operand) []byte {
	switch {
	case o.isResult():
		return w.outputs[o-firstResult][w.outLo:w.outHi]
	case o.isInput():
		return w.Inputs[^o][w.inLo:w.inHi]
	}
	lo := int(o) * blockBytes
	return w.scratch.bytes[lo : lo+w.inHi-w.inLo]
}

// wideCode reduces in float32, and rounds what goes to a result.
func (w *worker) wideCode(code []instr) {
	for _, in := range code {
		switch {
		case in.b != none:
			w.combineWide(in)
		case in.a.isInput(): // never reduced, so nothing to round
			copy(w.at(in.dst), w.at(in.a))
			tensor.Finish(w.Op, w.DType, w.at(in.dst), w.World)
		default:
			spare := w.floats(w.batch.registers)
			copy(spare, w.floats(int(in.a)))
			w.round(in.dst, spare)
		}
	}
}

func (w *worker) combineWide(in instr) {
	spare := w.batch.registers
	a, b := w.widen(in.a, spare), w.widen(in.b, spare+1)
	if !in.dst.isResult() {
		tensor.CombineF32(w.Op, w.floats(int(in.dst)), a, b)
		return
	}
	sum := w.floats(spare)
	tensor.CombineF32(w.Op, sum, a, b)
	w.round(in.dst, sum)
}

// round finishes a value and rounds it to its result.
func (w *worker) round(dst operand, value []float32) {
	tensor.FinishF32(w.Op, value, w.World)
	dtype.FromF32(w.DType, w.at(dst), value)
}

// widen returns an operand as float32 values; an input by way of a spare register.
func (w *worker) widen(o operand, spare int) []float32 {
	if !o.isInput() {
		return w.floats(int(o))
	}
	values := w.floats(spare)
	dtype.ToF32(w.DType, values, w.at(o))
	return values
}

// floats is a register's float32 values.
func (w *worker) floats(register int) []float32 {
	lo := register * blockBytes / dtype.F32.Size()
	return w.scratch.floats[lo : lo+(w.inHi-w.inLo)/w.size]
}
