package ccl

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// Kind is what a Step does with the value that arrives.
type Kind uint8

// A Step either replaces the destination's value or reduces into it; or the switch that joins the ranks of a group copies
// a member's value to all of them, or reduces their inputs for a member. It reduces in the order of ranks,
// ((v0 ⊕ v1) ⊕ v2) ⊕ …: floats narrower than 32 bits in float32, rounded once in the end, as NVLink SHARP does; others in
// their own format. In a schedule in which a switch reduces no rank does.
const (
	Copy           Kind = iota // dst ← src
	Reduce                     // dst ← src ⊕ dst, one rounding
	Multicast                  // every member ← src
	ReduceInSwitch             // dst ← v0 ⊕ v1 ⊕ …, the inputs of all members
)

// inSwitch says whether a switch does it, for a group.
func (k Kind) inSwitch() bool { return k >= Multicast }

// Step moves the value of some chunks from rank Src to rank Dst, in one message. Src may equal Dst, then nothing crosses
// a link. What a switch does for a group is issued by a member, which is both Src and Dst.
type Step struct {
	Src, Dst  int32
	Lo, Hi    int32 // the chunks [Lo, Hi); or those of a list, see [Schedule.Listed]
	Kind      Kind
	FromInput bool   // send the rank's input as it was at the start, not its current value
	Group     uint16 // of Multicast and ReduceInSwitch: see [Schedule.Groups]
}

// crosses says whether the step moves anything over a link.
func (s *Step) crosses() bool { return s.Src != s.Dst || s.Kind.inSwitch() }

// Gate says which half of a step an edge holds back.
type Gate uint8

// A step first sends, then (for a Reduce) combines with the local operand.
const (
	GateSend    Gate = iota // the value to be sent is not there yet
	GateCombine             // the local operand is not there yet
)

// Edge says that a step waits, at one of its gates, for an earlier step to complete.
type Edge uint32

// To is the index of the waiting step.
func (e Edge) To() int { return int(e >> 1) }

// Gate is the half of the waiting step that is held back.
func (e Edge) Gate() Gate { return Gate(e & 1) }

// Schedule is a collective algorithm laid out as pure data: which rank sends which chunks to whom, and what each
// step waits for. It knows neither link speeds nor element values, so it serves every count and dtype, and timing
// can never change a bit: the operands of a reduction are edges here.
//
// The vector that the collective works on is cut into Blocks·Sub chunks; see [Schedule.Span]. Where ranks have blocks,
// Blocks == World and block r is rank r's. In an AllToAll a block's place says how far it goes: block k of rank r starts
// as what r sends to rank r+k and ends as what r got from rank r-k (mod World), so that it never changes its place.
type Schedule struct {
	Collective collective.Kind
	Algorithm  string
	World      int // ranks
	Root       int // of Broadcast, ReduceToRoot, Gather and Scatter; see [Layout]
	Blocks     int
	Sub        int // chunks a block is cut into

	Steps []Step

	// Listed are chunks for steps that move some which do not adjoin: a step with Lo from Chunks() on moves the chunks
	// Listed[Lo-Chunks():Hi-Chunks()].
	Listed []int32

	// Groups are ranks for which a switch multicasts and reduces, each in ascending order.
	Groups [][]int32

	// InTurn says that a rank sends one message at a time, in the order of the steps: it starts the next when the last
	// has arrived, and not before the next one's own edges allow. Otherwise it sends whatever there is to be sent.
	InTurn bool

	// Queued says that a rank sends one message at a time to each other rank, in the order of the steps; and for each group
	// one multicast at a time, and one reduction.
	Queued bool

	// Round k is the steps from Rounds[k] up to Rounds[k+1], or up to the last step. A step sends the value that its
	// source held before the step's round began; writes into one chunk of one rank take effect in step order. Rounds
	// define the values only: in time, a step runs as soon as its edges allow.
	Rounds []uint32

	// Edges out of step i are Edges[EdgeStart[i]:EdgeStart[i+1]].
	Edges     []Edge
	EdgeStart []uint32

	// SendWaits[i] and CombineWaits[i] count the edges into each gate of step i.
	SendWaits, CombineWaits []uint16

	derived derived
}

// Chunks is the number of chunks the vector is cut into.
func (s *Schedule) Chunks() int { return s.Blocks * s.Sub }

// Chunk is the chunk at a place between a step's Lo and Hi: itself, or one that is listed.
func (s *Schedule) Chunk(place int32) int {
	if n := s.Chunks(); int(place) >= n {
		return int(s.Listed[int(place)-n])
	}
	return int(place)
}

// isListed says whether a step moves listed chunks.
func (s *Schedule) isListed(step *Step) bool { return int(step.Lo) >= s.Chunks() }

// list is the listed chunks that a step moves.
func (s *Schedule) list(step *Step) []int32 {
	n := s.Chunks()
	return s.Listed[int(step.Lo)-n : int(step.Hi)-n]
}

// contains says whether there are steps of a kind.
func (s *Schedule) contains(k Kind) bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Kind == k })
}

// reducesInSwitch says whether a switch does all the reductions: a Builder takes either those, or those of ranks.
func (s *Schedule) reducesInSwitch() bool { return len(s.Groups) > 0 && s.Collective.Reduces() }

// Span returns the elements [lo, hi) of the whole vector that chunk c covers when the vector has n elements and equal
// blocks. Shares differ by at most one element; the first ones are the longer. Where ranks have blocks n is a multiple
// of World, so that they are equal. For AllToAll the vector is what one rank starts with.
func (s *Schedule) Span(c, n int) (lo, hi int) {
	whole := s.cut(n, nil)
	return whole.chunk(c)
}

// round returns the steps [lo, hi) of round k.
func (s *Schedule) round(k int) (lo, hi int) {
	hi = len(s.Steps)
	if k+1 < len(s.Rounds) {
		hi = int(s.Rounds[k+1])
	}
	return int(s.Rounds[k]), hi
}

// cut is how a vector is cut into the chunks of a schedule.
type cut struct {
	elems, blocks, sub int
	starts             []int // where each block starts and the last one ends; nil: blocks are equal shares
}

// cut cuts elems elements into blocks of the given sizes; nil: equal ones.
func (s *Schedule) cut(elems int, sizes []int) cut {
	c := cut{elems: elems, blocks: s.Blocks, sub: s.Sub}
	if sizes != nil {
		c.starts = sums(sizes)
	}
	return c
}

// sums lists the sums of the first 0, 1, … of the sizes.
func sums(sizes []int) []int {
	list := make([]int, 1, len(sizes)+1)
	total := 0
	for _, n := range sizes {
		total += n
		list = append(list, total)
	}
	return list
}

// block returns the elements of block b.
func (c *cut) block(b int) (lo, hi int) {
	if c.starts != nil {
		return c.starts[b], c.starts[b+1]
	}
	return share(c.elems, c.blocks, b)
}

// chunk returns the elements of a chunk.
func (c *cut) chunk(k int) (lo, hi int) {
	first, end := c.block(k / c.sub)
	lo, hi = share(end-first, c.sub, k%c.sub)
	return first + lo, first + hi
}

// share returns the i-th of k nearly equal shares of n elements.
func share(n, k, i int) (lo, hi int) {
	size, longer := n/k, n%k
	lo = i*size + min(i, longer)
	hi = lo + size
	if i < longer {
		hi++
	}
	return lo, hi
}
