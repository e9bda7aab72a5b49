package tp

import (
	"fmt"
	"strings"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
)

// State is what one rank knows of the groups it is in: Megatron's parallel_state. The zero State, a nil one and one that
// was destroyed are not initialized; all their answers are a [*NotInitializedError].
type State struct {
	process      *multiprocessing.Process
	grid         *Grid
	ranks, sizes map[GroupKind]int // what was set instead of the group's own
	virtualSize  int
	virtualRank  int
}

// Initialized says whether the rank has groups.
func (s *State) Initialized() bool { return s != nil && s.grid != nil }

// Destroy forgets the groups.
func (s *State) Destroy() { *s = State{} }

// Group returns the group of a kind that the rank is in.
func (s *State) Group(k GroupKind) (*distributed.ProcessGroup, error) {
	return s.group(partitionKey{kind: k}, "")
}

// HierarchicalContextParallelGroup returns the rank's group on a level of the hierarchy of its context parallel group;
// 0 is the innermost.
func (s *State) HierarchicalContextParallelGroup(level int) (*distributed.ProcessGroup, error) {
	return s.group(partitionKey{hierarchicalContextParallel, level}, fmt.Sprintf("there is no level %d", level))
}

// HybridDataContextParallelGroup returns the rank's group of a number of ranks that have data and context parallelism
// between them: a power of two from 2 on, or all of them.
func (s *State) HybridDataContextParallelGroup(size int) (*distributed.ProcessGroup, error) {
	all, err := s.Group(DataParallelWithCP)
	if err != nil || all.Size() == size {
		return all, err
	}
	return s.group(partitionKey{hybridDataContextParallel, size}, fmt.Sprintf("there is none of %d ranks", size))
}

// group finds a group, or says why there is none: because of why, or because the rank is in no group of the kind.
func (s *State) group(key partitionKey, why string) (*distributed.ProcessGroup, error) {
	if !s.Initialized() {
		return nil, &NotInitializedError{Group: key.kind.String()}
	}
	group, err := s.grid.group(key, s.process.ID)
	if err != nil {
		return nil, err
	}
	if group == nil {
		if why == "" {
			why = fmt.Sprintf("rank %d is in none", s.process.ID)
		}
		return nil, &NotInitializedError{key.kind.String(), why}
	}
	return group, nil
}

// Comm returns what layers communicate through among the ranks of a group.
func (s *State) Comm(k GroupKind) (*Comm, error) {
	group, err := s.Group(k)
	if err != nil {
		return nil, err
	}
	return NewComm(s.grid.backend, s.process, group)
}

// Rank is the rank's number in its group of a kind, unless another was set.
func (s *State) Rank(k GroupKind) (int, error) {
	group, err := s.Group(k)
	if err != nil {
		return 0, err
	}
	if r, ok := s.ranks[k]; ok {
		return r, nil
	}
	return groupRank(group, s.process.ID)
}

// WorldSize is the number of ranks in the rank's group of a kind, unless another was set.
func (s *State) WorldSize(k GroupKind) (int, error) {
	group, err := s.Group(k)
	if err != nil {
		return 0, err
	}
	if n, ok := s.sizes[k]; ok {
		return n, nil
	}
	return group.Size(), nil
}

// SetRank makes [State.Rank] answer r. Groups stay as they are.
func (s *State) SetRank(k GroupKind, r int) error {
	if !s.Initialized() {
		return &NotInitializedError{Group: k.String()}
	}
	s.ranks[k] = r
	return nil
}

// SetWorldSize makes [State.WorldSize] answer n. Groups stay as they are.
func (s *State) SetWorldSize(k GroupKind, n int) error {
	if !s.Initialized() {
		return &NotInitializedError{Group: k.String()}
	}
	s.sizes[k] = n
	return nil
}

// GlobalRanks lists the World ranks of the rank's group of a kind.
func (s *State) GlobalRanks(k GroupKind) ([]int, error) {
	group, err := s.Group(k)
	if err != nil {
		return nil, err
	}
	return group.Members, nil
}

// SrcRank is the World rank of the first rank of the rank's group of a kind, from where what all are to have is
// broadcast.
func (s *State) SrcRank(k GroupKind) (int, error) {
	group, err := s.Group(k)
	if err != nil {
		return 0, err
	}
	return group.Members[0], nil
}

// AllRanks is the rank's numbers in its tensor, data, context, pipeline and expert parallel groups: "0_1_0_0_0".
func (s *State) AllRanks() (string, error) {
	var numbers []string
	for _, k := range []GroupKind{TensorModelParallel, DataParallel, ContextParallel, PipelineModelParallel, ExpertModelParallel} {
		r, err := s.Rank(k)
		if err != nil {
			return "", err
		}
		numbers = append(numbers, fmt.Sprint(r))
	}
	return strings.Join(numbers, "_"), nil
}
