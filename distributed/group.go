package distributed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// ProcessGroup is an ordered set of ranks that meet in collectives. Each member calls the group's collectives in
// its own time; the n-th call of one meets the n-th call of every other.
type ProcessGroup struct {
	ID      int    // its number in the World
	Name    string // what messages call it
	Members []int  // World ranks, by group rank

	Description string // what the program says the group is for; "" is the name

	// HoldsHosts is whether a rank's host waits for the group's operations before it goes on, as with gloo: it does not
	// put off what needs their results.
	HoldsHosts bool

	*planner
	index map[int]int // group rank of a World rank
	of    []int       // by group rank, the member that stands for it; nil: each for itself
	folds map[foldKey]*ccl.Folded
	next  []uint64            // by group rank: the number of its next collective
	last  []*torchemu.Event   // by group rank: its latest collective; a rank's collectives run in order
	open  map[uint64]*meeting // collectives that some rank has yet to join
	mail  []mailbox           // by group rank: messages between two ranks that have not met

	lines   []*order.Line          // by group rank: what is known of its collectives
	letters map[[2]int]*order.Line // what a member knows of its messages with another one

	watchdogs []watchdog // by group rank; nil before the first SetTimeout
}

// NewGroup makes a process group of World ranks, each on the representative PE of its SIP. No rank is in it twice.
func (b *Backend) NewGroup(id int, name string, members []int) (*ProcessGroup, error) {
	if len(members) == 0 {
		return nil, fmt.Errorf("a process group needs at least one rank")
	}
	devices := make([]topology.DeviceID, len(members))
	for i, r := range members {
		if _, err := b.World.Rank(r); err != nil {
			return nil, err
		}
		devices[i] = b.World.Topology.PE(r, 0, 0)
	}
	g := b.newGroup(id, name, slices.Clone(members), devices)
	if len(g.index) < len(members) {
		return nil, fmt.Errorf("group %s: the ranks %v are not all different", name, members)
	}
	b.groups = append(b.groups, g)
	return g, nil
}

func (b *Backend) newGroup(id int, name string, members []int, devices []topology.DeviceID) *ProcessGroup {
	n := len(members)
	index := make(map[int]int, n)
	for i, r := range members {
		index[r] = i
	}
	return &ProcessGroup{
		ID: id, Name: name, Members: members, planner: b.planner(devices), index: index,
		of:   b.standing(members, index),
		next: make([]uint64, n), last: make([]*torchemu.Event, n), open: map[uint64]*meeting{}, mail: make([]mailbox, n),
		lines: make([]*order.Line, n), letters: map[[2]int]*order.Line{},
	}
}

// Size is the number of members.
func (g *ProcessGroup) Size() int { return len(g.Members) }

// Next is the number that a member's next collective will have.
func (g *ProcessGroup) Next(rank int) (uint64, error) {
	i, err := g.rankOf(rank)
	if err != nil {
		return 0, err
	}
	return g.next[i], nil
}

// rankOf returns the group rank of a World rank.
func (g *ProcessGroup) rankOf(rank int) (int, error) {
	i, ok := g.index[rank]
	if !ok {
		return 0, fmt.Errorf("rank %d is not a member of group %s, whose members are %v", rank, g.Name, g.Members)
	}
	return i, nil
}

// AllReduce replaces t on every member by the reduction over all members. Like the other operations it returns when
// it is issued; wait for the Work, or read the tensor through something that does.
func (g *ProcessGroup) AllReduce(c Caller, t *tensor.Tensor, op tensor.ReduceOp) (*Work, error) {
	list := []*tensor.Tensor{t}
	return g.Do(c, Operation{Name: "all_reduce", Collective: collective.AllReduce, Reduce: op, Out: list, In: list})
}

// AllGatherIntoTensor fills out, of Size()·n elements, with the members' in tensors of n elements, by group rank.
func (g *ProcessGroup) AllGatherIntoTensor(c Caller, out, in *tensor.Tensor) (*Work, error) {
	return g.Do(c, Operation{
		Name: "all_gather_into_tensor", Collective: collective.AllGather, Out: []*tensor.Tensor{out}, In: []*tensor.Tensor{in},
	})
}

// ReduceScatterTensor gives member r, in out of n elements, block r of the reduction of the members' in tensors of
// Size()·n elements.
func (g *ProcessGroup) ReduceScatterTensor(c Caller, out, in *tensor.Tensor, op tensor.ReduceOp) (*Work, error) {
	return g.Do(c, Operation{
		Name: "reduce_scatter_tensor", Collective: collective.ReduceScatter, Reduce: op,
		Out: []*tensor.Tensor{out}, In: []*tensor.Tensor{in},
	})
}

// Broadcast makes t on every member root's.
func (g *ProcessGroup) Broadcast(c Caller, t *tensor.Tensor, root int) (*Work, error) {
	o := Operation{Name: "broadcast", Collective: collective.Broadcast, Root: root, Out: []*tensor.Tensor{t}}
	if g.index[c.Rank] == root {
		o.In = o.Out
	}
	return g.Do(c, o)
}

// Barrier ends for each member after it has begun for all.
func (g *ProcessGroup) Barrier(c Caller) (*Work, error) {
	t, err := tensor.New(dtype.U8, 1)
	if err != nil {
		return nil, err
	}
	list := []*tensor.Tensor{t}
	return g.Do(c, Operation{Name: "barrier", Collective: collective.AllReduce, Reduce: tensor.Max, Out: list, In: list})
}

// Do is a member's call of its next collective.
func (g *ProcessGroup) Do(c Caller, o Operation) (*Work, error) {
	member, err := g.rankOf(c.Rank)
	if err != nil {
		return nil, err
	}
	host, err := g.backend.World.Rank(c.Rank)
	if err != nil {
		return nil, err
	}
	if err := host.Alive(); err != nil {
		return nil, err
	}
	if c.Stream == nil {
		c.Stream = host.Stream()
	}
	if err := o.check(g, member); err != nil {
		return nil, err
	}
	m := g.meeting(g.next[member], &o)
	g.next[member]++
	if w := g.backend.World; w.Footprint != nil {
		defer w.Joins(m.mark(&o))()
	}
	return m.join(member, host, c, &o)
}

// meeting finds or opens collective number seq.
func (g *ProcessGroup) meeting(seq uint64, o *Operation) *meeting {
	m, ok := g.open[seq]
	if !ok {
		m = newMeeting(g, seq, o)
		g.open[seq] = m
	}
	return m
}

// abandon fails what is not complete and makes all members agree on the next collective.
func (g *ProcessGroup) abandon(err error) {
	for _, seq := range slices.Sorted(maps.Keys(g.open)) {
		g.open[seq].fail(err)
	}
	clear(g.open)
	clear(g.mail)
	next := slices.Max(g.next)
	for i := range g.next {
		g.next[i] = next
	}
}

// Abort ends, with an error, what a member has a part in and cannot run any more: the collectives that it has joined
// and others have not, and its messages that have not met the other side.
func (g *ProcessGroup) Abort(rank int, err error) error {
	member, notMember := g.rankOf(rank)
	if notMember != nil {
		return notMember
	}
	for _, seq := range slices.Sorted(maps.Keys(g.open)) {
		if m := g.open[seq]; m.parts[member].work != nil {
			m.fail(err)
		}
	}
	now := g.backend.World.Engine.Now()
	for i := range g.mail {
		for _, l := range g.mail[i].drop(func(l *letter) bool { return l.owner() == member }) {
			l.work.Fail(err, now)
		}
	}
	return nil
}
