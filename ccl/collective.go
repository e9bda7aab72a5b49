package ccl

import (
	"fmt"
	"strings"
)

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

	collectives // how many there are
)

// collectiveNames are those of torch.distributed and of ccl.yaml.
var collectiveNames = [collectives]string{
	AllReduce: "all_reduce", AllGather: "all_gather", ReduceScatter: "reduce_scatter", Broadcast: "broadcast",
	ReduceToRoot: "reduce", Gather: "gather", Scatter: "scatter", AllToAll: "all_to_all",
}

// String is the collective's name in torch.distributed and in ccl.yaml.
func (c Collective) String() string {
	if c < collectives {
		return collectiveNames[c]
	}
	return fmt.Sprintf("Collective(%d)", uint8(c))
}

// reduces says whether elements are combined: the others only move them.
func (c Collective) reduces() bool {
	return c == AllReduce || c == ReduceScatter || c == ReduceToRoot
}

// rooted says whether one rank has a part of its own.
func (c Collective) rooted() bool {
	return c == Broadcast || c == ReduceToRoot || c == Gather || c == Scatter
}

// sizes is how many blocks may differ in size: none where ranks have whole vectors.
func (c Collective) sizes(world int) int {
	switch c {
	case AllGather, ReduceScatter, Gather, Scatter:
		return world
	case AllToAll:
		return world * world
	}
	return 0
}

// An extent is how much of the vector a rank has at the start, or at the end.
type extent uint8

const (
	everything extent = iota
	ownBlock
	nothing
)

// starts is what a rank starts with. For AllToAll everything is the blocks for all ranks.
func (s *Schedule) starts(rank int) extent {
	switch s.Collective {
	case AllGather, Gather:
		return ownBlock
	case Broadcast, Scatter:
		return s.onlyRoot(rank)
	}
	return everything
}

// ends is what a rank ends with. For AllToAll everything is the blocks of all ranks.
func (s *Schedule) ends(rank int) extent {
	switch s.Collective {
	case ReduceScatter, Scatter:
		return ownBlock
	case ReduceToRoot, Gather:
		return s.onlyRoot(rank)
	}
	return everything
}

func (s *Schedule) onlyRoot(rank int) extent {
	if rank == s.Root {
		return everything
	}
	return nothing
}

// has says whether the chunk is part of what the rank has.
func (s *Schedule) has(e extent, rank, chunk int) bool {
	return e == everything || e == ownBlock && chunk/s.Sub == rank
}

// ParseCollective finds a collective by its name; the error lists the names.
func ParseCollective(name string) (Collective, error) {
	for c, known := range collectiveNames {
		if known == name {
			return Collective(c), nil
		}
	}
	return 0, fmt.Errorf("unknown collective %q: choose one of %s", name, strings.Join(collectiveNames[:], ", "))
}
