package ccl

import (
	"math"
	"math/bits"
)

// grain is the size in bytes of a message that takes as long to transfer as it keeps the next one from starting: on the
// default fabric the setup of a DMA engine, 300 ns shared by eight engines, times a SIP link's 100 GB/s. It only decides
// how finely work is cut, so a rough value will do for all fabrics.
const grain = 4 << 10

// maxDepth bounds the number of steps; beyond it the time to fill the pipeline is lost in the whole.
const maxDepth = 128

// pipelineDepth is into how many parts to cut bytes that pass through a pipeline of that many stages, when a part takes
// that many messages in each stage. With the time in which a message can start as the unit, k parts take
// (stages-1+k)·(messages + bytes/(k·grain)) besides latencies; this is least at k = √((stages-1)·bytes/(messages·grain)).
// The result is a power of two.
func pipelineDepth(stages, messages int, bytes int64) int {
	if stages < 2 || messages < 1 || bytes < 1 {
		return 1
	}
	best := math.Sqrt(float64(stages-1) * float64(bytes) / float64(messages) / grain)
	return powerOfTwoBelow(int(min(best, maxDepth)))
}

// latencyBytes is how much a message could carry in the time in which it only travels: on the default fabric 830 ns
// between neighbours, times a SIP link's 100 GB/s.
const latencyBytes = 80 << 10

// chainDepth is into how many pieces to cut what a chain of ranks hands on, when a piece follows the one before it once
// that has arrived. With the latency of a message as the unit, k pieces take (n-2+k)·(1 + bytes/(k·latencyBytes)) in a
// world of n; this is least at k = √((n-2)·bytes/latencyBytes). The result is a power of two.
func chainDepth(l Layout, bytes int64) int {
	if l.World < 3 || bytes < 1 {
		return 1
	}
	best := math.Sqrt(float64(l.World-2) * float64(bytes) / latencyBytes)
	return nearestPowerOfTwo(min(best, maxDepth))
}

// nearestPowerOfTwo is the power of two nearest to x by its ratio to x, and 1 for x < 1.
func nearestPowerOfTwo(x float64) int {
	return 1 << int(math.Round(math.Log2(max(x, 1))))
}

// powerOfTwoBelow is the largest power of two that is at most n, and 1 for n < 1.
func powerOfTwoBelow(n int) int {
	return 1 << (bits.Len(uint(max(n, 1))) - 1)
}
