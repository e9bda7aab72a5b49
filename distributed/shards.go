package distributed

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// ShardGroup is the group of a single worker whose tensors are sharded over the PEs of one SIP: the ranks of its
// collectives are the shards, and one call of the worker is the arrival of them all.
type ShardGroup struct {
	World int // shards a tensor must have

	backend *Backend
	host    *torchemu.Rank
	next    uint64                   // number of the next collective
	last    *torchemu.Event          // the latest collective; they run in order
	groups  map[string]*ProcessGroup // by the devices that the shards lie on
}

// NewShardGroup makes the group of a single worker, rank host, whose world size is world.
func (b *Backend) NewShardGroup(host, world int) (*ShardGroup, error) {
	r, err := b.World.Rank(host)
	if err != nil {
		return nil, err
	}
	if most := b.World.Topology.CubesPerSIP() * b.World.Topology.PEsPerCube(); world < 1 || world > most {
		return nil, fmt.Errorf("world size %d does not fit: it is not the number of SIPs (%d), and the shards of a "+
			"single worker lie on the PEs of one SIP, of which topology %q has %d",
			world, b.World.Topology.SIPs(), b.World.Topology.Name, most)
	}
	return &ShardGroup{World: world, backend: b, host: r, groups: map[string]*ProcessGroup{}}, nil
}

// AllReduce reduces t's shards with each other; every shard receives the result.
func (g *ShardGroup) AllReduce(c Caller, t *tensor.Tensor, p tensor.Placement, op tensor.ReduceOp) (*Work, error) {
	shards, err := g.shards(t, p)
	if err != nil {
		return nil, err
	}
	o := Operation{Name: "all_reduce", Collective: collective.AllReduce, Reduce: op}
	return g.meet(c, o, sharded{t, t, shards, shards})
}

// AllGatherIntoTensor gives every shard of out the concatenation of in's shards.
func (g *ShardGroup) AllGatherIntoTensor(c Caller, out *tensor.Tensor, outAt tensor.Placement, in *tensor.Tensor, inAt tensor.Placement) (*Work, error) {
	outs, err := g.shards(out, outAt)
	if err != nil {
		return nil, err
	}
	ins, err := g.shards(in, inAt)
	if err != nil {
		return nil, err
	}
	o := Operation{Name: "all_gather_into_tensor", Collective: collective.AllGather}
	return g.meet(c, o, sharded{out, in, outs, ins})
}

// sharded is what the ranks of a collective give and receive: shards of two tensors, or of one.
type sharded struct {
	out, in   *tensor.Tensor
	outs, ins []tensor.Shard
}

// shards cuts t and verifies that there is one shard for each rank, all of one shape.
func (g *ShardGroup) shards(t *tensor.Tensor, p tensor.Placement) ([]tensor.Shard, error) {
	topo := g.backend.World.Topology
	shards, err := p.Shards(t, topo.CubesPerSIP(), topo.PEsPerCube())
	if err != nil {
		return nil, err
	}
	if len(shards) != g.World {
		return nil, fmt.Errorf("the tensor has %d shards but the world size is %d: its DPPolicy must place it on as many "+
			"PEs as there are ranks", len(shards), g.World)
	}
	for i, s := range shards {
		if !slices.Equal(s.View.Shape(), shards[0].View.Shape()) {
			return nil, fmt.Errorf("the tensor's shards differ in shape: shard %d is %v, shard 0 is %v; "+
				"a collective needs equal ones", i, s.View.Shape(), shards[0].View.Shape())
		}
	}
	return shards, nil
}

// meet lets every shard join one collective.
func (g *ShardGroup) meet(c Caller, o Operation, s sharded) (*Work, error) {
	if err := g.host.Alive(); err != nil {
		return nil, err
	}
	group := g.group(s.ins)
	o.Out, o.In = []*tensor.Tensor{s.outs[0].View}, []*tensor.Tensor{s.ins[0].View}
	if err := o.check(group, 0); err != nil {
		return nil, err
	}
	if c.Stream == nil {
		c.Stream = g.host.Stream()
	}
	m := newMeeting(group, g.next, &o)
	g.next++
	w := m.joinAll(g.host, c, g.last, s)
	g.last = w.Event
	return w, nil
}

// group returns the process group of the devices that the shards lie on.
func (g *ShardGroup) group(shards []tensor.Shard) *ProcessGroup {
	devices := make([]topology.DeviceID, len(shards))
	members := make([]int, len(shards))
	for i, s := range shards {
		devices[i] = g.backend.World.Topology.PE(g.host.ID, s.Cube, s.PE)
		members[i] = i
	}
	key := fmt.Sprint(devices)
	group, ok := g.groups[key]
	if !ok {
		group = g.backend.newGroup(0, "of shards", members, devices)
		g.groups[key] = group
	}
	return group
}
