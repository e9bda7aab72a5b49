package calibrate

import (
	"fmt"
	"strings"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Machine predicts what a topology's transport makes of measured calls.
type Machine struct {
	topology  *topology.Topology
	library   *ccl.Library
	schedules map[scheduleKey]*ccl.Schedule
}

type scheduleKey struct {
	kind  collective.Kind
	name  string
	world int
}

// NewMachine returns a Machine for a topology that has a transport and at least as many SIPs as the largest world.
func NewMachine(t *topology.Topology, library *ccl.Library) *Machine {
	return &Machine{topology: t, library: library, schedules: map[scheduleKey]*ccl.Schedule{}}
}

// forced is the protocol that a variant was forced to; all is whether none was.
func forced(variant string) (k topology.ProtocolKind, all bool, err error) {
	if variant == "default" || strings.HasPrefix(variant, "default_") {
		return 0, true, nil
	}
	algorithm, protocol, _ := strings.Cut(variant, "_")
	if k, err = topology.ParseProtocol(protocol); err != nil || algorithm != "ring" && algorithm != "tree" {
		return 0, false, fmt.Errorf("variant %q: it must be default, or ring or tree with simple, ll128 or ll, such as ring_ll", variant)
	}
	return k, false, nil
}

// Case is a row that is ready to be predicted.
type Case struct {
	Row
	Protocol topology.ProtocolKind
	Pairwise bool // messages between pairs
	launch   ccl.Launch
}

// Case prepares a row.
func (m *Machine) Case(r Row) (Case, error) {
	c := Case{Row: r}
	name, how := m.library.Choose(r.Collective, ccl.Layout{World: r.World}, r.Bytes)
	protocol, free, err := forced(r.Variant)
	if err != nil {
		return c, err
	}
	if !free {
		how = ccl.Carriage{Protocol: protocol, Channels: m.library.Channels(protocol, r.World, r.Bytes)}
		name = m.library.Ring(r.Collective)
	}
	s, err := m.schedule(scheduleKey{r.Collective, name, r.World})
	if err != nil {
		return c, err
	}
	c.Protocol, c.Pairwise = how.Protocol, how.Channels == 0
	c.launch = ccl.Launch{
		Schedule: s, Elems: r.elems(), ElemSize: r.ElemSize, PartialSize: r.ElemSize, Carriage: how,
	}
	for rank := range r.World {
		c.launch.Devices = append(c.launch.Devices, m.topology.PE(rank, 0, 0))
	}
	return c, nil
}

// elems is how many elements there are, as in [ccl.Launch]: what does not make equal blocks is left out, as in nccl-tests.
func (r *Row) elems() int {
	elems := int(r.Bytes) / r.ElemSize
	switch r.Collective {
	case collective.AllToAll:
		return elems / r.World * r.World * r.World
	case collective.AllReduce, collective.Broadcast, collective.Reduce:
		return elems
	}
	return elems / r.World * r.World
}

func (m *Machine) schedule(key scheduleKey) (*ccl.Schedule, error) {
	s, ok := m.schedules[key]
	if !ok {
		a, err := ccl.Lookup(key.kind, key.name)
		if err != nil {
			return nil, err
		}
		s = a.Build(ccl.Layout{World: key.world}, 0)
		m.schedules[key] = s
	}
	return s, nil
}

// Predict is how long a call of the case takes with a transport, in µs.
func (m *Machine) Predict(c *Case, with *topology.Transport) float64 {
	return float64(ccl.Repeat(m.topology.WithTransport(with), c.launch, c.Calls)) / float64(sim.Microsecond)
}
