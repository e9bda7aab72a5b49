package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allReduceHierarchicalDirect reduces and gathers a block for each rank, straight inside the groups and round rings
// between them: see reduceScatterHierarchicalDirect and allGatherHierarchicalDirect.
func allReduceHierarchicalDirect() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "hierarchical_direct",
		queued:     true,
		steps: func(l Layout, _ int) phase {
			h := l.hierarchy(l.World)
			return chain(h.directReduceScatter(), h.directAllGather())
		},
	}
}
