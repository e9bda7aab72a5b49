package ccl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// A plan is an Algorithm put together from phases.
type plan struct {
	collective collective.Kind
	name       string

	// depth is Algorithm.Depth; nil: the work is not cut.
	depth func(l Layout, bytes int64) int

	// shape is the number of blocks and of chunks a block; nil: a block for every rank, each one chunk.
	shape func(l Layout, depth int) (blocks, sub int)

	// inTurn says that ranks send one message at a time.
	inTurn bool

	// queued says that ranks send one message at a time to each other rank.
	queued bool

	// needs is what a switch has to do.
	needs Switching

	// steps is the work itself.
	steps func(l Layout, depth int) phase
}

// oneChunk is the shape of a vector that is not cut.
func oneChunk(Layout, int) (blocks, sub int) { return 1, 1 }

// onlyPieces is the shape of a vector that is cut for nothing but a pipeline.
func onlyPieces(_ Layout, depth int) (blocks, sub int) { return 1, depth }

func (p plan) Name() string { return p.name }

func (p plan) Collective() collective.Kind { return p.collective }

func (p plan) Depth(l Layout, bytes int64) int {
	if p.depth == nil || l.World == 1 {
		return 1
	}
	return p.depth(l, bytes)
}

// ExpectedSteps is about how many steps an algorithm's schedule has, and hardly less than it has; 0: not known.
func ExpectedSteps(a Algorithm, l Layout, bytes int64) int {
	p, ok := a.(plan)
	if !ok {
		return 0
	}
	l.check()
	return p.steps(l, p.Depth(l, bytes)).steps
}

// Offered is an error where an algorithm needs a switch to do what that of a layout does not.
func Offered(a Algorithm, l Layout) error {
	p, ok := a.(plan)
	if !ok || l.World == 1 {
		return nil
	}
	var lacks []string
	if p.needs.Multicast && !l.Switch.Multicast {
		lacks = append(lacks, "multicasts")
	}
	if p.needs.Reduce && !l.Switch.Reduce {
		lacks = append(lacks, "reduces by this operation")
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("%s by %s: the %d ranks are not on SIPs of one node whose switch %s "+
		"(system.switch.in_network in topology.yaml)", p.collective, p.name, l.World, strings.Join(lacks, " and "))
}

// offered are the algorithms that a layout has what they need for.
func offered(c collective.Kind, l Layout) []Algorithm {
	return slices.DeleteFunc(Algorithms(c), func(a Algorithm) bool { return Offered(a, l) != nil })
}

func (p plan) Build(l Layout, bytes int64) *Schedule {
	l.check()
	depth := p.Depth(l, bytes)
	blocks, sub := l.World, 1
	if p.shape != nil {
		blocks, sub = p.shape(l, depth)
	}
	b := NewBuilder(p.collective, p.name, l.World, blocks, sub)
	if p.collective.Rooted() {
		b.Root(l.Root)
	}
	if p.inTurn {
		b.InTurn()
	}
	if p.queued {
		b.Queued()
	}
	p.steps(l, depth).run(b)
	return b.Schedule()
}
