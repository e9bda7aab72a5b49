package pybind

import (
	"encoding/json"
	"strings"

	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/tp"
)

// ParallelGroups lists the groups that so many ranks form for model parallelism. config is JSON: the arguments of
// Megatron's initialize_model_parallel. The answer is JSON, too; see tp.Partition.
func ParallelGroups(worldSize int, config string) (groups string, err error) {
	defer host.Guard(&err)
	var c tp.Config
	decoder := json.NewDecoder(strings.NewReader(config))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return "", host.Raise("ValueError", "%v", err)
	}
	world := make([]int, max(worldSize, 0))
	for i := range world {
		world[i] = i
	}
	a, err := tp.Arrange(world, c)
	if err != nil {
		return "", host.AsMegatron(err)
	}
	text, err := json.Marshal(a.Partitions())
	return string(text), err
}

// RankGroups lists, as JSON, the groups that ranks form which are arranged in an order, such as "tp-cp-ep-dp-pp": those of
// the given kinds, "tp-dp". The sizes are those of tp, cp, ep, dp and pp.
func RankGroups(tensor, context, expert, data, pipeline int, order, kinds string) (groups string, err error) {
	defer host.Guard(&err)
	s := tp.Sizes{TP: tensor, CP: context, EP: expert, DP: data, PP: pipeline}
	generator, err := tp.NewRankGenerator(s, order)
	if err != nil {
		return "", host.AsMegatron(err)
	}
	ranks, err := generator.Ranks(kinds)
	if err != nil {
		return "", host.AsMegatron(err)
	}
	text, err := json.Marshal(ranks)
	return string(text), err
}

// ParallelPlans describes, as JSON, the forward and the backward plan of what Megatron calls by a name: a layer, the
// loss, or a mapping. options is JSON, too; see tp.Describe.
func ParallelPlans(name, options string) (plans string, err error) {
	defer host.Guard(&err)
	described, err := tp.Describe(name, []byte(options))
	if err != nil {
		return "", host.Raise("ValueError", "%v", err)
	}
	text, err := json.Marshal(described)
	return string(text), err
}

// StepCosts lists, as JSON, what the kernels of a step of a plan take on a SIP of a World, each as LaunchKernel has it:
// its bytes, operations and unit. The step is JSON, as ParallelPlans has it; so are its operands, those that it
// reads and then those that it makes, each a dtype and a shape.
func StepCosts(worldHandle int64, step, operands string) (costs string, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return "", err
	}
	launches, err := host.StepLaunches(w.Topology, step, operands)
	if err != nil {
		return "", host.Raise("ValueError", "%v", err)
	}
	text, err := json.Marshal(launches)
	return string(text), err
}

// MatMulOps is how many operations of its unit take as long as a stack of products [m, k]·[k, n], whose operands lie in
// memory by rows, "n", or by columns, "t", as in "nt"; see network.MatMulCost.
func MatMulOps(worldHandle int64, dtypeName string, stack, m, n, k int, layout string) (ops int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	d, err := dtype.Parse(dtypeName)
	if err != nil {
		return 0, err
	}
	p, err := network.Product{Stack: stack, M: m, N: n, K: k}.WithLayout(layout)
	if err != nil {
		return 0, host.Raise("ValueError", "%v", err)
	}
	return network.MatMulCost(w.Topology, d, p).Ops, nil
}

// MatMulBytes is how many bytes a product [m, k]·[k, n] moves between a SIP's memory and its PEs; see
// network.MatMulCost.
func MatMulBytes(worldHandle int64, dtypeName string, m, n, k int) (nbytes int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	d, err := dtype.Parse(dtypeName)
	if err != nil {
		return 0, err
	}
	return network.MatMulCost(w.Topology, d, network.Product{M: m, N: n, K: k}).Bytes, nil
}
