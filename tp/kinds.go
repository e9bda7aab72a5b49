package tp

import "slices"

// GroupKind is a kind of process group.
type GroupKind uint8

// The kinds of groups, by Megatron's names. A rank is in one group of each kind, but for those that say otherwise.
const (
	ModelParallel GroupKind = iota
	TensorModelParallel
	PipelineModelParallel
	DataParallel
	DataParallelWithCP
	IntraPartialDataParallelWithCP // of one instance of the distributed optimizer
	ContextParallel
	TensorAndDataParallel
	TensorAndDataParallelWithCP
	TensorAndContextParallel
	Embedding         // the stages that have the word embedding; other ranks are in none
	PositionEmbedding // the stages that have the position embedding; other ranks are in none
	WeightRemat       // ranks among which weights are sharded until they are used

	// Of expert layers, whose ranks are arranged anew.
	ExpertModelParallel
	ExpertTensorParallel
	ExpertTensorAndModelParallel
	ExpertTensorModelPipelineParallel
	ExpertDataParallel
	IntraPartialExpertDataParallel
	InterPartialExpertDataParallel // only with several instances of the distributed optimizer
	IntraDistributedOptimizerInstance
	ExpertWeightRemat

	// With [State.HierarchicalContextParallelGroup] and [State.HybridDataContextParallelGroup].
	hierarchicalContextParallel
	hybridDataContextParallel
)

// kind says how groups of a kind come about: they are the groups of some axes, or made from those.
type kind struct {
	name   string
	axes   string
	expert bool
	derive func(a *Arrangement, groups [][]int, level int) [][]int // nil: the groups themselves
}

var kinds = [...]kind{
	ModelParallel:                  {name: "model parallel", axes: "tp-pp"},
	TensorModelParallel:            {name: "tensor model parallel", axes: "tp"},
	PipelineModelParallel:          {name: "pipeline model parallel", axes: "pp"},
	DataParallel:                   {name: "data parallel", axes: "dp"},
	DataParallelWithCP:             {name: "data parallel with context parallel combined", axes: "dp-cp"},
	IntraPartialDataParallelWithCP: {"intra partial data parallel", "dp-cp", false, (*Arrangement).instances},
	ContextParallel:                {name: "context parallel", axes: "cp"},
	TensorAndDataParallel:          {name: "tensor and data parallel", axes: "tp-dp"},
	TensorAndDataParallelWithCP:    {name: "tensor and data parallel with context parallel", axes: "tp-dp-cp"},
	TensorAndContextParallel:       {name: "tensor and context parallel", axes: "tp-cp"},
	Embedding:                      {"embedding", "pp", false, (*Arrangement).embedding},
	PositionEmbedding:              {"position embedding", "pp", false, (*Arrangement).positionEmbedding},
	WeightRemat:                    {name: "weight rematerialization", axes: "gtp_remat"},

	ExpertModelParallel:               {name: "expert model parallel", axes: "ep", expert: true},
	ExpertTensorParallel:              {name: "expert tensor parallel", axes: "tp", expert: true},
	ExpertTensorAndModelParallel:      {name: "expert tensor and model parallel", axes: "tp-ep", expert: true},
	ExpertTensorModelPipelineParallel: {name: "expert tensor model pipeline parallel", axes: "tp-ep-pp", expert: true},
	ExpertDataParallel:                {name: "expert data parallel", axes: "dp", expert: true},
	IntraPartialExpertDataParallel:    {"intra partial expert data parallel", "dp", true, (*Arrangement).instances},
	InterPartialExpertDataParallel:    {"inter partial expert data parallel", "dp", true, (*Arrangement).acrossInstances},
	IntraDistributedOptimizerInstance: {"intra distributed optimizer instance", "tp-ep-pp", true, (*Arrangement).joined},
	ExpertWeightRemat:                 {name: "expert weight rematerialization", axes: "gtp_remat", expert: true},

	hierarchicalContextParallel: {"hierarchical context parallel", "cp", false, (*Arrangement).hierarchical},
	hybridDataContextParallel:   {"hybrid data and context parallel", "dp-cp", false, (*Arrangement).hybrid},
}

// String is what messages call the kind: "tensor model parallel".
func (k GroupKind) String() string {
	if int(k) >= len(kinds) {
		return "unknown"
	}
	return kinds[k].name
}

// instances cuts each group into one for each instance of the distributed optimizer.
func (a *Arrangement) instances(groups [][]int, _ int) [][]int {
	var parts [][]int
	for _, ranks := range groups {
		parts = slices.AppendSeq(parts, slices.Chunk(ranks, len(ranks)/a.config.NumDistributedOptimizerInstances))
	}
	return parts
}

// acrossInstances joins the ranks that have the same place in each instance of the distributed optimizer.
func (a *Arrangement) acrossInstances(groups [][]int, _ int) [][]int {
	n := a.config.NumDistributedOptimizerInstances
	if n == 1 {
		return nil
	}
	var parts [][]int
	for _, ranks := range groups {
		parts = append(parts, level(ranks, []int{len(ranks) / n, n}, 1)...)
	}
	return parts
}

// joined puts the groups of one instance of the distributed optimizer together, which follow one another.
func (a *Arrangement) joined(groups [][]int, _ int) [][]int {
	var parts [][]int
	perInstance := a.expert.size("dp") / a.config.NumDistributedOptimizerInstances
	for some := range slices.Chunk(groups, perInstance) {
		parts = append(parts, slices.Concat(some...))
	}
	return parts
}

func (a *Arrangement) embedding(groups [][]int, _ int) [][]int {
	return mapped(groups, a.config.EmbeddingRanks)
}

func (a *Arrangement) positionEmbedding(groups [][]int, _ int) [][]int {
	return mapped(groups, a.config.PositionEmbeddingRanks)
}

func mapped(groups [][]int, f func([]int) []int) [][]int {
	var parts [][]int
	for _, ranks := range groups {
		parts = append(parts, f(ranks))
	}
	return parts
}

// hierarchical is one level of the hierarchy that each context parallel group is made into.
func (a *Arrangement) hierarchical(groups [][]int, at int) [][]int {
	var parts [][]int
	for _, ranks := range groups {
		parts = append(parts, level(ranks, a.config.HierarchicalContextParallelSizes, at)...)
	}
	return parts
}

// level lists the groups of one level of a hierarchy. On the lowest, sizes[0] ranks that follow one another make a
// group; on the next, sizes[1] ranks of as many such groups, at the same place in each; and so on.
func level(ranks, sizes []int, at int) [][]int {
	stride := 1
	for _, n := range sizes[:at] {
		stride *= n
	}
	var groups [][]int
	for block := range slices.Chunk(ranks, stride*sizes[at]) {
		for place := range stride {
			var group []int
			for i := place; i < len(block); i += stride {
				group = append(group, block[i])
			}
			groups = append(groups, group)
		}
	}
	return groups
}

// hybrid cuts each group into runs of a size.
func (a *Arrangement) hybrid(groups [][]int, size int) [][]int {
	var parts [][]int
	for _, ranks := range groups {
		parts = slices.AppendSeq(parts, slices.Chunk(ranks, size))
	}
	return parts
}
