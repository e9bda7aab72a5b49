package ccl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// Auto is the name that stands for "let the Tuner choose". It is no Algorithm.
const Auto = "auto"

// Algorithm lays one collective out for any number of ranks.
type Algorithm interface {
	Name() string
	Collective() collective.Kind

	// Depth is the number of parts, a power of two, that the algorithm cuts its work into so that one part's
	// transfers overlap another's. It is all that the vector's size in bytes decides: two calls with the same Layout
	// and the same Depth build the same Schedule.
	Depth(l Layout, bytes int64) int

	// Build returns the schedule for a vector of that many bytes. It panics on a Layout that contradicts itself.
	Build(l Layout, bytes int64) *Schedule
}

// Algorithms lists the algorithms of a collective. A new one is one more line here.
func Algorithms(c collective.Kind) []Algorithm {
	switch c {
	case collective.AllReduce:
		return []Algorithm{
			allReduceRing(),
			allReduceBidirectionalRing(),
			allReduceHalvingDoubling(),
			allReduceDoubleBinaryTree(),
			allReduceOneShot(),
			allReduceTwoShot(),
			allReduceTorus2D(),
			allReduceHierarchical(),
			allReduceHierarchicalDirect(),
			allReduceTwoShotStaggered(),
			allReduceNVLS(),
		}
	case collective.AllGather:
		return []Algorithm{
			allGatherRing(),
			allGatherBidirectionalRing(),
			allGatherRecursive(),
			allGatherDirect(),
			allGatherHierarchical(),
			allGatherHierarchicalDirect(),
			allGatherTorus2D(),
			allGatherNVLS(),
		}
	case collective.ReduceScatter:
		return []Algorithm{
			reduceScatterRing(),
			reduceScatterBidirectionalRing(),
			reduceScatterRecursive(),
			reduceScatterDirect(),
			reduceScatterHierarchical(),
			reduceScatterHierarchicalDirect(),
			reduceScatterDirectStaggered(),
			reduceScatterTorus2D(),
			reduceScatterNVLS(),
		}
	case collective.Broadcast:
		return []Algorithm{
			broadcastBinomial(),
			broadcastChain(),
			broadcastDirect(),
			broadcastDoubleBinaryTree(),
			broadcastScatterDirect(),
			broadcastScatterRecursive(),
			broadcastScatterBidirectionalRing(),
			broadcastScatterHierarchical(),
			broadcastTorus2D(),
			broadcastBidirectionalChain(),
			broadcastHierarchical(),
			broadcastNVLS(),
		}
	case collective.Reduce:
		return []Algorithm{
			reduceBinomial(),
			reduceChain(),
			reduceDirect(),
			reduceDoubleBinaryTree(),
			reduceDirectGather(),
			reduceRecursiveGather(),
			reduceBidirectionalRingGather(),
			reduceHierarchicalGather(),
			reduceTorus2D(),
			reduceBidirectionalChain(),
			reduceHierarchical(),
			reduceNVLS(),
		}
	case collective.Gather:
		return []Algorithm{gatherBinomial(), gatherDirect(), gatherBidirectionalRing(), gatherHierarchical(), gatherTorus2D()}
	case collective.Scatter:
		return []Algorithm{scatterBinomial(), scatterDirect(), scatterBidirectionalRing(), scatterHierarchical(), scatterTorus2D()}
	case collective.AllToAll:
		return []Algorithm{allToAllPairwise(), allToAllDirect(), allToAllBruck()}
	}
	return nil
}

// Lookup finds an algorithm by its name. The error lists the names there are.
func Lookup(c collective.Kind, name string) (Algorithm, error) {
	known := Algorithms(c)
	for _, a := range known {
		if a.Name() == name {
			return a, nil
		}
	}
	return nil, fmt.Errorf("unknown %s algorithm %q: choose one of %s", c, name, strings.Join(names(known), ", "))
}

// names are the algorithms' names, sorted.
func names(algorithms []Algorithm) []string {
	var list []string
	for _, a := range algorithms {
		list = append(list, a.Name())
	}
	slices.Sort(list)
	return list
}
