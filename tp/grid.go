package tp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
)

// Config is what Megatron's initialize_model_parallel takes, without what has no meaning here: backends, NCCL options,
// SHARP, time limits. 0 counts as 1 unless a field says otherwise.
type Config struct {
	TensorModelParallelSize          int
	PipelineModelParallelSize        int
	VirtualPipelineModelParallelSize int // stages a rank has; 0: no interleaving
	ContextParallelSize              int
	HierarchicalContextParallelSizes []int // from the innermost level on; nil: no hierarchy
	HybridContextParallel            bool
	ExpertModelParallelSize          int
	ExpertTensorParallelSize         int // 0: as TensorModelParallelSize
	GTPRematSize                     int
	ExpertGTPRematSize               int
	NumDistributedOptimizerInstances int
	Order                            string // "": DefaultOrder

	// Which ranks of a pipeline have the word embedding, and the position embedding; nil: the first and the last, and
	// the first.
	EmbeddingRanks, PositionEmbeddingRanks func(pipeline []int) []int

	// The ranks that are arranged: LocalWorldSize (0: all that follow) of the world's from RankOffset on.
	RankOffset, LocalWorldSize int
}

// Grid is how the ranks of a job are arranged in groups. All ranks share it; what belongs to one rank is its [State].
type Grid struct {
	backend       *distributed.Backend
	config        Config
	ranks         []int // World ranks, by their number in the arrangement
	dense, expert *RankGenerator
	partitions    map[partitionKey]*partition
	nextID        int
}

type partitionKey struct {
	kind  GroupKind
	level int // of a hierarchy, or the size of a hybrid group
}

// partition is all groups of a kind. A process group is made when a rank first asks for it.
type partition struct {
	firstID int
	groups  [][]int     // World ranks
	of      map[int]int // which of the groups a World rank is in
	made    []*distributed.ProcessGroup
}

// InitializeModelParallel arranges the ranks of a process group, usually that of all ranks, for the given sizes. Data
// parallelism gets what the others leave. Groups have numbers that follow the world's. The errors are those of
// Megatron: sizes that do not divide the number of ranks are a [*NotDivisibleError].
func InitializeModelParallel(b *distributed.Backend, world *distributed.ProcessGroup, c Config) (*Grid, error) {
	if b == nil || world == nil {
		return nil, &NotInitializedError{Group: "default process"}
	}
	c.setDefaults(world.Size())
	if err := c.check(world.Size()); err != nil {
		return nil, err
	}
	g := &Grid{
		backend: b, config: c, ranks: world.Members[c.RankOffset : c.RankOffset+c.LocalWorldSize],
		partitions: map[partitionKey]*partition{}, nextID: world.ID + 1,
	}
	if err := g.arrange(); err != nil {
		return nil, err
	}
	if err := g.checkInstances(); err != nil {
		return nil, err
	}
	return g, g.listGroups()
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
func (g *Grid) arrange() error {
	c := &g.config
	tp, pp, cp, remat := c.TensorModelParallelSize, c.PipelineModelParallelSize, c.ContextParallelSize, c.GTPRematSize
	dp, err := divide("world size", len(g.ranks), "tensor × pipeline × context × gtp_remat parallel size", tp*pp*cp*remat)
	if err != nil {
		return err
	}
	if g.dense, err = c.arrangement(Sizes{TP: tp, CP: cp, DP: dp, PP: pp}, "tp", remat); err != nil {
		return err
	}
	tp, remat = c.ExpertTensorParallelSize, c.ExpertGTPRematSize
	ep := c.ExpertModelParallelSize
	dp, err = divide("world size", len(g.ranks), "expert tensor × model × pipeline × gtp_remat parallel size", tp*ep*pp*remat)
	if err != nil {
		return err
	}
	if g.expert, err = c.arrangement(Sizes{TP: tp, EP: ep, DP: dp, PP: pp}, "ep", remat); err != nil {
		return err
	}
	return g.comparePipelines()
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
func (g *Grid) comparePipelines() error {
	dp, expertDP := g.dense.size("dp"), g.expert.size("dp")
	if !strings.HasSuffix(strings.ToLower(g.config.Order), "pp") && g.dense.size("pp") > 1 && dp != expertDP {
		return fmt.Errorf("order %q: when pp is not last, the data parallel sizes of dense layers (%d) and of experts (%d) "+
			"must be the same", g.config.Order, dp, expertDP)
	}
	dense, err := g.dense.Ranks("pp")
	if err != nil {
		return err
	}
	expert, err := g.expert.Ranks("pp")
	if err != nil {
		return err
	}
	if !slices.EqualFunc(dense, expert, slices.Equal) {
		return fmt.Errorf("dense layers and experts must have the same pipeline parallel groups, but have %v and %v", dense, expert)
	}
	return nil
}

// checkInstances verifies what is divided further: data parallelism, and context parallelism.
func (g *Grid) checkInstances() error {
	c, data := &g.config, g.dense.size("dp")*g.dense.size("cp")
	if _, err := divide("data × context parallel size", data, "number of distributed optimizer instances", c.NumDistributedOptimizerInstances); err != nil {
		return err
	}
	if _, err := divide("expert data parallel size", g.expert.size("dp"), "number of distributed optimizer instances", c.NumDistributedOptimizerInstances); err != nil {
		return err
	}
	if c.HybridContextParallel && data%2 != 0 {
		return fmt.Errorf("hybrid context parallel requires an even number of ranks, not data × context parallel size %d", data)
	}
	product := 1
	for _, n := range c.HierarchicalContextParallelSizes {
		product *= n
	}
	if c.HierarchicalContextParallelSizes != nil && product != c.ContextParallelSize {
		return fmt.Errorf("the product of the hierarchical context parallel sizes %v is %d, not the context parallel size %d",
			c.HierarchicalContextParallelSizes, product, c.ContextParallelSize)
	}
	return nil
}

// listGroups lists all groups, so that they have the same numbers whoever asks for which first.
func (g *Grid) listGroups() error {
	for k := range hierarchicalContextParallel {
		if err := g.partition(partitionKey{k, 0}); err != nil {
			return err
		}
	}
	for at := range g.config.HierarchicalContextParallelSizes {
		if err := g.partition(partitionKey{hierarchicalContextParallel, at}); err != nil {
			return err
		}
	}
	if !g.config.HybridContextParallel {
		return nil
	}
	for size := 2; 2*size <= g.dense.size("dp")*g.dense.size("cp"); size *= 2 {
		if err := g.partition(partitionKey{hybridDataContextParallel, size}); err != nil {
			return err
		}
	}
	return nil
}

func (g *Grid) partition(key partitionKey) error {
	k, from := kinds[key.kind], g.dense
	if k.expert {
		from = g.expert
	}
	groups, err := from.Ranks(k.axes)
	if err != nil {
		return err
	}
	groups = mapped(groups, g.worldRanks)
	if k.derive != nil {
		groups = k.derive(g, groups, key.level)
	}
	p := &partition{firstID: g.nextID, groups: groups, of: map[int]int{}, made: make([]*distributed.ProcessGroup, len(groups))}
	for i, ranks := range groups {
		for _, r := range ranks {
			p.of[r] = i
		}
	}
	g.nextID += len(groups)
	g.partitions[key] = p
	return nil
}

func (g *Grid) worldRanks(numbers []int) []int {
	ranks := make([]int, len(numbers))
	for i, n := range numbers {
		ranks[i] = g.ranks[n]
	}
	return ranks
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

// Groups lists the World ranks of all groups of a kind.
func (g *Grid) Groups(k GroupKind) [][]int {
	p, ok := g.partitions[partitionKey{kind: k}]
	if !ok {
		return nil
	}
	return mapped(p.groups, slices.Clone)
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
