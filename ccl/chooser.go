package ccl

import (
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Chooser decides how collectives run whose algorithm nobody names: as a library does, or else as the Tuner says.
type Chooser struct {
	Tuner   *Tuner
	Library *Library // nil: none
}

// Choose returns the algorithm of that name or, for Auto, the one that is chosen. Elements are counted as in [Launch].
func (c Chooser) Choose(k collective.Kind, name string, l Layout, devices []topology.DeviceID, elems, elemSize int) (Choice, error) {
	if name == Auto {
		lib := c.library(l)
		if lib == nil {
			return c.Tuner.Choose(k, l, devices, elems, elemSize)
		}
		name, _ = lib.Choose(k, l, callBytes(k, l.World, elems, elemSize))
	}
	a, err := Lookup(k, name)
	if err == nil {
		err = Offered(a, l)
	}
	return Choice{Algorithm: a}, err
}

// Carriage is the library's choice for the algorithms that it has, and otherwise the Tuner's.
func (c Chooser) Carriage(l Launch, layout Layout) Carriage {
	if c.Tuner.topology.Transport() == nil || len(l.Schedule.Groups) > 0 {
		return Carriage{}
	}
	if lib := c.library(layout); lib != nil {
		s := l.Schedule
		if how, ok := lib.Carriage(s.Collective, s.Algorithm, layout, callBytes(s.Collective, s.World, l.Elems, l.ElemSize)); ok {
			return how
		}
	}
	return c.Tuner.Carriage(l)
}

// library is the library that chooses for ranks; nil: none does.
func (c Chooser) library(l Layout) *Library {
	if l.Group != nil {
		return nil // its constants are those of one node
	}
	return c.Library
}

// callBytes is the size of a call as nccl-tests counts it.
func callBytes(k collective.Kind, world, elems, elemSize int) int64 {
	bytes := int64(elems) * int64(elemSize)
	if k.Exchanges() {
		bytes /= int64(world) // one rank's
	}
	return bytes
}
