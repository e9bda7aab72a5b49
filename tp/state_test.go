package tp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/tp"
)

// A group of some kinds is the ranks whose coordinates differ in these kinds alone, where rank = Σ coordinate·stride and
// the leftmost kind of the order has stride 1.
func TestRankGeneratorInEveryOrder(t *testing.T) {
	size := map[string]int{"tp": 2, "cp": 3, "dp": 2, "pp": 2, "ep": 1}
	for _, order := range permutations([]string{"tp", "cp", "dp", "pp"}) {
		g, err := tp.NewRankGenerator(tp.Sizes{TP: 2, CP: 3, DP: 2, PP: 2}, strings.Join(order, "-"))
		if err != nil {
			t.Fatal(err)
		}
		coordinate := func(rank int, kind string) int {
			for _, k := range order {
				if k == kind {
					return rank % size[k]
				}
				rank /= size[k]
			}
			return 0
		}
		for _, kinds := range []string{"tp", "cp", "dp", "pp", "ep", "tp-dp", "dp-tp", "tp-cp", "dp-cp", "tp-pp", "tp-dp-cp", "tp-cp-dp-pp"} {
			checkGroups(t, g, order, kinds, coordinate)
		}
	}
}

func checkGroups(t *testing.T, g *tp.RankGenerator, order []string, kinds string, coordinate func(rank int, kind string) int) {
	t.Helper()
	groups, err := g.Ranks(kinds)
	if err != nil {
		t.Fatal(err)
	}
	together := func(a, b int) bool {
		for _, k := range order {
			if !slices.Contains(strings.Split(kinds, "-"), k) && coordinate(a, k) != coordinate(b, k) {
				return false
			}
		}
		return true
	}
	of := map[int]int{}
	for i, ranks := range groups {
		if !slices.IsSorted(ranks) || i > 0 && groups[i-1][0] >= ranks[0] {
			t.Fatalf("order %v: groups %v are not in ascending order", order, groups)
		}
		for _, r := range ranks {
			of[r] = i
		}
	}
	if len(of) != 24 || len(slices.Concat(groups...)) != 24 {
		t.Fatalf("order %v: %s groups %v", order, kinds, groups)
	}
	for a := range 24 {
		for b := range 24 {
			if (of[a] == of[b]) != together(a, b) {
				t.Fatalf("order %v: ranks %d and %d in %s groups %v", order, a, b, kinds, groups)
			}
		}
	}
}

func permutations(list []string) [][]string {
	if len(list) < 2 {
		return [][]string{list}
	}
	var all [][]string
	for i := range list {
		rest := slices.Delete(slices.Clone(list), i, i+1)
		for _, p := range permutations(rest) {
			all = append(all, append([]string{list[i]}, p...))
		}
	}
	return all
}

func TestRankGeneratorRejects(t *testing.T) {
	for _, k := range []struct {
		sizes tp.Sizes
		order string
		want  string
	}{
		{tp.Sizes{TP: 2, DP: 3}, "tp-pp", `the size of dp is 3, but the order "tp-pp" does not say where it goes`},
		{tp.Sizes{TP: 2}, "tp-xp", `order "tp-xp": "xp" is not a kind of parallelism`},
		{tp.Sizes{TP: 2}, "tp-tp", `"tp" is not a kind of parallelism, or is there twice`},
		{tp.Sizes{TP: 2}, "", `order "": "" is not`},
		{tp.Sizes{EP: 2, CP: 3}, tp.DefaultOrder, "ep (2) and cp (3) are both greater than 1"},
	} {
		if _, err := tp.NewRankGenerator(k.sizes, k.order); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%v, %q: got %v", k.sizes, k.order, err)
		}
	}
	g, err := tp.NewRankGenerator(tp.Sizes{TP: 2, PP: 2}, "PP-TP")
	if err != nil {
		t.Fatal(err)
	}
	if groups, err := g.Ranks("pp"); err != nil || fmt.Sprint(groups) != "[[0 1] [2 3]]" || g.World != 4 {
		t.Errorf("%v, %v", groups, err)
	}
	if _, err := g.Ranks("tp-zp"); err == nil || !strings.Contains(err.Error(), `"zp" is not a kind`) {
		t.Errorf("got %v", err)
	}
}

func grid(t *testing.T, ranks int, c tp.Config) *tp.Grid {
	t.Helper()
	b := newCluster(t, ranks)
	g, err := tp.InitializeModelParallel(b.Backend, b.world, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The groups that Megatron's documentation gives: 16 ranks, tensor parallel size 2, pipeline parallel size 4.
func TestGroupsOfTheDocumentation(t *testing.T) {
	g := grid(t, 16, tp.Config{TensorModelParallelSize: 2, PipelineModelParallelSize: 4})
	for kind, want := range map[tp.GroupKind]string{
		tp.DataParallel:          "[[0 2] [1 3] [4 6] [5 7] [8 10] [9 11] [12 14] [13 15]]",
		tp.TensorModelParallel:   "[[0 1] [2 3] [4 5] [6 7] [8 9] [10 11] [12 13] [14 15]]",
		tp.PipelineModelParallel: "[[0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]]",
		tp.ModelParallel:         "[[0 1 4 5 8 9 12 13] [2 3 6 7 10 11 14 15]]",
		tp.Embedding:             "[[0 12] [1 13] [2 14] [3 15]]",
		tp.PositionEmbedding:     "[[0] [1] [2] [3]]",
		tp.TensorAndDataParallel: "[[0 1 2 3] [4 5 6 7] [8 9 10 11] [12 13 14 15]]",
	} {
		if got := fmt.Sprint(g.Groups(kind)); got != want {
			t.Errorf("%v: %v, want %v", kind, got, want)
		}
	}
}

// Dense layers: tp 2 × cp 2 × dp 2; experts of the same 8 ranks: tp 1 × ep 4 × dp 2.
func TestGroupsOfExperts(t *testing.T) {
	g := grid(t, 8, tp.Config{
		TensorModelParallelSize: 2, ContextParallelSize: 2, ExpertModelParallelSize: 4, ExpertTensorParallelSize: 1,
		NumDistributedOptimizerInstances: 2,
	})
	for kind, want := range map[tp.GroupKind]string{
		tp.ContextParallel:                   "[[0 2] [1 3] [4 6] [5 7]]",
		tp.DataParallel:                      "[[0 4] [1 5] [2 6] [3 7]]",
		tp.DataParallelWithCP:                "[[0 2 4 6] [1 3 5 7]]",
		tp.IntraPartialDataParallelWithCP:    "[[0 2] [4 6] [1 3] [5 7]]",
		tp.TensorAndContextParallel:          "[[0 1 2 3] [4 5 6 7]]",
		tp.TensorAndDataParallel:             "[[0 1 4 5] [2 3 6 7]]",
		tp.TensorAndDataParallelWithCP:       "[[0 1 2 3 4 5 6 7]]",
		tp.ExpertModelParallel:               "[[0 1 2 3] [4 5 6 7]]",
		tp.ExpertTensorParallel:              "[[0] [1] [2] [3] [4] [5] [6] [7]]",
		tp.ExpertTensorAndModelParallel:      "[[0 1 2 3] [4 5 6 7]]",
		tp.ExpertTensorModelPipelineParallel: "[[0 1 2 3] [4 5 6 7]]",
		tp.ExpertDataParallel:                "[[0 4] [1 5] [2 6] [3 7]]",
		tp.IntraPartialExpertDataParallel:    "[[0] [4] [1] [5] [2] [6] [3] [7]]",
		tp.InterPartialExpertDataParallel:    "[[0 4] [1 5] [2 6] [3 7]]",
		tp.IntraDistributedOptimizerInstance: "[[0 1 2 3] [4 5 6 7]]",
		tp.WeightRemat:                       "[[0] [1] [2] [3] [4] [5] [6] [7]]",
	} {
		if got := fmt.Sprint(g.Groups(kind)); got != want {
			t.Errorf("%v: %v, want %v", kind, got, want)
		}
	}
}

// Weights are sharded among ranks next to the tensor parallel ones; of experts, next to the expert parallel ones.
func TestGroupsOfShardedWeights(t *testing.T) {
	g := grid(t, 16, tp.Config{
		TensorModelParallelSize: 2, GTPRematSize: 4, ExpertModelParallelSize: 2, ExpertTensorParallelSize: 2, ExpertGTPRematSize: 2,
	})
	for kind, want := range map[tp.GroupKind]string{
		tp.WeightRemat:        "[[0 2 4 6] [1 3 5 7] [8 10 12 14] [9 11 13 15]]",
		tp.DataParallel:       "[[0 8] [1 9] [2 10] [3 11] [4 12] [5 13] [6 14] [7 15]]",
		tp.ExpertWeightRemat:  "[[0 4] [1 5] [2 6] [3 7] [8 12] [9 13] [10 14] [11 15]]",
		tp.ExpertDataParallel: "[[0 8] [1 9] [2 10] [3 11] [4 12] [5 13] [6 14] [7 15]]",
	} {
		if got := fmt.Sprint(g.Groups(kind)); got != want {
			t.Errorf("%v: %v, want %v", kind, got, want)
		}
	}
}

// each asks every rank for something and returns the answers.
func each[T any](t *testing.T, ranks int, c tp.Config, ask func(s *tp.State) (T, error)) []T {
	t.Helper()
	b := newCluster(t, ranks)
	g, err := tp.InitializeModelParallel(b.Backend, b.world, c)
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]T, ranks)
	err = multiprocessing.Spawn(b.World, ranks, func(p *multiprocessing.Process) error {
		s, err := g.State(p)
		if err == nil {
			answers[p.ID], err = ask(s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// Two levels below the whole: the example of Megatron's documentation, 16 ranks in groups of 2, 2 and 4.
func TestHierarchicalContextParallelGroups(t *testing.T) {
	c := tp.Config{ContextParallelSize: 16, HierarchicalContextParallelSizes: []int{2, 2, 4}}
	for level, want := range []string{
		"[[0 1] [0 1] [2 3] [2 3] [4 5] [4 5] [6 7] [6 7] [8 9] [8 9] [10 11] [10 11] [12 13] [12 13] [14 15] [14 15]]",
		"[[0 2] [1 3] [0 2] [1 3] [4 6] [5 7] [4 6] [5 7] [8 10] [9 11] [8 10] [9 11] [12 14] [13 15] [12 14] [13 15]]",
		"[[0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15] [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15] " +
			"[0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15] [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]]",
	} {
		got := each(t, 16, c, func(s *tp.State) ([]int, error) {
			g, err := s.HierarchicalContextParallelGroup(level)
			if err != nil {
				return nil, err
			}
			return g.Members, nil
		})
		if fmt.Sprint(got) != want {
			t.Errorf("level %d: %v", level, got)
		}
	}
	each(t, 16, c, func(s *tp.State) (any, error) {
		if _, err := s.HierarchicalContextParallelGroup(3); err == nil || !strings.Contains(err.Error(), "there is no level 3") {
			t.Errorf("got %v", err)
		}
		return nil, nil
	})
}

func TestHybridDataContextParallelGroups(t *testing.T) {
	c := tp.Config{ContextParallelSize: 4, HybridContextParallel: true}
	each(t, 8, c, func(s *tp.State) (any, error) {
		rank, err := s.Rank(tp.DataParallelWithCP)
		if err != nil {
			return nil, err
		}
		for _, size := range []int{2, 4, 8} {
			g, err := s.HybridDataContextParallelGroup(size)
			if err != nil {
				return nil, err
			}
			if first := rank / size * size; g.Size() != size || g.Members[0] != first || g.Members[size-1] != first+size-1 {
				t.Errorf("rank %d, size %d: %v", rank, size, g.Members)
			}
		}
		if _, err := s.HybridDataContextParallelGroup(3); err == nil || !strings.Contains(err.Error(), "none of 3 ranks") {
			t.Errorf("got %v", err)
		}
		return nil, nil
	})
}

// Rank 5 of 16 with tp 2, dp 2, pp 4: stage 1 of its pipeline 1, 5, 9, 13.
func TestStateOfARank(t *testing.T) {
	c := tp.Config{TensorModelParallelSize: 2, PipelineModelParallelSize: 4, VirtualPipelineModelParallelSize: 3}
	each(t, 16, c, func(s *tp.State) (any, error) {
		stage, err := s.Rank(tp.PipelineModelParallel)
		pipeline, err2 := s.GlobalRanks(tp.PipelineModelParallel)
		if err := errors.Join(err, err2); err != nil || !slices.Equal(pipeline, []int{1, 5, 9, 13}) || stage != 1 {
			return nil, err
		}
		if all, err := s.AllRanks(); err != nil || all != "1_0_0_1_0" {
			t.Errorf("all ranks: %v, %v", all, err)
		}
		for _, k := range []struct {
			name string
			ask  func() (int, error)
			want int
		}{
			{"tensor rank", func() (int, error) { return s.Rank(tp.TensorModelParallel) }, 1},
			{"tensor size", func() (int, error) { return s.WorldSize(tp.TensorModelParallel) }, 2},
			{"tensor source", func() (int, error) { return s.SrcRank(tp.TensorModelParallel) }, 4},
			{"data source", func() (int, error) { return s.SrcRank(tp.DataParallel) }, 5},
			{"model source", func() (int, error) { return s.SrcRank(tp.ModelParallel) }, 0},
			{"pipeline rank", func() (int, error) { return s.Rank(tp.PipelineModelParallel) }, 1},
			{"first stage", s.PipelineFirstRank, 1},
			{"last stage", s.PipelineLastRank, 13},
			{"next stage", s.PipelineNextRank, 9},
			{"previous stage", s.PipelinePrevRank, 1},
			{"virtual size", s.VirtualPipelineWorldSize, 3},
			{"virtual rank", s.VirtualPipelineRank, 0},
		} {
			if got, err := k.ask(); err != nil || got != k.want {
				t.Errorf("%s: %v, %v, want %v", k.name, got, err, k.want)
			}
		}
		return nil, nil
	})
}

func TestStages(t *testing.T) {
	type place struct{ first, last, embedding, position bool }
	for _, k := range []struct {
		virtualSize, virtual int
		want                 []place
	}{
		{0, tp.AnyVirtualStage, []place{{true, false, true, true}, {}, {false, true, true, false}}},
		{0, 0, []place{{true, false, true, true}, {}, {false, true, true, false}}},
		{2, tp.AnyVirtualStage, []place{{true, false, true, true}, {}, {false, true, true, false}}},
		{2, 0, []place{{true, false, true, true}, {}, {}}},
		{2, 1, []place{{position: true}, {}, {false, true, true, false}}},
	} {
		c := tp.Config{PipelineModelParallelSize: 3, VirtualPipelineModelParallelSize: k.virtualSize}
		got := each(t, 3, c, func(s *tp.State) (p place, err error) {
			var errs [4]error
			p.first, errs[0] = s.IsPipelineFirstStage(k.virtual)
			p.last, errs[1] = s.IsPipelineLastStage(k.virtual)
			p.embedding, errs[2] = s.IsInEmbeddingGroup(k.virtual)
			p.position, errs[3] = s.IsInPositionEmbeddingGroup()
			return p, errors.Join(errs[:]...)
		})
		if !slices.Equal(got, k.want) {
			t.Errorf("%d virtual stages, stage %d: %v, want %v", k.virtualSize, k.virtual, got, k.want)
		}
	}
	each(t, 2, tp.Config{PipelineModelParallelSize: 2}, func(s *tp.State) (any, error) {
		if _, err := s.IsPipelineFirstStage(1); err == nil || !strings.Contains(err.Error(), "a rank has stages 0 to 0") {
			t.Errorf("got %v", err)
		}
		return nil, nil
	})
}

// What is set is what a state answers; its groups stay.
func TestSetters(t *testing.T) {
	each(t, 4, tp.Config{PipelineModelParallelSize: 4}, func(s *tp.State) (any, error) {
		err := errors.Join(
			s.SetRank(tp.PipelineModelParallel, 2), s.SetWorldSize(tp.PipelineModelParallel, 3),
			s.SetVirtualPipelineWorldSize(2), s.SetVirtualPipelineRank(1),
		)
		rank, err1 := s.Rank(tp.PipelineModelParallel)
		size, err2 := s.WorldSize(tp.PipelineModelParallel)
		last, err3 := s.IsPipelineLastStage(tp.AnyVirtualStage)
		next, err4 := s.PipelineNextRank()
		group, err5 := s.Group(tp.PipelineModelParallel)
		virtual, err6 := s.VirtualPipelineRank()
		if rank != 2 || size != 3 || !last || next != 0 || group.Size() != 4 || virtual != 1 {
			t.Errorf("rank %d of %d, last %v, next %d, group of %d, virtual %d", rank, size, last, next, group.Size(), virtual)
		}
		return nil, errors.Join(err, err1, err2, err3, err4, err5, err6)
	})
}

func TestUseBeforeInitialization(t *testing.T) {
	var never *tp.State
	destroyed := each(t, 1, tp.Config{}, func(s *tp.State) (*tp.State, error) {
		if !s.Initialized() {
			t.Error("not initialized")
		}
		s.Destroy()
		return s, nil
	})[0]
	for _, s := range []*tp.State{never, {}, destroyed} {
		if s.Initialized() {
			t.Error("initialized")
		}
		for want, err := range map[string]error{
			"tensor model parallel":                        second(s.Group(tp.TensorModelParallel)),
			"data parallel":                                second(s.Rank(tp.DataParallel)),
			"expert model parallel":                        second(s.WorldSize(tp.ExpertModelParallel)),
			"model parallel":                               second(s.SrcRank(tp.ModelParallel)),
			"context parallel":                             second(s.Comm(tp.ContextParallel)),
			"pipeline model parallel":                      second(s.PipelineNextRank()),
			"embedding":                                    second(s.IsInEmbeddingGroup(tp.AnyVirtualStage)),
			"hierarchical context parallel":                second(s.HierarchicalContextParallelGroup(0)),
			"expert tensor parallel":                       s.SetRank(tp.ExpertTensorParallel, 0),
			"expert tensor and model parallel":             s.SetWorldSize(tp.ExpertTensorAndModelParallel, 1),
			"data parallel with context parallel combined": second(s.HybridDataContextParallelGroup(2)),
		} {
			var e *tp.NotInitializedError
			if !errors.As(err, &e) || err.Error() != want+" group is not initialized" {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if s.SetVirtualPipelineRank(1) == nil || s.SetVirtualPipelineWorldSize(1) == nil || second(s.AllRanks()) == nil {
			t.Error("no error")
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestRanksThatAreInNoGroup(t *testing.T) {
	each(t, 3, tp.Config{PipelineModelParallelSize: 3}, func(s *tp.State) (any, error) {
		rank, err := s.Rank(tp.PipelineModelParallel)
		if err != nil || rank != 1 {
			return nil, err
		}
		if _, err := s.Group(tp.Embedding); err == nil || err.Error() != "embedding group is not initialized: rank 1 is in none" {
			t.Errorf("got %v", err)
		}
		if _, err := s.Group(tp.InterPartialExpertDataParallel); err == nil {
			t.Error("there is one instance of the optimizer only")
		}
		return nil, nil
	})
}

// Ranks 2 to 5 of 8 are arranged; their groups have World ranks.
func TestPartOfTheWorld(t *testing.T) {
	b := newCluster(t, 8)
	g, err := tp.InitializeModelParallel(b.Backend, b.world, tp.Config{
		TensorModelParallelSize: 2, RankOffset: 2, LocalWorldSize: 4,
		EmbeddingRanks: func(pipeline []int) []int { return pipeline },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(g.Groups(tp.TensorModelParallel), g.Groups(tp.DataParallel), g.Groups(tp.Embedding)); got != "[[2 3] [4 5]] [[2 4] [3 5]] [[2] [3] [4] [5]]" {
		t.Error(got)
	}
	err = multiprocessing.Spawn(b.World, 8, func(p *multiprocessing.Process) error {
		s, err := g.State(p)
		if inside := p.ID >= 2 && p.ID < 6; !inside {
			if err == nil || !strings.Contains(err.Error(), "is not one of the arranged ranks, which are [2 3 4 5]") {
				t.Errorf("got %v", err)
			}
			return nil
		}
		if rank, err := s.Rank(tp.TensorModelParallel); err != nil || rank != p.ID%2 {
			t.Errorf("rank %d: %d, %v", p.ID, rank, err)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// All ranks have the same group objects, with numbers of their own.
func TestGroupsAreShared(t *testing.T) {
	groups := each(t, 4, tp.Config{TensorModelParallelSize: 2}, func(s *tp.State) ([2]string, error) {
		a, err1 := s.Group(tp.TensorModelParallel)
		b, err2 := s.Group(tp.DataParallel)
		return [2]string{fmt.Sprintf("%p %s", a, a.Name), fmt.Sprintf("%p %d", b, b.ID)}, errors.Join(err1, err2)
	})
	if groups[0][0] != groups[1][0] || groups[0][0] == groups[2][0] || groups[0][1] != groups[2][1] || groups[0][1] == groups[1][1] {
		t.Error(groups)
	}
	if !strings.HasSuffix(groups[2][0], "tensor model parallel 1") {
		t.Error(groups[2][0])
	}
}

func TestInitializationRejects(t *testing.T) {
	b := newCluster(t, 8)
	for _, k := range []struct {
		c    tp.Config
		want string
	}{
		{tp.Config{TensorModelParallelSize: 3}, "world_size (8) is not divisible by 3"},
		{tp.Config{TensorModelParallelSize: 2, PipelineModelParallelSize: 2, ContextParallelSize: 4}, "world_size (8) is not divisible by 16"},
		{tp.Config{GTPRematSize: 5}, "by 5"},
		{tp.Config{ExpertModelParallelSize: 3}, "world_size (8) is not divisible by expert_tensor_model_pipeline_parallel size (3)"},
		{tp.Config{VirtualPipelineModelParallelSize: 2}, "pipeline-model-parallel size should be greater than 1 with interleaved schedule: it is 1"},
		{tp.Config{TensorModelParallelSize: -2}, "tensor_model_parallel_size is -2: it must be at least 1"},
		{tp.Config{NumDistributedOptimizerInstances: 3}, "data × context parallel size (8) is not divisible by number of distributed optimizer instances (3)"},
		{tp.Config{ExpertModelParallelSize: 8, NumDistributedOptimizerInstances: 2}, "expert data parallel size (1) is not divisible"},
		{tp.Config{ContextParallelSize: 4, HierarchicalContextParallelSizes: []int{2, 3}}, "[2 3] is 6, not the context parallel size 4"},
		{tp.Config{TensorModelParallelSize: 8, HybridContextParallel: true}, "even number of ranks, not data × context parallel size 1"},
		{tp.Config{PipelineModelParallelSize: 2, ExpertModelParallelSize: 2, Order: "tp-cp-ep-pp-dp"}, "the data parallel sizes of dense layers (4) and of experts (2)"},
		{tp.Config{TensorModelParallelSize: 2, ContextParallelSize: 2, ExpertTensorParallelSize: 4, PipelineModelParallelSize: 2, Order: "tp-pp-cp-ep-dp"},
			"must have the same pipeline parallel groups, but have [[0 2] [1 3] [4 6] [5 7]] and [[0 4] [1 5] [2 6] [3 7]]"},
		{tp.Config{Order: "tp-cp"}, `the size of dp is 8, but the order "tp-cp" does not say where it goes`},
		{tp.Config{RankOffset: 4, LocalWorldSize: 5}, "ranks 4 to 8 are not all in the world of size 8"},
	} {
		_, err := tp.InitializeModelParallel(b.Backend, b.world, k.c)
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%+v: got %v", k.c, err)
		}
	}
	if _, err := tp.InitializeModelParallel(b.Backend, nil, tp.Config{}); err == nil || err.Error() != "default process group is not initialized" {
		t.Errorf("got %v", err)
	}
}

// Megatron raises a RuntimeError where the world cannot be divided, and fails an assertion where sizes do not fit one
// another.
func TestKindsOfErrors(t *testing.T) {
	world := []int{0, 1, 2, 3}
	for _, k := range []struct {
		c                   tp.Config
		ofWorld, isConflict bool
	}{
		{tp.Config{TensorModelParallelSize: 3}, true, false},
		{tp.Config{ExpertModelParallelSize: 3}, true, false},
		{tp.Config{NumDistributedOptimizerInstances: 3}, false, false},
		{tp.Config{ContextParallelSize: 4, HierarchicalContextParallelSizes: []int{2, 3}}, false, true},
		{tp.Config{TensorModelParallelSize: 4, HybridContextParallel: true}, false, true},
	} {
		_, err := tp.Arrange(world, k.c)
		var indivisible *tp.NotDivisibleError
		var conflict *tp.ConflictError
		if ofWorld := errors.As(err, &indivisible) && indivisible.OfWorld(); ofWorld != k.ofWorld {
			t.Errorf("%+v: %v: of the world: %v", k.c, err, ofWorld)
		}
		if is := errors.As(err, &conflict); is != k.isConflict {
			t.Errorf("%+v: %v: a conflict: %v", k.c, err, is)
		}
	}
	if _, err := tp.NewRankGenerator(tp.Sizes{EP: 2, CP: 2}, tp.DefaultOrder); !errors.As(err, new(*tp.ConflictError)) {
		t.Errorf("got %v", err)
	}
}

// An arrangement needs no process groups, and its ranks may have any numbers.
func TestArrangementOfChosenRanks(t *testing.T) {
	a, err := tp.Arrange([]int{7, 3, 5, 9}, tp.Config{
		TensorModelParallelSize: 2, ContextParallelSize: 2, HierarchicalContextParallelSizes: []int{1, 2}, HybridContextParallel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]string{}
	for _, p := range a.Partitions() {
		groups[p.Name] = fmt.Sprint(p.Groups)
	}
	for name, want := range map[string]string{
		"tensor model parallel": "[[7 3] [5 9]]", "hierarchical context parallel 0": "[[7] [5] [3] [9]]",
		"hierarchical context parallel 1": "[[7 5] [3 9]]", "unknown": "", "hybrid data and context parallel 2": "",
	} {
		if got := groups[name]; got != want || got != "" && fmt.Sprint(a.Groups(tp.TensorModelParallel)) != "[[7 3] [5 9]]" {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
