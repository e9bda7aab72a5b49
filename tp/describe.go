package tp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// MappingOptions is what decides the plans of a [Mapping].
type MappingOptions struct {
	Ranks                    int   `json:"ranks"`
	Sizes                    []int `json:"sizes"`    // of the ranks' parts, where they differ; of what comes, in an all-to-all
	InSizes                  []int `json:"in_sizes"` // of what goes, in an all-to-all
	TensorParallelOutputGrad bool  `json:"tensor_parallel_output_grad"`
}

// mappings are those that have a name in Megatron.
var mappings = map[string]func(o MappingOptions) Mapping{
	"copy_to_tensor_model_parallel_region":     func(MappingOptions) Mapping { return CopyToTensorModelParallelRegion() },
	"reduce_from_tensor_model_parallel_region": func(MappingOptions) Mapping { return ReduceFromTensorModelParallelRegion() },
	"scatter_to_tensor_model_parallel_region":  func(MappingOptions) Mapping { return ScatterToTensorModelParallelRegion() },
	"gather_from_tensor_model_parallel_region": func(MappingOptions) Mapping { return GatherFromTensorModelParallelRegion() },
	"scatter_to_sequence_parallel_region":      func(MappingOptions) Mapping { return ScatterToSequenceParallelRegion() },
	"gather_from_sequence_parallel_region": func(o MappingOptions) Mapping {
		return GatherFromSequenceParallelRegion(o.TensorParallelOutputGrad, o.Sizes...)
	},
	"reduce_scatter_to_sequence_parallel_region": func(o MappingOptions) Mapping {
		return ReduceScatterToSequenceParallelRegion(o.Sizes...)
	},
	"all_gather_last_dim_from_tensor_parallel_region": func(MappingOptions) Mapping {
		return AllGatherLastDimFromTensorParallelRegion()
	},
	"reduce_scatter_last_dim_to_tensor_parallel_region": func(MappingOptions) Mapping {
		return ReduceScatterLastDimToTensorParallelRegion()
	},
	"all_to_all":       func(o MappingOptions) Mapping { return AllToAll(o.Sizes, o.InSizes) },
	"all_to_all_sp2hp": func(MappingOptions) Mapping { return AllToAllSequenceToHidden() },
	"all_to_all_hp2sp": func(MappingOptions) Mapping { return AllToAllHiddenToSequence() },
}

// layers are those that have a name in Megatron, and what decides their plans.
var layers = map[string]func(options []byte) (Plans, error){
	"ColumnParallelLinear":         described[ColumnPasses],
	"RowParallelLinear":            described[RowPasses],
	"VocabParallelEmbedding":       described[EmbeddingPasses],
	"vocab_parallel_cross_entropy": described[LossPasses],
}

// Describe returns the plans of what Megatron calls by a name: a layer, the loss, or a mapping. options is JSON: that of
// [ColumnPasses], [RowPasses], [EmbeddingPasses], [LossPasses] or [MappingOptions]. The same options make the same plans.
func Describe(name string, options []byte) (Plans, error) {
	if describe := layers[name]; describe != nil {
		return describe(options)
	}
	mapping := mappings[name]
	if mapping == nil {
		return Plans{}, fmt.Errorf("there are no plans of %q: want one of %v", name, names())
	}
	o, err := decoded[MappingOptions](options)
	if err != nil {
		return Plans{}, err
	}
	return mapping(o).Plans(o.Ranks), nil
}

// names lists what Describe knows.
func names() []string {
	return append(slices.Sorted(maps.Keys(layers)), slices.Sorted(maps.Keys(mappings))...)
}

// checked is options that can be wrong.
type checked interface{ check() error }

// decoded reads options.
func decoded[O checked](text []byte) (O, error) {
	var o O
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil {
		return o, err
	}
	return o, o.check()
}

func described[P interface {
	passes
	checked
}](options []byte) (Plans, error) {
	o, err := decoded[P](options)
	if err != nil {
		return Plans{}, err
	}
	return o.Plans(), nil
}

func checkRanks(n int) error {
	if n < 1 {
		return fmt.Errorf("a plan of %d ranks: want at least 1", n)
	}
	return nil
}

func (o MappingOptions) check() error { return checkRanks(o.Ranks) }

func (o ColumnPasses) check() error {
	if o.OutputDType == "" {
		return checkRanks(o.Ranks)
	}
	for _, name := range []string{o.DType, o.OutputDType} {
		if _, err := dtype.Parse(name); err != nil {
			return err
		}
	}
	return checkRanks(o.Ranks)
}

func (o RowPasses) check() error { return checkRanks(o.Ranks) }

func (o EmbeddingPasses) check() error { return checkRanks(o.Ranks) }
