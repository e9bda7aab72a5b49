package distributed

import (
	"fmt"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Estimate is how long a collective takes that all members begin at once on a fabric that has nothing else to do. It is
// simulated apart, and nothing happens to the tensors. Of all_to_all only this rank's sizes are known: the others are
// taken to send what it does.
func (g *ProcessGroup) Estimate(rank int, o Operation) (sim.Time, error) {
	member, err := g.rankOf(rank)
	if err != nil {
		return 0, err
	}
	if err := o.check(g, member); err != nil {
		return 0, err
	}
	n := g.Size()
	elems, sizes := o.whole(n)
	s := scalarsOf(o.dtype(), elems, sizes)
	launch := ccl.Launch{
		Elems: s.elems, Sizes: s.sizes, ElemSize: s.dtype.Size(), Devices: g.devices, Ready: make([]sim.Time, n),
	}
	plan, err := g.plan(planKey{o.Collective, o.Reduce, o.Root, launch.Elems, launch.ElemSize, o.Algorithm})
	if err != nil {
		return 0, err
	}
	launch.Schedule, launch.Carriage = plan.schedule, plan.carriage
	launch.PartialSize = ccl.PartialSize(s.dtype, g.backend.Options.AccumulateF32)
	return g.backend.idle(launch)
}

// whole is how many elements all members' blocks have together, and each block where they are not equal.
func (o *Operation) whole(world int) (elems int, sizes []int) {
	switch {
	case o.Collective.Gathers():
		return world * numels(o.In), nil
	case o.Collective.Scatters():
		return world * numels(o.Out), nil
	case o.Collective.Exchanges():
		return world * numels(o.In), pairs(o.In, world)
	}
	return max(numels(o.In), numels(o.Out)), nil
}

// pairs are the sizes of what each member sends to each, if all send the same; nil when those are equal.
func pairs(blocks []*tensor.Tensor, world int) []int {
	var sizes []int
	uneven := false
	for range world {
		for _, t := range blocks {
			sizes = append(sizes, t.Numel())
			uneven = uneven || t.Numel() != blocks[0].Numel()
		}
	}
	if !uneven {
		return nil
	}
	return sizes
}

// idle plays a collective on a fabric of its own.
func (b *Backend) idle(l ccl.Launch) (sim.Time, error) {
	e := sim.NewEngine()
	last := &lastOf{left: len(l.Ready)}
	ccl.NewExecutor(e, network.New(e, b.World.Topology)).Start(l, last)
	for last.left > 0 {
		if !e.Step() {
			return 0, fmt.Errorf("%s does not come to its end", l.Schedule.Algorithm)
		}
	}
	return last.at, nil
}

// lastOf notes when the last rank is done. It implements ccl.Watcher.
type lastOf struct {
	left int
	at   sim.Time
}

func (l *lastOf) RankDone(_ int, now sim.Time) {
	l.left--
	l.at = max(l.at, now)
}

// EstimateMessage is how long so many bytes from a member to another one take on a fabric that has nothing else to do.
func (g *ProcessGroup) EstimateMessage(from, to int, bytes int64) (sim.Time, error) {
	for _, member := range []int{from, to} {
		if member < 0 || member >= g.Size() {
			return 0, fmt.Errorf("invalid rank %d: group %s has ranks 0 to %d", member, g.Name, g.Size()-1)
		}
	}
	n := g.backend.World.Network
	if err := n.CheckCopy(bytes); err != nil {
		return 0, err
	}
	return n.Uncontended(n.Path(g.devices[from], g.devices[to]), bytes), nil
}
