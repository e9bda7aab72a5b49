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

// run executes a batch. Elements are independent of one another, so blocks of them are shared out among workers in
// whatever order, and the result is the same.
func (e *evaluation) run(b *batch) {
	blocks := (len(b.start) - 1) * e.blocksPerChunk()
	workers := min(runtime.GOMAXPROCS(0), len(e.Inputs)*len(e.Inputs[0])/bytesPerWorker, blocks)
	var next atomic.Int64
	var others sync.WaitGroup
	for range workers - 1 {
		others.Go(func() { e.work(b, &next, blocks) })
	}
	e.work(b, &next, blocks)
	others.Wait()
}

// blockElems is the elements of a block.
func (e *evaluation) blockElems() int {
	if e.wide {
		return blockBytes / dtype.F32.Size()
	}
	return blockBytes / e.size
}

// blocksPerChunk is as many as the longest chunk has.
func (e *evaluation) blocksPerChunk() int {
	lo, hi := e.schedule.Span(0, e.elems) // the first is the longest
	return (hi - lo + e.blockElems() - 1) / e.blockElems()
}

// work takes blocks until there are none left.
func (e *evaluation) work(b *batch, next *atomic.Int64, blocks int) {
	w := worker{evaluation: e, batch: b, scratch: e.program.takeScratch(b.registers + 2)}
	defer e.program.scratch.Put(w.scratch)
	perChunk := e.blocksPerChunk()
	for {
		k := int(next.Add(1)) - 1
		if k >= blocks {
			return
		}
		c := b.first + k/perChunk
		lo, hi := e.schedule.Span(c, e.elems)
		lo += k % perChunk * e.blockElems()
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
	first, _ := w.schedule.Span(c-c%w.schedule.Sub, w.elems)
	switch w.schedule.Collective {
	case AllGather: // an input is its rank's block only
		w.inLo, w.inHi = w.inLo-first*w.size, w.inHi-first*w.size
	case ReduceScatter: // so is a result
		w.outLo, w.outHi = w.outLo-first*w.size, w.outHi-first*w.size
	}
	b := w.batch
	code := b.code[b.start[c-b.first]:b.start[c-b.first+1]]
	if w.wide {
		w.wideCode(code)
	} else {
		w.code(code)
	}
	if !w.shared && w.schedule.Collective != ReduceScatter {
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
			tensor.Finish(w.Op, w.DType, dst, w.schedule.World)
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
			tensor.Finish(w.Op, w.DType, w.at(in.dst), w.schedule.World)
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
	tensor.FinishF32(w.Op, value, w.schedule.World)
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
