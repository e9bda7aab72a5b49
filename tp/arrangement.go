package tp

import (
	"fmt"
	"slices"
	"strings"
)

// Config is what Megatron's initialize_model_parallel takes, without what has no meaning here: backends, NCCL options,
// SHARP, time limits. 0 counts as 1 unless a field says otherwise. In JSON the fields have Megatron's names.
type Config struct {
	TensorModelParallelSize          int    `json:"tensor_model_parallel_size"`
	PipelineModelParallelSize        int    `json:"pipeline_model_parallel_size"`
	VirtualPipelineModelParallelSize int    `json:"virtual_pipeline_model_parallel_size"` // stages a rank has; 0: no interleaving
	ContextParallelSize              int    `json:"context_parallel_size"`
	HierarchicalContextParallelSizes []int  `json:"hierarchical_context_parallel_sizes"` // from the innermost level on; nil: no hierarchy
	HybridContextParallel            bool   `json:"hybrid_context_parallel"`
	ExpertModelParallelSize          int    `json:"expert_model_parallel_size"`
	ExpertTensorParallelSize         int    `json:"expert_tensor_parallel_size"` // 0: as TensorModelParallelSize
	GTPRematSize                     int    `json:"gtp_remat_size"`
	ExpertGTPRematSize               int    `json:"expert_gtp_remat_size"`
	NumDistributedOptimizerInstances int    `json:"num_distributed_optimizer_instances"`
	Order                            string `json:"order"` // "": DefaultOrder

	// Which ranks of a pipeline have the word embedding, and the position embedding; nil: the first and the last, and
	// the first.
	EmbeddingRanks, PositionEmbeddingRanks func(pipeline []int) []int `json:"-"`

	// The ranks that are arranged: LocalWorldSize (0: all that follow) of the world's from RankOffset on.
	RankOffset     int `json:"rank_offset"`
	LocalWorldSize int `json:"local_world_size"`
}

// Arrangement is which ranks of a job form groups of each kind.
type Arrangement struct {
	config        Config
	ranks         []int // World ranks, by their number in the arrangement
	dense, expert *RankGenerator
	keys          []partitionKey // in the order in which groups are made
	groups        map[partitionKey][][]int
}

type partitionKey struct {
	kind  GroupKind
	level int // of a hierarchy, or the size of a hybrid group
}

// Arrange arranges ranks, given by their numbers in the World, for the given sizes. Data parallelism gets what the
// others leave. The errors are those of Megatron: sizes that do not divide the number of ranks are a
// [*NotDivisibleError], sizes that contradict each other a [*ConflictError].
func Arrange(world []int, c Config) (*Arrangement, error) {
	c.setDefaults(len(world))
	if err := c.check(len(world)); err != nil {
		return nil, err
	}
	a := &Arrangement{
		config: c, ranks: world[c.RankOffset : c.RankOffset+c.LocalWorldSize], groups: map[partitionKey][][]int{},
	}
	if err := a.arrange(); err != nil {
		return nil, err
	}
	if err := a.checkInstances(); err != nil {
		return nil, err
	}
	return a, a.listGroups()
}

func (c *Config) setDefaults(world int) {
	for _, size := range []*int{
		&c.TensorModelParallelSize, &c.PipelineModelParallelSize, &c.ContextParallelSize, &c.ExpertModelParallelSize,
		&c.GTPRematSize, &c.ExpertGTPRematSize, &c.NumDistributedOptimizerInstances,
	} {
		if *size == 0 {
			*size = 1
		}
	}
	if c.ExpertTensorParallelSize == 0 {
		c.ExpertTensorParallelSize = c.TensorModelParallelSize
	}
	if c.Order == "" {
		c.Order = DefaultOrder
	}
	if c.LocalWorldSize == 0 {
		c.LocalWorldSize = world - c.RankOffset
	}
	if c.EmbeddingRanks == nil {
		c.EmbeddingRanks = firstAndLast
	}
	if c.PositionEmbeddingRanks == nil {
		c.PositionEmbeddingRanks = func(pipeline []int) []int { return pipeline[:1] }
	}
}

func firstAndLast(pipeline []int) []int {
	if len(pipeline) == 1 {
		return pipeline
	}
	return []int{pipeline[0], pipeline[len(pipeline)-1]}
}

// check verifies what can be told from the sizes alone.
func (c *Config) check(world int) error {
	if c.RankOffset < 0 || c.LocalWorldSize < 1 || c.RankOffset+c.LocalWorldSize > world {
		return fmt.Errorf("ranks %d to %d are not all in the world of size %d", c.RankOffset, c.RankOffset+c.LocalWorldSize-1, world)
	}
	for _, f := range []struct {
		name string
		size int
	}{
		{"tensor_model_parallel_size", c.TensorModelParallelSize}, {"pipeline_model_parallel_size", c.PipelineModelParallelSize},
		{"context_parallel_size", c.ContextParallelSize}, {"expert_model_parallel_size", c.ExpertModelParallelSize},
		{"expert_tensor_parallel_size", c.ExpertTensorParallelSize}, {"gtp_remat_size", c.GTPRematSize},
		{"expert_gtp_remat_size", c.ExpertGTPRematSize}, {"num_distributed_optimizer_instances", c.NumDistributedOptimizerInstances},
	} {
		if f.size < 1 {
			return fmt.Errorf("%s is %d: it must be at least 1", f.name, f.size)
		}
	}
	if v := c.VirtualPipelineModelParallelSize; v != 0 && c.PipelineModelParallelSize < 2 {
		return fmt.Errorf("pipeline-model-parallel size should be greater than 1 with interleaved schedule: it is %d, "+
			"and the virtual pipeline model parallel size is %d", c.PipelineModelParallelSize, v)
	}
	return nil
}

// arrange lays the ranks out twice: for dense layers, and for those of experts.
func (a *Arrangement) arrange() error {
	c := &a.config
	tp, pp, cp, remat := c.TensorModelParallelSize, c.PipelineModelParallelSize, c.ContextParallelSize, c.GTPRematSize
	dp, err := divide(worldSize, len(a.ranks), "", tp*pp*cp*remat)
	if err != nil {
		return err
	}
	if a.dense, err = c.arrangement(Sizes{TP: tp, CP: cp, DP: dp, PP: pp}, "tp", remat); err != nil {
		return err
	}
	tp, remat = c.ExpertTensorParallelSize, c.ExpertGTPRematSize
	ep := c.ExpertModelParallelSize
	dp, err = divide(worldSize, len(a.ranks), "expert_tensor_model_pipeline_parallel size", tp*ep*pp*remat)
	if err != nil {
		return err
	}
	if a.expert, err = c.arrangement(Sizes{TP: tp, EP: ep, DP: dp, PP: pp}, "ep", remat); err != nil {
		return err
	}
	return a.comparePipelines()
}

// arrangement is that of the order, with the ranks among which a weight is sharded behind an axis: the order does not
// name them.
func (c *Config) arrangement(s Sizes, after string, remat int) (*RankGenerator, error) {
	axes, err := s.ordered(c.Order)
	if err != nil {
		return nil, err
	}
	return arranged(slices.Insert(axes, find(axes, after)+1, axis{name: "gtp_remat", size: remat})), nil
}

// comparePipelines verifies that dense layers and experts have the same stages.
func (a *Arrangement) comparePipelines() error {
	dp, expertDP := a.dense.size("dp"), a.expert.size("dp")
	if !strings.HasSuffix(strings.ToLower(a.config.Order), "pp") && a.dense.size("pp") > 1 && dp != expertDP {
		return conflict("order %q: when pp is not last, the data parallel sizes of dense layers (%d) and of experts (%d) "+
			"must be the same", a.config.Order, dp, expertDP)
	}
	dense, err := a.dense.Ranks("pp")
	if err != nil {
		return err
	}
	expert, err := a.expert.Ranks("pp")
	if err != nil {
		return err
	}
	if !slices.EqualFunc(dense, expert, slices.Equal) {
		return conflict("dense layers and experts must have the same pipeline parallel groups, but have %v and %v", dense, expert)
	}
	return nil
}

// checkInstances verifies what is divided further: data parallelism, and context parallelism.
func (a *Arrangement) checkInstances() error {
	c, data := &a.config, a.dense.size("dp")*a.dense.size("cp")
	if _, err := divide("data × context parallel size", data, "number of distributed optimizer instances", c.NumDistributedOptimizerInstances); err != nil {
		return err
	}
	if _, err := divide("expert data parallel size", a.expert.size("dp"), "number of distributed optimizer instances", c.NumDistributedOptimizerInstances); err != nil {
		return err
	}
	if c.HybridContextParallel && data%2 != 0 {
		return conflict("hybrid context parallel requires an even number of ranks, not data × context parallel size %d", data)
	}
	product := 1
	for _, n := range c.HierarchicalContextParallelSizes {
		product *= n
	}
	if c.HierarchicalContextParallelSizes != nil && product != c.ContextParallelSize {
		return conflict("the product of the hierarchical context parallel sizes %v is %d, not the context parallel size %d",
			c.HierarchicalContextParallelSizes, product, c.ContextParallelSize)
	}
	return nil
}

// listGroups lists all groups, so that they have the same numbers whoever asks for which first.
func (a *Arrangement) listGroups() error {
	for k := range hierarchicalContextParallel {
		if err := a.list(partitionKey{k, 0}); err != nil {
			return err
		}
	}
	for at := range a.config.HierarchicalContextParallelSizes {
		if err := a.list(partitionKey{hierarchicalContextParallel, at}); err != nil {
			return err
		}
	}
	if !a.config.HybridContextParallel {
		return nil
	}
	for size := 2; 2*size <= a.dense.size("dp")*a.dense.size("cp"); size *= 2 {
		if err := a.list(partitionKey{hybridDataContextParallel, size}); err != nil {
			return err
		}
	}
	return nil
}

// list lists the groups of a kind.
func (a *Arrangement) list(key partitionKey) error {
	k, from := kinds[key.kind], a.dense
	if k.expert {
		from = a.expert
	}
	groups, err := from.Ranks(k.axes)
	if err != nil {
		return err
	}
	groups = mapped(groups, a.worldRanks)
	if k.derive != nil {
		groups = k.derive(a, groups, key.level)
	}
	a.keys, a.groups[key] = append(a.keys, key), groups
	return nil
}

func (a *Arrangement) worldRanks(numbers []int) []int {
	ranks := make([]int, len(numbers))
	for i, n := range numbers {
		ranks[i] = a.ranks[n]
	}
	return ranks
}

// Groups lists the World ranks of all groups of a kind.
func (a *Arrangement) Groups(k GroupKind) [][]int {
	return mapped(a.groups[partitionKey{kind: k}], slices.Clone)
}

// Partition is all groups of a kind that ranks have one of.
type Partition struct {
	Name   string  `json:"name"`   // the kind's; of a level of a hierarchy with its number behind it, of hybrid groups their size
	Groups [][]int `json:"groups"` // World ranks
}

// Partitions lists all groups, in the order in which they have numbers.
func (a *Arrangement) Partitions() []Partition {
	list := make([]Partition, len(a.keys))
	for i, key := range a.keys {
		name := key.kind.String()
		if key.kind >= hierarchicalContextParallel {
			name = fmt.Sprintf("%s %d", name, key.level)
		}
		list[i] = Partition{name, mapped(a.groups[key], slices.Clone)}
	}
	return list
}
