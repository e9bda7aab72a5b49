package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allReduceNVLS has the switch reduce a block for each rank, which multicasts it, as NCCL's NVLS does: a rank's link
// carries the vector once each way and a block more, where a ring's carries it nearly twice. The blocks are cut so that
// the multicast of a piece overlaps the reduction of the next.
func allReduceNVLS() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       nvls,
		depth:      switchDepth,
		shape:      func(l Layout, depth int) (blocks, sub int) { return l.World, depth },
		queued:     true,
		needs:      Switching{Multicast: true, Reduce: true},
		steps: func(l Layout, depth int) phase {
			return lanes(depth, func(lane int) phase {
				ranks, owned := everyRank(l.World), make([]part, l.World)
				for r := range owned {
					owned[r] = part{{r*depth + lane, r*depth + lane + 1}}
				}
				return chain(switchReduceScatter(ranks, owned), switchAllGather(ranks, owned))
			})
		},
	}
}

// nvls is the algorithms in which a switch works, by the name that NCCL gives them.
const nvls = "nvls"
