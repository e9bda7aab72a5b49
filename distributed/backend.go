// Package distributed gives process groups the meaning they have in torch.distributed, on a simulated cluster: ranks
// meet in a collective in the order in which each calls it, disagreements are errors that name both sides, and each
// rank gets a [Work] to wait for.
package distributed

import (
	"cmp"
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Options are the choices of ccl.yaml that a backend follows.
type Options struct {
	Algorithm     string // an all_reduce algorithm's name, or ccl.Auto; other collectives take their namesake, if any
	AccumulateF32 bool   // keep float32 between the steps of a reduction
	Library       string // that chooses where the algorithm is ccl.Auto; "" is the topology's, ccl.NoLibrary none

	Chosen  map[collective.Kind]string // algorithms' names, or ccl.Auto, where Algorithm is not to decide
	Kernels map[collective.Kind]string // device programs that run a collective instead of an algorithm
}

// Backend is what all process groups of a World share: the executor, the tuner, and the log of what was run.
type Backend struct {
	World   *torchemu.World
	Options Options
	Log     []*Record
	Sites   Sites // where operations are called

	// Kernels runs the collectives of Options.Kernels; nil as long as there is nobody who can.
	Kernels Kernels

	// Choose picks one of n messages that a receive from any rank could take. nil picks the one that was sent first.
	Choose func(n int) int

	// Look is told of each use of a tensor by an operation, where an order is kept; nil: nobody wants to know.
	Look func(t *tensor.Tensor, a tensor.Access, d *tensor.Deed)

	executor *ccl.Executor
	tuner    *ccl.Tuner
	library  *ccl.Library // nil: the tuner chooses
	untried  []Untried
	groups   []*ProcessGroup
	leaving  []*ProcessGroup     // forgotten ones with something under way, when the last group was forgotten
	planners map[string]*planner // by the devices
	mirror   *mirror             // nil: every rank runs
}

// NewBackend returns a backend for the World. It is an error when a collective has no algorithm of the name in o.
func NewBackend(w *torchemu.World, o Options) (*Backend, error) {
	o.Algorithm = cmp.Or(o.Algorithm, ccl.Auto)
	if err := checkNamed(collective.AllReduce, o.Algorithm); err != nil {
		return nil, err
	}
	for c := range collective.NumKinds {
		if err := checkNamed(c, cmp.Or(o.Chosen[c], ccl.Auto)); err != nil {
			return nil, err
		}
	}
	library, err := libraryOf(w.Topology, o.Library)
	if err != nil {
		return nil, err
	}
	return &Backend{
		World:    w,
		Options:  o,
		executor: ccl.NewExecutor(w.Engine, w.Network),
		tuner:    ccl.NewTuner(w.Topology),
		library:  library,
	}, nil
}

// checkNamed verifies that a collective has an algorithm of a name, which may be Auto.
func checkNamed(c collective.Kind, name string) error {
	if name == ccl.Auto {
		return nil
	}
	_, err := ccl.Lookup(c, name)
	return err
}

// libraryOf finds the library that is to choose; nil: none is.
func libraryOf(t *topology.Topology, name string) (*ccl.Library, error) {
	if name == "" && t.Transport() != nil {
		name = t.Transport().Library
	}
	if name == "" || name == ccl.NoLibrary {
		return nil, nil
	}
	return ccl.LoadLibrary(name)
}

// Record is one collective that was run.
type Record struct {
	Name       string // as the program called it
	Collective collective.Kind
	Algorithm  string
	Ranks      int
	Bytes      int64    // as nccl-tests counts: the vector of an all_reduce, the large side of the others
	Start, End sim.Time // from the last rank's arrival to the last rank's completion
	unicast    bool     // a message between two ranks
}

// AlgBW is the algorithm bandwidth of nccl-tests in bytes per second: size over time; 0 when no time passed.
func (r *Record) AlgBW() float64 {
	if r.End <= r.Start {
		return 0
	}
	return float64(r.Bytes) / (float64(r.End-r.Start) / float64(sim.Second))
}

// BusBW is the bus bandwidth of nccl-tests in bytes per second: AlgBW times the share of the data that an optimal
// algorithm must move through each rank's link.
func (r *Record) BusBW() float64 {
	n := float64(r.Ranks)
	passes := float64(r.Collective.Row().Passes)
	if r.unicast || passes == 0 {
		return r.AlgBW()
	}
	return r.AlgBW() * passes * (n - 1) / n
}

// Forget drops a group that all its members have left. One with something under way is kept, so that that can be abandoned.
func (b *Backend) Forget(g *ProcessGroup) {
	if len(g.open) == 0 {
		b.groups = slices.DeleteFunc(b.groups, func(o *ProcessGroup) bool { return o == g })
		b.leaving = slices.DeleteFunc(append(b.leaving, g), (*ProcessGroup).dismissed)
	}
}

// Abandon ends every collective that some rank has yet to join with an error, and lets all groups start anew: for a
// program that goes on after ranks of it have failed.
func (b *Backend) Abandon(err error) {
	for _, g := range b.groups {
		g.abandon(err)
	}
}
