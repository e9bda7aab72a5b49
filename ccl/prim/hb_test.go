package prim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// This file says, apart from the checker and without clocks, what of a program is ordered: it makes a graph of what each
// operation does at which moment, by the rules of the package's documentation, and asks which moments lead to which.

// opKind is an operation of a generated program.
type opKind uint8

const (
	opLoad opKind = iota
	opCombine
	opStore
	opPut
	opPutNBI
	opPutSignal
	opGet
	opGetNBI
	opCopy
	opAwaitCopy
	opSignal
	opWait
	opFence
	opQuiet
	opDrain
	numOps
)

var opNames = [...]string{"load", "combine", "store", "put", "put_nbi", "put_signal_nbi", "get", "get_nbi", "copy", "wait for the copy", "signal", "wait", "fence", "quiet", "drain"}

// mem is bytes of a rank's window, or of its scratch memory.
type mem struct {
	rank    int
	scratch bool
	lo, hi  int
}

func (m mem) overlaps(o mem) bool {
	return m.rank == o.rank && m.scratch == o.scratch && m.lo < o.hi && o.lo < m.hi
}

// op is an operation: from and to are what it reads and writes, word is a signal's or a wait's, copied the number of the
// copy that is waited for.
type op struct {
	kind     opKind
	rank     int
	from, to mem
	other    mem // the second operand of a combine
	wordRank int
	word     int
	count    int64
	copied   int
}

func (o op) String() string {
	return fmt.Sprintf("%s %d %v %v %v w%d.%d %d", opNames[o.kind], o.rank, o.from, o.other, o.to, o.wordRank, o.word, o.count)
}

// graph has the moments of a program, and for each those that lead to it.
type graph struct {
	fifo   bool
	before [][]uint64 // bits of moments, for each moment

	program map[int]int    // by rank: its last moment
	pipe    map[[2]int]int // by rank and pipe: the last instruction
	users   []user         // of scratch memory, which the interlock looks at
	sent    []sentMessage
	signals map[[2]int][]int // by word: the landings of its signals
	copies  map[int]int      // by the number of a copy: its end

	touches []touchedMem
}

type user struct {
	mem
	writes bool
	moment int
}

// sentMessage is one from a rank to another one, posted and landed at moments, by the store pipe or not.
type sentMessage struct {
	from, to       int
	store          bool
	posted, landed int
	copies         bool // in no order with others
	fences         int  // that its program had called when it was issued
}

// touchedMem is what an operation does with memory.
type touchedMem struct {
	mem
	op         int
	writes     bool
	begin, end int // moments: it may happen at any time between
}

func newGraph(fifo bool) *graph {
	return &graph{fifo: fifo, program: map[int]int{}, pipe: map[[2]int]int{}, signals: map[[2]int][]int{}, copies: map[int]int{}}
}

// moment adds one that comes after others; -1 is none.
func (g *graph) moment(after ...int) int {
	n := len(g.before)
	set := make([]uint64, n/64+1)
	for _, a := range after {
		if a < 0 {
			continue
		}
		for i, w := range g.before[a] {
			set[i] |= w
		}
		set[a/64] |= 1 << (a % 64)
	}
	g.before = append(g.before, set)
	return n
}

// leads says whether one moment is before another one.
func (g *graph) leads(a, b int) bool {
	return a/64 < len(g.before[b]) && g.before[b][a/64]>>(a%64)&1 == 1
}

func (g *graph) last(m map[int]int, key int) int {
	if v, ok := m[key]; ok {
		return v
	}
	return -1
}

func (g *graph) touch(op int, m mem, writes bool, moment int) {
	g.touchUntil(op, m, writes, moment, moment)
}

func (g *graph) touchUntil(op int, m mem, writes bool, begin, end int) {
	if m.hi > m.lo {
		g.touches = append(g.touches, touchedMem{m, op, writes, begin, end})
	}
}

// instruction is one of a pipe: after its issue, after the pipe's last one, and after who uses the same scratch memory.
func (g *graph) instruction(rank, pipe, issue int, uses ...user) int {
	after := []int{issue}
	if v, ok := g.pipe[[2]int{rank, pipe}]; ok {
		after = append(after, v)
	}
	for _, u := range uses {
		for _, o := range g.users {
			if u.scratch && o.overlaps(u.mem) && (u.writes || o.writes) {
				after = append(after, o.moment)
			}
		}
	}
	x := g.moment(after...)
	g.pipe[[2]int{rank, pipe}] = x
	for _, u := range uses {
		if u.scratch {
			u.moment = x
			g.users = append(g.users, u)
		}
	}
	return x
}

const (
	pipeLoad = iota
	pipeVector
	pipeStore
)

// post is the landing of a message that is posted at a moment and was issued at another one.
func (g *graph) post(from, to, posted, issued int, store bool) int {
	after := []int{posted}
	fences := g.fencesBefore(from, issued)
	for _, s := range g.sent {
		if s.from != from || s.to != to || s.copies {
			continue
		}
		known := s.posted == posted || g.leads(s.posted, posted)
		switch {
		case g.fifo && (s.store == store || known):
			after = append(after, s.landed)
		case !g.fifo && g.fenced(s, from, fences):
			after = append(after, s.landed)
		}
	}
	landed := g.moment(after...)
	g.sent = append(g.sent, sentMessage{from, to, store, posted, landed, false, fences})
	return landed
}

// fencesBefore is how many fences a program had called before a moment of its own.
func (g *graph) fencesBefore(rank, issued int) int {
	n := 0
	for _, f := range g.copiesOfFences(rank) {
		if g.leads(f, issued) {
			n++
		}
	}
	return n
}

func (g *graph) copiesOfFences(rank int) []int { return g.signals[[2]int{-1, rank}] }

// fenced says whether one of the first fences of a program has a message, known to have been sent, before it.
func (g *graph) fenced(s sentMessage, rank, fences int) bool {
	for _, f := range g.copiesOfFences(rank)[:fences] {
		if g.leads(s.posted, f) {
			return true
		}
	}
	return false
}

// add puts operation number n of the program, in some order that it can run in, into the graph.
func (g *graph) add(n int, o op) {
	issue := g.moment(g.last(g.program, o.rank))
	g.program[o.rank] = issue
	switch o.kind {
	case opLoad, opCombine, opStore:
		g.addInstruction(n, o, issue)
	case opPut, opPutNBI, opPutSignal:
		g.addPut(n, o, issue)
	case opGet, opGetNBI, opCopy:
		end := g.moment(issue)
		g.touch(n, o.from, false, end)
		g.touch(n, o.to, true, end)
		g.sent = append(g.sent, sentMessage{o.rank, o.to.rank, false, issue, end, true, 0})
		g.copies[n] = end
		if o.kind == opGet {
			g.program[o.rank] = g.moment(issue, end)
		}
	case opSignal:
		landed := g.post(o.rank, o.wordRank, issue, issue, false)
		g.signal(o, landed)
	default:
		g.addOrder(o, issue)
	}
}

func (g *graph) signal(o op, landed int) {
	w := [2]int{o.wordRank, o.word}
	g.signals[w] = append(g.signals[w], landed)
}

func (g *graph) addInstruction(n int, o op, issue int) {
	read, second, write := user{mem: o.from}, user{mem: o.other}, user{mem: o.to, writes: true}
	switch o.kind {
	case opLoad:
		x := g.instruction(o.rank, pipeLoad, issue, write)
		g.touch(n, o.from, false, x)
		g.touch(n, o.to, true, x)
	case opCombine:
		x := g.instruction(o.rank, pipeVector, issue, read, second, write)
		g.touch(n, o.from, false, x)
		g.touch(n, o.other, false, x)
		g.touch(n, o.to, true, x)
	case opStore:
		x := g.instruction(o.rank, pipeStore, issue, read)
		g.touch(n, o.from, false, x)
		if o.to.rank == o.rank {
			g.touch(n, o.to, true, x)
			return
		}
		g.touch(n, o.to, true, g.post(o.rank, o.to.rank, x, issue, true))
	}
}

func (g *graph) addPut(n int, o op, issue int) {
	landed := g.post(o.rank, o.to.rank, issue, issue, false)
	g.touch(n, o.to, true, landed)
	if o.kind == opPut {
		g.touch(n, o.from, false, issue)
	} else {
		g.touchUntil(n, o.from, false, issue, landed)
		if o.from.scratch { // the interlock keeps the tile
			g.users = append(g.users, user{o.from, false, landed})
		}
	}
	if o.kind == opPutSignal {
		g.signal(o, g.moment(landed))
	}
}

func (g *graph) addOrder(o op, issue int) {
	after := []int{issue}
	switch o.kind {
	case opWait:
		landed := g.signals[[2]int{o.rank, o.word}]
		after = append(after, landed[:o.count]...)
	case opAwaitCopy:
		after = append(after, g.copies[o.copied])
	case opFence:
		g.signals[[2]int{-1, o.rank}] = append(g.signals[[2]int{-1, o.rank}], issue)
	case opQuiet:
		for _, s := range g.sent {
			if s.from == o.rank && (s.posted == issue || g.leads(s.posted, issue)) {
				after = append(after, s.landed)
			}
		}
	case opDrain:
		for p := pipeLoad; p <= pipeStore; p++ {
			if v, ok := g.pipe[[2]int{o.rank, p}]; ok {
				after = append(after, v)
			}
		}
	}
	g.program[o.rank] = g.moment(after...)
}

// follows says whether what is done with memory comes after something else.
func (g *graph) follows(a, b touchedMem) bool { return a.begin == b.end || g.leads(b.end, a.begin) }

// races lists the pairs of operations, the first one first, that touch the same bytes in no order.
func (g *graph) races() [][2]int {
	var pairs [][2]int
	for i, a := range g.touches {
		for _, b := range g.touches[:i] {
			if a.overlaps(b.mem) && (a.writes || b.writes) && !g.follows(a, b) && !g.follows(b, a) {
				if p := [2]int{min(a.op, b.op), max(a.op, b.op)}; !slices.Contains(pairs, p) {
					pairs = append(pairs, p)
				}
			}
		}
	}
	return pairs
}

// graphOf is the graph of a program without one of its operations; -1 for none.
func graphOf(program []op, without int, fifo bool) *graph {
	g := newGraph(fifo)
	for n, o := range program {
		if n != without {
			g.add(n, o)
		}
	}
	return g
}

// generator makes a program that is right: where a new operation would be in no order with an earlier one, it puts what
// orders them before it.
type generator struct {
	*graph
	rng     *rand.Rand
	ranks   int
	program []op
	next    map[int]int // by rank: where the next tile goes
	tiles   map[int][]mem
	words   map[int]int   // by rank: words that one signal has used
	open    map[int][]int // by rank: copies that are under way
}

const (
	slotBytes    = 64
	windowSlots  = 5
	scratchSlots = 5 // programs make many more tiles than that
)

func newGenerator(seed uint64, fifo bool) *generator {
	rng := rand.New(rand.NewPCG(seed, 15))
	return &generator{
		graph: newGraph(fifo), rng: rng, ranks: 2 + rng.IntN(3), next: map[int]int{}, tiles: map[int][]mem{},
		words: map[int]int{}, open: map[int][]int{},
	}
}

// generate makes a program of about so many operations.
func (g *generator) generate(length int) []op {
	for len(g.program) < length {
		g.random()
	}
	return g.program
}

func (g *generator) place() mem {
	lo := g.rng.IntN(windowSlots) * slotBytes
	hi := lo + slotBytes
	if g.rng.IntN(4) == 0 {
		lo += 8 * g.rng.IntN(4)
		hi -= 8 * g.rng.IntN(4)
	}
	return mem{g.rng.IntN(g.ranks), false, lo, hi}
}

// tile is the next one of a rank, of so many bytes: scratch memory is used again and again.
func (g *generator) tile(rank, bytes int) mem {
	at := g.next[rank]
	if at+bytes > scratchSlots*slotBytes {
		at = 0
	}
	g.next[rank] = at + bytes
	t := mem{rank, true, at, at + bytes}
	g.tiles[rank] = slices.DeleteFunc(g.tiles[rank], func(o mem) bool { return o.overlaps(t) })
	return t
}

// some is a tile of a rank with contents; ok is false when there is none.
func (g *generator) some(rank int) (m mem, ok bool) {
	if list := g.tiles[rank]; len(list) > 0 {
		return list[g.rng.IntN(len(list))], true
	}
	return m, false
}

func (g *generator) random() {
	rank, p := g.rng.IntN(g.ranks), g.place()
	tile, any := g.some(rank)
	own := p
	own.rank = rank
	bytes := p.hi - p.lo
	source := g.place()
	source.rank, source.hi = rank, min(source.lo+bytes, windowSlots*slotBytes)
	q := p
	q.hi = p.lo + source.hi - source.lo
	switch g.rng.IntN(9) {
	case 0, 1:
		t := g.tile(rank, bytes)
		g.emit(op{kind: opLoad, rank: rank, from: p, to: t})
		g.tiles[rank] = append(g.tiles[rank], t)
	case 2:
		if other, _ := g.some(rank); any && other.hi-other.lo == tile.hi-tile.lo {
			t := g.tile(rank, tile.hi-tile.lo)
			if t.overlaps(tile) || t.overlaps(other) {
				return
			}
			g.emit(op{kind: opCombine, rank: rank, from: tile, other: other, to: t})
			g.tiles[rank] = append(g.tiles[rank], t)
		}
	case 3, 4:
		if any {
			q.hi = q.lo + tile.hi - tile.lo
			if q.hi <= windowSlots*slotBytes {
				g.emit(op{kind: opStore, rank: rank, from: tile, to: q})
			}
		}
	case 5:
		g.emit(op{kind: []opKind{opPut, opPutNBI}[g.rng.IntN(2)], rank: rank, from: source, to: q})
	case 6:
		if any {
			q.hi = q.lo + tile.hi - tile.lo
			if q.hi <= windowSlots*slotBytes {
				g.emit(op{kind: opPutNBI, rank: rank, from: tile, to: q})
			}
		}
	case 7:
		g.emit(op{kind: []opKind{opGet, opGetNBI, opCopy}[g.rng.IntN(3)], rank: rank, from: q, to: source})
	case 8:
		g.emit(g.signalling(op{kind: opPutSignal, rank: rank, from: source, to: q}, q.rank))
	}
}

// wordsOf is how many words each rank has.
const wordsOf = 128

// signalling gives an operation a signal to a rank: in one of two words of each sender, whose signals come in their order;
// where messages may overtake each other, in a word of its own.
func (g *generator) signalling(o op, to int) op {
	o.wordRank, o.word = to, o.rank*2+g.rng.IntN(2)
	if !g.fifo {
		g.words[to]++
		o.word = min(2*g.ranks+g.words[to], wordsOf-1)
	}
	return o
}

// emit adds an operation, and before it what orders it after all that it must follow.
func (g *generator) emit(o op) {
	if o.to.overlaps(o.from) || o.to.overlaps(o.other) {
		return
	}
	for range 12 {
		at := len(g.program)
		trial := graphOf(append(g.program[:at:at], o), -1, g.fifo)
		earlier := g.unordered(trial, at)
		if earlier < 0 {
			g.put(o)
			return
		}
		g.order(earlier, o.rank)
	}
}

// unordered finds an operation that the last one is in no order with; -1 for none.
func (g *generator) unordered(t *graph, last int) int {
	for _, a := range t.touches {
		for _, b := range t.touches {
			if a.op == last && b.op < last && a.overlaps(b.mem) && (a.writes || b.writes) && !t.follows(a, b) {
				return b.op
			}
		}
	}
	return -1
}

func (g *generator) put(o op) {
	n := len(g.program)
	g.program = append(g.program, o)
	g.add(n, o)
	if o.kind == opCopy {
		g.open[o.rank] = append(g.open[o.rank], n)
	}
}

// order lets a rank's next operation come after an earlier one: whoever did that waits for it to end, and says so.
func (g *generator) order(earlier, rank int) {
	e := g.program[earlier]
	switch e.kind {
	case opLoad, opCombine:
		g.put(op{kind: opDrain, rank: e.rank})
	case opStore:
		g.put(op{kind: opDrain, rank: e.rank})
		g.arrive(e)
	case opCopy:
		if i := slices.Index(g.open[e.rank], earlier); i >= 0 && g.rng.IntN(2) == 0 {
			g.open[e.rank] = slices.Delete(g.open[e.rank], i, i+1)
			g.put(op{kind: opAwaitCopy, rank: e.rank, copied: earlier})
		} else {
			g.put(op{kind: opQuiet, rank: e.rank})
		}
	default:
		g.arrive(e)
	}
	if e.rank == rank {
		return
	}
	s := g.signalling(op{kind: opSignal, rank: e.rank}, rank)
	g.put(s)
	g.put(op{kind: opWait, rank: rank, wordRank: rank, word: s.word, count: int64(len(g.signals[[2]int{rank, s.word}]))})
}

// arrive makes sure that a message has landed, for who hears of it by a signal to its destination or to somebody else.
func (g *generator) arrive(e op) {
	if g.rng.IntN(3) == 0 {
		g.put(op{kind: opFence, rank: e.rank})
	}
	g.put(op{kind: opQuiet, rank: e.rank})
}
