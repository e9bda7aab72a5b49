package tp

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
)

// Grid is the process groups of an [Arrangement]. All ranks share it; what belongs to one rank is its [State].
type Grid struct {
	*Arrangement
	backend    *distributed.Backend
	partitions map[partitionKey]*partition
}

// partition is all groups of a kind. A process group is made when a rank first asks for it.
type partition struct {
	firstID int
	groups  [][]int     // World ranks
	of      map[int]int // which of the groups a World rank is in
	made    []*distributed.ProcessGroup
}

// InitializeModelParallel arranges the ranks of a process group, usually that of all ranks, for the given sizes, as
// [Arrange] does. Groups have numbers that follow the world's, whoever asks for which first.
func InitializeModelParallel(b *distributed.Backend, world *distributed.ProcessGroup, c Config) (*Grid, error) {
	if b == nil || world == nil {
		return nil, &NotInitializedError{Group: "default process"}
	}
	a, err := Arrange(world.Members, c)
	if err != nil {
		return nil, err
	}
	g := &Grid{Arrangement: a, backend: b, partitions: map[partitionKey]*partition{}}
	nextID := world.ID + 1
	for _, key := range a.keys {
		g.partitions[key] = newPartition(nextID, a.groups[key])
		nextID += len(a.groups[key])
	}
	return g, nil
}

func newPartition(firstID int, groups [][]int) *partition {
	p := &partition{firstID: firstID, groups: groups, of: map[int]int{}, made: make([]*distributed.ProcessGroup, len(groups))}
	for i, ranks := range groups {
		for _, r := range ranks {
			p.of[r] = i
		}
	}
	return p
}

// group returns the group that a rank is in; nil when it is in none.
func (g *Grid) group(key partitionKey, rank int) (*distributed.ProcessGroup, error) {
	p, ok := g.partitions[key]
	if !ok {
		return nil, nil
	}
	i, ok := p.of[rank]
	if !ok {
		return nil, nil
	}
	if p.made[i] == nil {
		made, err := g.backend.NewGroup(p.firstID+i, fmt.Sprintf("%v %d", key.kind, i), p.groups[i])
		if err != nil {
			return nil, err
		}
		p.made[i] = made
	}
	return p.made[i], nil
}

// State returns what a rank has of the grid. It is an error when the rank is not one of those that were arranged.
func (g *Grid) State(p *multiprocessing.Process) (*State, error) {
	if !slices.Contains(g.ranks, p.ID) {
		return nil, fmt.Errorf("rank %d is not one of the arranged ranks, which are %v", p.ID, g.ranks)
	}
	return &State{
		process: p, grid: g, ranks: map[GroupKind]int{}, sizes: map[GroupKind]int{},
		virtualSize: g.config.VirtualPipelineModelParallelSize,
	}, nil
}
