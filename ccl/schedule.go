package ccl

import "fmt"

// Collective is what a Schedule computes.
type Collective uint8

// The collectives that algorithms exist for.
const (
	AllReduce     Collective = iota // every rank ends with the reduction of all ranks' vectors
	AllGather                       // every rank ends with the concatenation of all ranks' blocks
	ReduceScatter                   // rank r ends with block r of the reduction
	Broadcast                       // every rank ends with the root's vector
	ReduceToRoot                    // the root ends with the reduction of all ranks' vectors
	Gather                          // the root ends with the concatenation of all ranks' blocks
	Scatter                         // rank r ends with block r of the root's vector
	AllToAll                        // rank r ends with block r of every rank's vector, one after another
)

// collectiveNames are those of torch.distributed and of ccl.yaml.
var collectiveNames = [...]string{
	AllReduce: "all_reduce", AllGather: "all_gather", ReduceScatter: "reduce_scatter", Broadcast: "broadcast",
	ReduceToRoot: "reduce", Gather: "gather", Scatter: "scatter", AllToAll: "all_to_all",
}

// String is the collective's name in torch.distributed and in ccl.yaml.
func (c Collective) String() string {
	if int(c) < len(collectiveNames) {
		return collectiveNames[c]
	}
	return fmt.Sprintf("Collective(%d)", uint8(c))
}

// Kind is what a Step does with the value that arrives.
type Kind uint8

// A Step either replaces the destination's value or reduces into it.
const (
	Copy   Kind = iota // dst ← src
	Reduce             // dst ← src ⊕ dst, one rounding
)

// Step moves the value of the chunks [Lo, Hi) from rank Src to rank Dst. Src may equal Dst, then nothing crosses
// a link.
type Step struct {
	Src, Dst  int32
	Lo, Hi    int32
	Kind      Kind
	FromInput bool // send the rank's input as it was at the start, not its current value
}

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
// The vector that the collective works on is cut into Blocks·Sub chunks; see [Schedule.Span].
type Schedule struct {
	Collective Collective
	Algorithm  string
	World      int // ranks
	Blocks     int // equal shares of the vector; for AllGather and ReduceScatter Blocks == World and block r is rank r's
	Sub        int // chunks a block is cut into

	Steps []Step

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

// Span returns the elements [lo, hi) of the whole vector that chunk c covers when the vector has n elements.
// Shares differ by at most one element; the first ones are the longer. For AllGather and ReduceScatter n is a
// multiple of World, so that blocks are equal.
func (s *Schedule) Span(c, n int) (lo, hi int) {
	blockLo, blockHi := share(n, s.Blocks, c/s.Sub)
	lo, hi = share(blockHi-blockLo, s.Sub, c%s.Sub)
	return blockLo + lo, blockLo + hi
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
