package ccl

import (
	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/schema"
)

// configFile is the tree of a ccl.yaml, and its schema.
type configFile struct {
	Defaults    defaults             `yaml:"defaults"`
	Collectives choicePerCollective  `yaml:"collectives"`
	Algorithms  settingsOfAlgorithms `yaml:"algorithms"`
}

type defaults struct {
	Algorithm algorithmName `yaml:"algorithm"`
	settings
}

// settings are what can be set for all algorithms or for one; nil is not set.
type settings struct {
	WorldSize  *worldSize    `yaml:"world_size"`
	NElem      *elements     `yaml:"n_elem"`
	Accumulate *accumulation `yaml:"accumulate"`
}

func (s settings) overwrite(r *Resolved) {
	if s.WorldSize != nil {
		r.WorldSize = int(*s.WorldSize)
	}
	if s.NElem != nil {
		r.NElem = int(*s.NElem)
	}
	if s.Accumulate != nil {
		r.AccumulateF32 = *s.Accumulate == inF32
	}
}

// settingsOfAlgorithms are by the algorithm's name.
type settingsOfAlgorithms map[string]settings

// Keys makes it a [schema.Keyed].
func (settingsOfAlgorithms) Keys() []string { return choices(AllReduce) }

// choices are the names of a collective's algorithms, and Auto.
func choices(c Collective) []string { return append([]string{Auto}, names(Algorithms(c))...) }

// choicePerCollective is by the collective's name.
type choicePerCollective map[string]choice

// Keys makes it a [schema.Keyed].
func (choicePerCollective) Keys() []string { return collectiveNames[:] }

// choice is the name of an algorithm. Which names are right depends on where it stands.
type choice struct {
	name string
	node *yaml.Node
}

func (c *choice) Parse(n *yaml.Node) error {
	c.name, c.node = n.Value, n
	return nil
}

func (c *choice) Show() any { return c.name }

// check compares the names with those there are.
func (m choicePerCollective) check(d *schema.Document) {
	for c := range collectives {
		path := "collectives." + c.String()
		if !d.Has(path) {
			continue // not in this file
		}
		if c == AllReduce {
			d.Report(path, "is not chosen here, but as defaults.algorithm")
		} else if _, err := schema.Choice(m[c.String()].node, choices(c)); err != nil {
			d.Report(path, "%v", err)
		}
	}
}

// algorithmName is one of the choices.
type algorithmName string

func (a *algorithmName) Parse(n *yaml.Node) error {
	_, err := schema.Choice(n, choices(AllReduce))
	*a = algorithmName(n.Value)
	return err
}

func (a *algorithmName) Show() any { return string(*a) }

// worldSize is a number of ranks.
type worldSize int

func (w *worldSize) Parse(n *yaml.Node) error { return wholeNumber(n, (*int)(w), 1, 1<<20) }
func (w *worldSize) Show() any                { return int(*w) }

// elements is how many elements a rank has.
type elements int

func (e *elements) Parse(n *yaml.Node) error { return wholeNumber(n, (*int)(e), 0, 1<<30) }
func (e *elements) Show() any                { return int(*e) }

// wholeNumber has an upper bound so that products of two cannot overflow.
func wholeNumber(n *yaml.Node, into *int, lo, hi int) error {
	v, err := schema.WholeNumber(n, lo, hi)
	*into = v
	return err
}

// accumulation is the type of partial sums between the steps of a reduction.
type accumulation uint8

const (
	inDType accumulation = iota // the tensor's own
	inF32
)

var accumulations = []string{inDType: "dtype", inF32: "f32"}

func (a *accumulation) Parse(n *yaml.Node) error {
	i, err := schema.Choice(n, accumulations)
	*a = accumulation(i)
	return err
}

func (a *accumulation) Show() any { return accumulations[*a] }
