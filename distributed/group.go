package distributed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// ProcessGroup is an ordered set of ranks that meet in collectives. Each member calls the group's collectives in
// its own time; the n-th call of one meets the n-th call of every other.
type ProcessGroup struct {
	ID      int
	Members []int // World ranks, by group rank

	*planner
	index map[int]int         // group rank of a World rank
	next  []uint64            // by group rank: the number of its next collective
	last  []*torchemu.Event   // by group rank: its latest collective; a rank's collectives run in order
	open  map[uint64]*meeting // collectives that some rank has yet to join
}

// NewGroup makes a process group of World ranks, each on the representative PE of its SIP.
func (b *Backend) NewGroup(id int, members []int) (*ProcessGroup, error) {
	devices := make([]topology.DeviceID, len(members))
	for i, r := range members {
		if _, err := b.World.Rank(r); err != nil {
			return nil, err
		}
		devices[i] = b.World.Topology.PE(r, 0, 0)
	}
	g := b.newGroup(id, slices.Clone(members), devices)
	b.groups = append(b.groups, g)
	return g, nil
}

func (b *Backend) newGroup(id int, members []int, devices []topology.DeviceID) *ProcessGroup {
	n := len(members)
	index := make(map[int]int, n)
	for i, r := range members {
		index[r] = i
	}
	return &ProcessGroup{
		ID: id, Members: members, planner: newPlanner(b, devices), index: index,
		next: make([]uint64, n), last: make([]*torchemu.Event, n), open: map[uint64]*meeting{},
	}
}

// Size is the number of members.
func (g *ProcessGroup) Size() int { return len(g.Members) }

// rankOf returns the group rank of a World rank.
func (g *ProcessGroup) rankOf(rank int) (int, error) {
	i, ok := g.index[rank]
	if !ok {
		return 0, fmt.Errorf("rank %d is not a member of group %d, whose members are %v", rank, g.ID, g.Members)
	}
	return i, nil
}

// AllReduce replaces t on every member by the reduction over all members. The call returns when the operation is
// issued; wait for the Work, or read the tensor through something that does.
func (g *ProcessGroup) AllReduce(rank int, t *tensor.Tensor, op tensor.ReduceOp) (*Work, error) {
	if err := op.Check(t.DType()); err != nil {
		return nil, err
	}
	return g.join(rank, ccl.AllReduce, op, t, t)
}

// AllGatherIntoTensor fills out, of Size()·n elements, with the members' in tensors of n elements, by group rank.
func (g *ProcessGroup) AllGatherIntoTensor(rank int, out, in *tensor.Tensor) (*Work, error) {
	if err := g.checkSizes("all_gather_into_tensor", "output", out, "input", in); err != nil {
		return nil, err
	}
	return g.join(rank, ccl.AllGather, tensor.Sum, out, in)
}

// ReduceScatterTensor gives member r, in out of n elements, block r of the reduction of the members' in tensors of
// Size()·n elements.
func (g *ProcessGroup) ReduceScatterTensor(rank int, out, in *tensor.Tensor, op tensor.ReduceOp) (*Work, error) {
	if err := op.Check(in.DType()); err != nil {
		return nil, err
	}
	if err := g.checkSizes("reduce_scatter_tensor", "input", in, "output", out); err != nil {
		return nil, err
	}
	return g.join(rank, ccl.ReduceScatter, op, out, in)
}

// checkSizes verifies that large has Size() times the elements of small, and the same dtype.
func (g *ProcessGroup) checkSizes(call, largeName string, large *tensor.Tensor, smallName string, small *tensor.Tensor) error {
	if large.DType() != small.DType() {
		return fmt.Errorf("%s: the %s tensor is %s but the %s tensor is %s; they must have the same dtype",
			call, largeName, large.DType().Name(), smallName, small.DType().Name())
	}
	if large.Numel() != g.Size()*small.Numel() {
		return fmt.Errorf("%s: %s tensor size must be equal to world_size times %s tensor size: "+
			"%d elements are not %d × %d", call, largeName, smallName, large.Numel(), g.Size(), small.Numel())
	}
	return nil
}

// join is a member's arrival at its next collective.
func (g *ProcessGroup) join(rank int, c ccl.Collective, op tensor.ReduceOp, out, in *tensor.Tensor) (*Work, error) {
	member, err := g.rankOf(rank)
	if err != nil {
		return nil, err
	}
	host, err := g.backend.World.Rank(rank)
	if err != nil {
		return nil, err
	}
	m := g.meeting(g.next[member], c, op, in)
	g.next[member]++
	return m.join(member, host, out, in, callOf(c, op, in))
}

// meeting finds or opens collective number seq.
func (g *ProcessGroup) meeting(seq uint64, c ccl.Collective, op tensor.ReduceOp, in *tensor.Tensor) *meeting {
	m, ok := g.open[seq]
	if !ok {
		m = newMeeting(g, seq, c, op, in)
		g.open[seq] = m
	}
	return m
}

// abandon fails the collectives that are not complete and makes all members agree on the next one.
func (g *ProcessGroup) abandon(err error) {
	for _, seq := range slices.Sorted(maps.Keys(g.open)) {
		g.open[seq].fail(err)
	}
	clear(g.open)
	next := slices.Max(g.next)
	for i := range g.next {
		g.next[i] = next
	}
}
