package tp

import (
	"fmt"
	"slices"
)

// AnyVirtualStage asks about a rank's place in its pipeline whichever of its virtual stages runs.
const AnyVirtualStage = -1

// PipelineFirstRank is the World rank of the first stage of the rank's pipeline.
func (s *State) PipelineFirstRank() (int, error) {
	return s.stageRank(func(_, _ int) int { return 0 })
}

// PipelineLastRank is the World rank of the last stage of the rank's pipeline.
func (s *State) PipelineLastRank() (int, error) {
	return s.stageRank(func(_, n int) int { return n - 1 })
}

// PipelineNextRank is the World rank of the stage after the rank's; after the last comes the first.
func (s *State) PipelineNextRank() (int, error) {
	return s.stageRank(func(at, n int) int { return (at + 1) % n })
}

// PipelinePrevRank is the World rank of the stage before the rank's; before the first comes the last.
func (s *State) PipelinePrevRank() (int, error) {
	return s.stageRank(func(at, n int) int { return (at + n - 1) % n })
}

// stageRank is the World rank of a stage, which is chosen from the rank's own and their number.
func (s *State) stageRank(choose func(at, n int) int) (int, error) {
	at, n, err := s.stage()
	if err != nil {
		return 0, err
	}
	ranks, err := s.GlobalRanks(PipelineModelParallel)
	if err != nil {
		return 0, err
	}
	i := choose(at, n)
	if i < 0 || i >= len(ranks) {
		return 0, fmt.Errorf("stage %d of the pipeline of ranks %v does not exist", i, ranks)
	}
	return ranks[i], nil
}

// stage is the rank's stage and the number of stages.
func (s *State) stage() (at, n int, err error) {
	if at, err = s.Rank(PipelineModelParallel); err != nil {
		return 0, 0, err
	}
	n, err = s.WorldSize(PipelineModelParallel)
	return at, n, err
}

// IsPipelineFirstStage says whether the rank has the first stage; with interleaving, whether a virtual stage of it is
// the first.
func (s *State) IsPipelineFirstStage(virtual int) (bool, error) {
	at, _, err := s.stage()
	if err == nil {
		err = s.checkVirtual(virtual)
	}
	return err == nil && at == 0 && (virtual == AnyVirtualStage || virtual == 0), err
}

// IsPipelineLastStage says whether the rank has the last stage; with interleaving, whether a virtual stage of it is the
// last.
func (s *State) IsPipelineLastStage(virtual int) (bool, error) {
	at, n, err := s.stage()
	if err == nil {
		err = s.checkVirtual(virtual)
	}
	return err == nil && at == n-1 && (virtual == AnyVirtualStage || virtual == max(s.virtualSize, 1)-1), err
}

func (s *State) checkVirtual(virtual int) error {
	if virtual < AnyVirtualStage || virtual >= max(s.virtualSize, 1) {
		return fmt.Errorf("virtual stage %d does not exist: a rank has stages 0 to %d", virtual, max(s.virtualSize, 1)-1)
	}
	return nil
}

// VirtualPipelineRank is which of the rank's virtual stages runs, as it was last set.
func (s *State) VirtualPipelineRank() (int, error) {
	if !s.Initialized() {
		return 0, &NotInitializedError{Group: PipelineModelParallel.String()}
	}
	return s.virtualRank, nil
}

// SetVirtualPipelineRank says which of the rank's virtual stages runs.
func (s *State) SetVirtualPipelineRank(virtual int) error {
	if _, err := s.VirtualPipelineRank(); err != nil {
		return err
	}
	s.virtualRank = virtual
	return nil
}

// VirtualPipelineWorldSize is the number of virtual stages that a rank has; 0 without interleaving.
func (s *State) VirtualPipelineWorldSize() (int, error) {
	if _, err := s.VirtualPipelineRank(); err != nil {
		return 0, err
	}
	return s.virtualSize, nil
}

// SetVirtualPipelineWorldSize says how many virtual stages a rank has.
func (s *State) SetVirtualPipelineWorldSize(n int) error {
	if _, err := s.VirtualPipelineRank(); err != nil {
		return err
	}
	s.virtualSize = n
	return nil
}

// IsInEmbeddingGroup says whether the rank has the word embedding; with interleaving, whether a virtual stage of it has:
// of the first rank of the group its first stage, of the last its last.
func (s *State) IsInEmbeddingGroup(virtual int) (bool, error) {
	ranks, err := s.members(Embedding)
	if err != nil || ranks == nil || virtual == AnyVirtualStage {
		return ranks != nil, err
	}
	switch slices.Index(ranks, s.process.ID) {
	case 0:
		return s.IsPipelineFirstStage(virtual)
	case len(ranks) - 1:
		return s.IsPipelineLastStage(virtual)
	}
	return true, nil
}

// IsInPositionEmbeddingGroup says whether the rank has the position embedding.
func (s *State) IsInPositionEmbeddingGroup() (bool, error) {
	ranks, err := s.members(PositionEmbedding)
	return ranks != nil, err
}

// members lists the ranks of a group, of a kind that not all ranks are in; nil when the rank is in none.
func (s *State) members(k GroupKind) ([]int, error) {
	if !s.Initialized() {
		return nil, &NotInitializedError{Group: k.String()}
	}
	group, err := s.grid.group(partitionKey{kind: k}, s.process.ID)
	if group == nil {
		return nil, err
	}
	return group.Members, nil
}
