package pybind

import (
	"slices"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// NewGroup makes a process group of World ranks, given as "0,1,3". id is the number that messages call it by.
func NewGroup(worldHandle int64, id int, members string) (handle int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	ranks, err := parseInts(members)
	if err != nil {
		return 0, err
	}
	if len(ranks) == 0 || len(slices.Compact(slices.Sorted(slices.Values(ranks)))) < len(ranks) {
		return 0, raise("ValueError", "a process group needs ranks, each once; not [%s]", members)
	}
	g, err := w.backend.NewGroup(id, ranks)
	if err != nil {
		return 0, err
	}
	return register(owned[*distributed.ProcessGroup]{g, w}), nil
}

func groupOf(handle int64) (owned[*distributed.ProcessGroup], error) {
	return ownedBy[*distributed.ProcessGroup](handle, "process group")
}

// AllReduce issues an all_reduce of t by a rank and returns its work.
func AllReduce(group int64, rank int, t int64, op string) (work int64, err error) {
	defer guard(&err)
	g, tensors, reduce, err := arguments(group, op, t)
	if err != nil {
		return 0, err
	}
	w, err := g.object.AllReduce(rank, tensors[0].Tensor, reduce)
	return issued(g.world, w, err)
}

// AllGatherIntoTensor issues an all_gather_into_tensor by a rank and returns its work.
func AllGatherIntoTensor(group int64, rank int, out, in int64) (work int64, err error) {
	defer guard(&err)
	g, tensors, _, err := arguments(group, "sum", out, in)
	if err != nil {
		return 0, err
	}
	w, err := g.object.AllGatherIntoTensor(rank, tensors[0].Tensor, tensors[1].Tensor)
	return issued(g.world, w, err)
}

// ReduceScatterTensor issues a reduce_scatter_tensor by a rank and returns its work.
func ReduceScatterTensor(group int64, rank int, out, in int64, op string) (work int64, err error) {
	defer guard(&err)
	g, tensors, reduce, err := arguments(group, op, out, in)
	if err != nil {
		return 0, err
	}
	w, err := g.object.ReduceScatterTensor(rank, tensors[0].Tensor, tensors[1].Tensor, reduce)
	return issued(g.world, w, err)
}

// arguments resolves what the collectives of a process group take.
func arguments(group int64, op string, handles ...int64) (g owned[*distributed.ProcessGroup], tensors []*placed, reduce tensor.ReduceOp, err error) {
	if g, err = groupOf(group); err != nil {
		return
	}
	if reduce, err = tensor.ParseReduceOp(op); err != nil {
		return
	}
	tensors, err = tensorsOf(g.world, handles...)
	return
}

// tensorsOf resolves tensors and checks that they belong to the World.
func tensorsOf(w *world, handles ...int64) ([]*placed, error) {
	list := make([]*placed, len(handles))
	for i, h := range handles {
		o, err := tensorOf(h)
		if err != nil {
			return nil, err
		}
		if o.world != w {
			return nil, raise("RuntimeError", "the tensor belongs to another World than the process group")
		}
		list[i] = o.object
	}
	return list, nil
}

// issued hands the work of an operation to Python.
func issued(w *world, work *distributed.Work, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return register(owned[*torchemu.Event]{work.Event, w}), nil
}

// IsDone reports whether a work has ended.
func IsDone(work int64) (done bool, err error) {
	defer guard(&err)
	e, err := pendingOn(work)
	if err != nil {
		return false, err
	}
	return e == nil || e.Done(), nil
}

// IsPending reports whether an operation on the tensor has not ended, or has failed: whether something may still use
// its memory.
func IsPending(t int64) (pending bool, err error) {
	defer guard(&err)
	o, err := tensorOf(t)
	if err != nil {
		return false, err
	}
	return torchemu.PendingOn(o.object.Tensor) != nil, nil
}

// NewShardGroup makes the group of a single worker whose tensors are sharded over the PEs of one SIP.
func NewShardGroup(worldHandle int64, worldSize int) (handle int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	g, err := w.backend.NewShardGroup(0, worldSize)
	if err != nil {
		return 0, err
	}
	return register(owned[*distributed.ShardGroup]{g, w}), nil
}

// AllReduceShards issues an all_reduce over the shards of t and returns its work.
func AllReduceShards(group, t int64, op string) (work int64, err error) {
	defer guard(&err)
	g, tensors, err := shardArguments(group, t)
	if err != nil {
		return 0, err
	}
	reduce, err := tensor.ParseReduceOp(op)
	if err != nil {
		return 0, err
	}
	w, err := g.object.AllReduce(tensors[0].Tensor, tensors[0].at, reduce)
	return issued(g.world, w, err)
}

// AllGatherShards issues an all_gather_into_tensor from the shards of in into the shards of out.
func AllGatherShards(group, out, in int64) (work int64, err error) {
	defer guard(&err)
	g, tensors, err := shardArguments(group, out, in)
	if err != nil {
		return 0, err
	}
	w, err := g.object.AllGatherIntoTensor(tensors[0].Tensor, tensors[0].at, tensors[1].Tensor, tensors[1].at)
	return issued(g.world, w, err)
}

func shardArguments(group int64, handles ...int64) (g owned[*distributed.ShardGroup], tensors []*placed, err error) {
	if g, err = ownedBy[*distributed.ShardGroup](group, "process group"); err != nil {
		return
	}
	tensors, err = tensorsOf(g.world, handles...)
	return
}
