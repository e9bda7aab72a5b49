package tp

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Comm is a rank's place in a process group: what the rank's layers compute on and communicate through.
type Comm struct {
	Group *distributed.ProcessGroup
	Rank  int // in the group

	process  *multiprocessing.Process
	topology *topology.Topology
}

// NewComm returns a rank's place in a group. It is an error when the rank is not a member.
func NewComm(b *distributed.Backend, p *multiprocessing.Process, g *distributed.ProcessGroup) (*Comm, error) {
	rank, err := groupRank(g, p.ID)
	if err != nil {
		return nil, err
	}
	return &Comm{Group: g, Rank: rank, process: p, topology: b.World.Topology}, nil
}

// groupRank is the number of a World rank in a group.
func groupRank(g *distributed.ProcessGroup, rank int) (int, error) {
	i := slices.Index(g.Members, rank)
	if i < 0 {
		return 0, fmt.Errorf("rank %d is not a member of group %s, whose members are %v", rank, g.Name, g.Members)
	}
	return i, nil
}

// Size is the number of ranks in the group.
func (c *Comm) Size() int { return c.Group.Size() }

// check says that there is no group to communicate through, when c is nil: what a rank gets that does not look at the
// error of [State.Comm].
func (c *Comm) check() error {
	if c == nil {
		return &NotInitializedError{Group: TensorModelParallel.String()}
	}
	return nil
}

// Wait lets the rank's host wait until the operations on tensors have ended, in simulated time. A program does this
// before it reads them.
func (c *Comm) Wait(tensors ...*tensor.Tensor) error {
	return c.wait(torchemu.All(torchemu.Uses{Reads: tensors}.Before()))
}

func (c *Comm) stream() *torchemu.Stream { return c.process.Stream() }

// settle parks the rank until the data of tensors is in place. This takes no simulated time: what a device computes
// with is there when its turn comes.
func (c *Comm) settle(tensors ...*tensor.Tensor) error {
	before := torchemu.Uses{Reads: tensors}.Before()
	if err := torchemu.FirstError(before); err != nil {
		return err
	}
	return c.wait(c.process.World().Settled(torchemu.Unsettled(before)))
}

// wait parks the rank until an event has ended; nil is none.
func (c *Comm) wait(e *torchemu.Event) error {
	if e == nil {
		return nil
	}
	return c.process.Wait(e)
}
