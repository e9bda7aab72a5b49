package distributed

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// planner chooses and keeps the schedules of one set of devices.
type planner struct {
	backend *Backend
	devices []topology.DeviceID
	layout  ccl.Layout

	chosen    map[planKey]planned
	schedules map[scheduleKey]*ccl.Schedule
}

// planned is what a call runs.
type planned struct {
	schedule *ccl.Schedule
	carriage ccl.Carriage
}

// maxPairs bounds the pairs of ranks that a schedule sends between. Each takes about a kilobyte while its message is on
// its way, and all may be at once.
const maxPairs = 1 << 21

type planKey struct {
	collective            collective.Kind
	op                    tensor.ReduceOp // of a collective that reduces
	root, elems, elemSize int
	algorithm             string // the one that was asked for; "" for the Options'
}

// scheduleKey identifies a schedule: all that the size of a vector changes is the depth of pipelines.
type scheduleKey struct {
	collective collective.Kind
	algorithm  string
	root       int
	depth      int
}

// planner is that of some devices: groups of the same ones, made one after another, need no other.
func (b *Backend) planner(devices []topology.DeviceID) *planner {
	key := fmt.Sprint(devices)
	p := b.planners[key]
	if p == nil {
		if b.planners == nil {
			b.planners = map[string]*planner{}
		}
		p = newPlanner(b, devices)
		b.planners[key] = p
	}
	return p
}

func newPlanner(b *Backend, devices []topology.DeviceID) *planner {
	return &planner{
		backend: b, devices: devices, layout: ccl.LayoutOf(b.World.Topology, devices),
		chosen: map[planKey]planned{}, schedules: map[scheduleKey]*ccl.Schedule{},
	}
}

// plan returns the schedule for a vector of so many elements of elemSize bytes, and how it is carried.
func (p *planner) plan(key planKey) (planned, error) {
	if s, ok := p.chosen[key]; ok {
		return s, nil
	}
	l := p.layout
	l.Root = key.root
	l.Switch = ccl.SwitchingOf(p.backend.World.Topology, p.devices, key.op)
	a, err := p.algorithm(key, l)
	if err != nil {
		return planned{}, err
	}
	s := p.schedule(a, l, ccl.ToCut(p.backend.World.Topology, a, int64(key.elems)*int64(key.elemSize)))
	if n := s.Pairs(); n > maxPairs {
		return planned{}, fmt.Errorf("%s among %d ranks sends between %d pairs of ranks, more than the %d that can be simulated: "+
			"choose another algorithm in ccl.yaml, such as auto", a.Name(), s.World, n, maxPairs)
	}
	p.chosen[key] = planned{s, p.chooser().Carriage(ccl.Launch{
		Schedule: s, Elems: key.elems, ElemSize: key.elemSize, PartialSize: key.elemSize, Devices: p.devices,
	}, l)}
	return p.chosen[key], nil
}

// chooser decides where nothing is named.
func (p *planner) chooser() ccl.Chooser {
	return ccl.Chooser{Tuner: p.backend.tuner, Library: p.backend.library}
}

func (p *planner) schedule(a ccl.Algorithm, l ccl.Layout, bytes int64) *ccl.Schedule {
	key := scheduleKey{a.Collective(), a.Name(), l.Root, a.Depth(l, bytes)}
	s, ok := p.schedules[key]
	if !ok {
		s = a.Build(l, bytes)
		p.schedules[key] = s
	}
	return s
}

// algorithm is the one that the call or ccl.yaml names, and otherwise the one that is chosen.
func (p *planner) algorithm(key planKey, l ccl.Layout) (ccl.Algorithm, error) {
	name := cmp.Or(key.algorithm, p.named(key.collective, l))
	choice, err := p.chooser().Choose(key.collective, name, l, p.devices, key.elems, key.elemSize)
	if len(choice.Untried) > 0 {
		p.backend.note(Untried{key.collective, l.World, choice.Algorithm.Name(), choice.Untried})
	}
	return choice.Algorithm, err
}

// named is the algorithm that ccl.yaml names, or Auto: of a collective but all_reduce it may be the namesake of the
// latter's, which is taken where there is one and a switch does what it needs.
func (p *planner) named(c collective.Kind, l ccl.Layout) string {
	o := p.backend.Options
	name := cmp.Or(o.Chosen[c], o.Algorithm)
	if c == collective.AllReduce || name != o.Algorithm || name == ccl.Auto {
		return name
	}
	if a, err := ccl.Lookup(c, name); err != nil || ccl.Offered(a, l) != nil {
		return ccl.Auto
	}
	return name
}

// Untried is a choice that was made without trying algorithms that might be faster, for they take too long to simulate.
type Untried struct {
	Collective collective.Kind
	Ranks      int
	Chosen     string
	Others     []string
}

// Untried lists such choices, of equal collectives and ranks the first.
func (b *Backend) Untried() []Untried { return b.untried }

func (b *Backend) note(u Untried) {
	same := func(o Untried) bool { return o.Collective == u.Collective && o.Ranks == u.Ranks }
	if !slices.ContainsFunc(b.untried, same) {
		b.untried = append(b.untried, u)
	}
}
