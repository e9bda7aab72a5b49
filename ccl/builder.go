package ccl

import (
	"fmt"
	"math"
	"slices"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// Builder lays out a Schedule round by round and derives the edges.
//
// Within a round every send takes the value that its source held before the round, and several writes into the same
// chunk of the same rank take effect in the order in which they were added. Edges are true dependencies
// (read after write) only: each write makes a new version of a chunk, as if receive buffers were unbounded, so that
// no step ever waits for a reader of an older version.
//
// A Builder takes four bytes for every chunk of every rank while it builds, as long as these are not too many. Its methods panic on ranks and chunks out
// of range: that is a mistake in an algorithm, never in a user's input.
type Builder struct {
	schedule *Schedule

	writers writers

	// The edges found so far, in the order found: waits[k] is for step from[k].
	from  []uint32
	waits []Edge

	listed []uint32 // the writers of a list of chunks, while they are looked at

	// seen[p] is the gate, plus one, that was last found to wait for step p: so that a step over many chunks which
	// one step wrote waits for it once.
	seen []uint32

	open int // first step of the round that is being added to
}

// NewBuilder starts a schedule of the named algorithm over a vector of blocks·sub chunks; see [Schedule].
func NewBuilder(c collective.Kind, algorithm string, world, blocks, sub int) *Builder {
	if world < 1 || blocks < 1 || sub < 1 {
		panic(fmt.Sprintf("ccl: %s: schedule of %d ranks, %d blocks, %d chunks a block: each must be at least 1",
			algorithm, world, blocks, sub))
	}
	return &Builder{
		schedule: &Schedule{Collective: c, Algorithm: algorithm, World: world, Blocks: blocks, Sub: sub},
		writers:  newWriters(world, blocks*sub),
	}
}

// Root names the rank that a Broadcast or Scatter starts from, or a ReduceToRoot or Gather ends at. It is 0 otherwise.
func (b *Builder) Root(rank int) {
	b.checkRank(rank)
	b.schedule.Root = rank
}

// InTurn makes ranks send one message at a time: see [Schedule].
func (b *Builder) InTurn() { b.schedule.InTurn = true }

// Queued makes ranks send one message at a time to each other rank: see [Schedule].
func (b *Builder) Queued() { b.schedule.Queued = true }

// List returns a range [lo, hi) for one step that moves all these chunks, adjoining or not.
func (b *Builder) List(chunks []int) (lo, hi int) {
	s := b.schedule
	adjoin := true
	for i, c := range chunks {
		if c < 0 || c >= s.Chunks() {
			panic(fmt.Sprintf("ccl: %s: chunk %d is listed: there are %d chunks", s.Algorithm, c, s.Chunks()))
		}
		adjoin = adjoin && c == chunks[0]+i
	}
	if len(chunks) == 0 {
		return 0, 0
	}
	if adjoin {
		return chunks[0], chunks[0] + len(chunks)
	}
	lo = s.Chunks() + len(s.Listed)
	for _, c := range chunks {
		s.Listed = append(s.Listed, int32(c))
	}
	return lo, lo + len(chunks)
}

// Expect reserves room for that many steps in all. It saves time on long schedules and changes nothing else.
func (b *Builder) Expect(steps int) {
	s := b.schedule
	s.Steps = append(make([]Step, 0, steps), s.Steps...)
	s.SendWaits = append(make([]uint16, 0, steps), s.SendWaits...)
	s.CombineWaits = append(make([]uint16, 0, steps), s.CombineWaits...)
	b.seen = append(make([]uint32, 0, steps), b.seen...)
	b.from = append(make([]uint32, 0, steps), b.from...)
	b.waits = append(make([]Edge, 0, steps), b.waits...)
}

// Copy makes dst's chunks [lo, hi) those of src. An empty range adds no step, and a range from List stands for the chunks
// listed; so for the other three.
func (b *Builder) Copy(src, dst, lo, hi int) { b.add(src, dst, lo, hi, Copy, false) }

// Reduce reduces src's chunks [lo, hi) into dst's: dst ← src ⊕ dst.
func (b *Builder) Reduce(src, dst, lo, hi int) { b.add(src, dst, lo, hi, Reduce, false) }

// CopyInput is Copy of the value that src started with, whatever was written over it since.
func (b *Builder) CopyInput(src, dst, lo, hi int) { b.add(src, dst, lo, hi, Copy, true) }

// ReduceInput is Reduce of the value that src started with.
func (b *Builder) ReduceInput(src, dst, lo, hi int) { b.add(src, dst, lo, hi, Reduce, true) }

// Multicast lets the switch that joins members, in ascending order, give all of them the chunks [lo, hi) of src, which is
// one of them.
func (b *Builder) Multicast(src int, members []int, lo, hi int) {
	b.addInSwitch(src, members, lo, hi, Multicast)
}

// ReduceInSwitch lets the switch that joins members, in ascending order, reduce what they started with of the chunks
// [lo, hi) for dst, which is one of them.
func (b *Builder) ReduceInSwitch(members []int, dst, lo, hi int) {
	b.addInSwitch(dst, members, lo, hi, ReduceInSwitch)
}

func (b *Builder) addInSwitch(by int, members []int, lo, hi int, k Kind) {
	group := b.group(by, members)
	before := len(b.schedule.Steps)
	b.add(by, by, lo, hi, k, k == ReduceInSwitch)
	for i := before; i < len(b.schedule.Steps); i++ {
		b.schedule.Steps[i].Group = group
	}
}

// group is the number of a group, which is listed when it is new.
func (b *Builder) group(by int, members []int) uint16 {
	s := b.schedule
	list := make([]int32, len(members))
	for i, m := range members {
		b.checkRank(m)
		list[i] = int32(m)
		if i > 0 && m <= members[i-1] {
			panic(fmt.Sprintf("ccl: %s: rank %d follows rank %d in a group: ranks must ascend", s.Algorithm, m, members[i-1]))
		}
	}
	if !slices.Contains(members, by) {
		panic(fmt.Sprintf("ccl: %s: rank %d is none of the group %v", s.Algorithm, by, members))
	}
	k := slices.IndexFunc(s.Groups, func(g []int32) bool { return slices.Equal(g, list) })
	if k < 0 {
		k = len(s.Groups)
		s.Groups = append(s.Groups, list)
	}
	if k > math.MaxUint16 {
		panic(fmt.Sprintf("ccl: %s: there are more than %d groups", s.Algorithm, math.MaxUint16+1))
	}
	return uint16(k)
}

func (b *Builder) add(src, dst, lo, hi int, k Kind, fromInput bool) {
	s := b.schedule
	b.checkRank(src)
	b.checkRank(dst)
	if lo < 0 || lo > hi || hi > s.Chunks() && (lo < s.Chunks() || hi > s.Chunks()+len(s.Listed)) {
		panic(fmt.Sprintf("ccl: %s: step from rank %d to rank %d, chunks [%d, %d): there are %d chunks, and %d in lists",
			s.Algorithm, src, dst, lo, hi, s.Chunks(), len(s.Listed)))
	}
	if lo == hi {
		return
	}
	s.Steps = append(s.Steps, Step{Src: int32(src), Dst: int32(dst), Lo: int32(lo), Hi: int32(hi), Kind: k, FromInput: fromInput})
	s.SendWaits = append(s.SendWaits, 0)
	s.CombineWaits = append(s.CombineWaits, 0)
	b.seen = append(b.seen, 0)
}

func (b *Builder) checkRank(rank int) {
	if s := b.schedule; rank < 0 || rank >= s.World {
		panic(fmt.Sprintf("ccl: %s: rank %d: there are %d ranks", s.Algorithm, rank, s.World))
	}
}

// EndRound makes the writes of the round visible to the sends of the next. A round without steps is no round.
func (b *Builder) EndRound() {
	s := b.schedule
	if b.open == len(s.Steps) {
		return
	}
	for i := b.open; i < len(s.Steps); i++ {
		if step := &s.Steps[i]; !step.FromInput {
			s.SendWaits[i] = b.await(i, GateSend, b.writersOf(step.Src, step))
		}
	}
	for i := b.open; i < len(s.Steps); i++ {
		step := &s.Steps[i]
		if step.Kind == Reduce {
			s.CombineWaits[i] = b.await(i, GateCombine, b.writersOf(step.Dst, step))
		}
		if step.Kind == Multicast {
			b.writeAtAll(step, uint32(i)+1)
		} else {
			b.writeAt(step.Dst, step, uint32(i)+1)
		}
	}
	s.Rounds = append(s.Rounds, uint32(b.open))
	b.open = len(s.Steps)
}

// writersOf is the writers of the step's chunks at a rank.
func (b *Builder) writersOf(rank int32, step *Step) []uint32 {
	s := b.schedule
	if !s.isListed(step) {
		return b.writers.of(int(rank), int(step.Lo), int(step.Hi))
	}
	b.listed = b.listed[:0]
	for _, c := range s.list(step) {
		b.listed = append(b.listed, b.writers.of(int(rank), int(c), int(c)+1)...)
	}
	return b.listed
}

// writeAtAll makes w the writer of a step's chunks at all members of its group.
func (b *Builder) writeAtAll(step *Step, w uint32) {
	for _, member := range b.schedule.Groups[step.Group] {
		b.writeAt(member, step, w)
	}
}

// writeAt makes w the writer of a step's chunks at a rank.
func (b *Builder) writeAt(rank int32, step *Step, w uint32) {
	s := b.schedule
	if !s.isListed(step) {
		b.writers.set(int(rank), int(step.Lo), int(step.Hi), w)
		return
	}
	for _, c := range s.list(step) {
		b.writers.set(int(rank), int(c), int(c)+1, w)
	}
}

// await makes one gate of step i wait for all writers, and counts them.
func (b *Builder) await(i int, g Gate, writers []uint32) uint16 {
	edge := Edge(i)<<1 | Edge(g)
	count, previous := 0, uint32(0)
	for _, w := range writers {
		if w == previous || w == 0 {
			continue
		}
		previous = w
		if b.seen[w-1] == uint32(edge)+1 {
			continue
		}
		b.seen[w-1] = uint32(edge) + 1
		b.from = append(b.from, w-1)
		b.waits = append(b.waits, edge)
		count++
	}
	if count > int(^uint16(0)) {
		panic(fmt.Sprintf("ccl: %s: step %d waits for %d others; at most 65535 can be counted",
			b.schedule.Algorithm, i, count))
	}
	return uint16(count)
}

// Schedule ends the last round and returns what was built. The Builder must not be used afterwards.
func (b *Builder) Schedule() *Schedule {
	b.EndRound()
	s := b.schedule
	if len(s.Groups) > 0 && s.contains(Reduce) && s.contains(ReduceInSwitch) {
		panic(fmt.Sprintf("ccl: %s: both ranks and a switch reduce", s.Algorithm))
	}
	s.EdgeStart = make([]uint32, len(s.Steps)+1)
	for _, f := range b.from {
		s.EdgeStart[f+1]++
	}
	for i := range s.Steps {
		s.EdgeStart[i+1] += s.EdgeStart[i]
	}
	s.Edges = make([]Edge, len(b.waits))
	next := b.seen // no longer needed for its own purpose
	copy(next, s.EdgeStart)
	for k, f := range b.from {
		s.Edges[next[f]] = b.waits[k]
		next[f]++
	}
	return s
}
