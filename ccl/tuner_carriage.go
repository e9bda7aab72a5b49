package ccl

import (
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// ToCut is the size by which an algorithm's schedules for a topology are cut. They are built whole where there is a
// transport: there it is the loops of a call that make a pipeline, but for what a switch does.
func ToCut(t *topology.Topology, a Algorithm, bytes int64) int64 {
	if p, ok := a.(plan); t.Transport() != nil && (!ok || p.needs == Switching{}) {
		return 0
	}
	return bytes
}

// build lays a candidate out.
func (t *Tuner) build(c *contender, on trial) *Schedule {
	return c.Build(on.layout, ToCut(t.topology, c.Algorithm, on.bytes()))
}

// Carriage returns the protocol that a launch takes least simulated time with, on an idle network with all ranks ready at
// once; its Carriage and its Observer are of no consequence.
func (t *Tuner) Carriage(l Launch) Carriage {
	l.Observer, l.Ready = nil, nil
	_, best := t.time(l, never)
	return best
}

// time is how long a launch takes with the protocol that suits it best; more than limit is as good as any.
func (t *Tuner) time(l Launch, limit sim.Time) (sim.Time, Carriage) {
	if t.topology.Transport() == nil {
		return t.simulate(l, limit), Carriage{}
	}
	least, best := never, Carriage{}
	for _, how := range carriages(t.topology, l.Schedule.Collective) {
		l.Carriage = how
		if took := t.simulate(l, min(limit, least)); took < least {
			least, best = took, l.Carriage
		}
	}
	return least, best
}

// carriages lists the ways in which a collective on a topology could be carried.
func carriages(t *topology.Topology, c collective.Kind) []Carriage {
	var list []Carriage
	pairs := isPairwise(c)
	if pairs {
		list = append(list, Carriage{})
	}
	for k, p := range t.Transport().SIP.Protocols {
		if p != nil && !c.Exchanges() {
			list = append(list, Carriage{Protocol: topology.ProtocolKind(k), ByProtocol: pairs})
		}
	}
	return list
}
