package replay

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// call is a collective that ranks make together.
type call struct {
	kind            collective.Kind
	algorithm       string // "": as the fabric suits
	elems, elemSize int64
	root            int // World rank
	ranks           []int
	members         []int // those that make it
}

// calls plays the collectives of a job.
type calls struct {
	*player
	chooser  ccl.Chooser
	launches []ccl.Launch
	running  []ccl.Joiner
	parts    [][]uint32 // by call and member: the operation
}

func newCalls(p *player, t *topology.Topology) calls {
	c := calls{player: p, running: make([]ccl.Joiner, len(p.Job.calls))}
	c.chooser.Tuner = ccl.NewTuner(t)
	if transport := t.Transport(); transport != nil && transport.Library != "" {
		c.chooser.Library, _ = ccl.LoadLibrary(transport.Library) // the topology was checked
	}
	for i := range p.Job.calls {
		c.parts = append(c.parts, make([]uint32, len(p.Job.calls[i].ranks)))
	}
	return c
}

// plan chooses algorithms and lays them out.
func (c *calls) plan() error {
	if c.player == nil {
		return nil
	}
	built := map[string]*ccl.Schedule{}
	for i := range c.Job.calls {
		l, err := c.launch(&c.Job.calls[i], built)
		if err != nil {
			return fmt.Errorf("%s: %w", c.file, err)
		}
		c.launches = append(c.launches, l)
	}
	return nil
}

func (c *calls) launch(one *call, built map[string]*ccl.Schedule) (ccl.Launch, error) {
	n := len(one.ranks)
	l := ccl.Launch{Elems: int(one.elems), ElemSize: int(one.elemSize), PartialSize: int(one.elemSize), Ready: make([]sim.Time, n)}
	if blocks := one.kind.Blocks(n); blocks > 0 {
		l.Elems = (l.Elems + blocks - 1) / blocks * blocks
	}
	for i, r := range one.ranks {
		l.Devices = append(l.Devices, c.devices[r])
		l.Ready[i] = ccl.NotReady
	}
	layout := ccl.LayoutOf(c.network.Topology(), l.Devices)
	if one.kind.Rooted() {
		layout.Root = slices.Index(one.ranks, one.root)
	}
	name := one.algorithm
	if a, err := ccl.Lookup(one.kind, name); err != nil || ccl.Offered(a, layout) != nil {
		name = ccl.Auto
	}
	choice, err := c.chooser.Choose(one.kind, name, layout, l.Devices, l.Elems, l.ElemSize)
	if err != nil {
		return l, err
	}
	bytes := ccl.ToCut(c.network.Topology(), choice.Algorithm, int64(l.Elems)*int64(l.ElemSize))
	key := fmt.Sprint(one.kind, choice.Algorithm.Name(), one.ranks, layout.Root, choice.Algorithm.Depth(layout, bytes))
	if built[key] == nil {
		built[key] = choice.Algorithm.Build(layout, bytes)
	}
	l.Schedule = built[key]
	l.Carriage = c.chooser.Carriage(l, layout)
	return l, nil
}

// join lets a rank join its call, which begins with the first.
func (c *calls) join(o *operation, i uint32, now sim.Time) {
	number := o.amount
	member := slices.Index(c.Job.calls[number].ranks, int(o.rank))
	c.parts[number][member] = i
	if c.running[number] == nil {
		c.running[number] = c.executor.Start(c.launches[number], part{c, int(number)})
	}
	c.running[number].Join(member, now)
}

// part is a call under way. It implements ccl.Watcher.
type part struct {
	*calls
	number int
}

// RankDone ends a rank's part.
func (p part) RankDone(member int, now sim.Time) {
	p.Handle(now, uint64(p.parts[p.number][member]))
}
