package ccl

import (
	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/schema"
)

// configFile is the tree of a ccl.yaml, and its schema.
type configFile struct {
	Defaults   defaults             `yaml:"defaults"`
	Algorithms settingsOfAlgorithms `yaml:"algorithms"`
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
func (settingsOfAlgorithms) Keys() []string { return choices() }

// choices are the names of the all_reduce algorithms, and Auto.
func choices() []string { return append([]string{Auto}, names(Algorithms(AllReduce))...) }

// algorithmName is one of the choices.
type algorithmName string

func (a *algorithmName) Parse(n *yaml.Node) error {
	_, err := schema.Choice(n, choices())
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
