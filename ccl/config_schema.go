package ccl

import (
	"fmt"
	"regexp"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/schema"
)

// configFile is the tree of a ccl.yaml, and its schema.
type configFile struct {
	Defaults    defaults             `yaml:"defaults"`
	Collectives choicePerCollective  `yaml:"collectives"`
	Algorithms  settingsOfAlgorithms `yaml:"algorithms"`
	Library     *libraryName         `yaml:"library"`
}

type defaults struct {
	Algorithm choice `yaml:"algorithm"`
	settings
}

// algorithmSettings are what can be set for one algorithm. With a kernel it is one of the file's own.
type algorithmSettings struct {
	settings
	Kernel *kernelPlace `yaml:"kernel"`
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
type settingsOfAlgorithms map[string]algorithmSettings

// Keys makes it a [schema.Keyed].
func (settingsOfAlgorithms) Keys() []string { return choices(collective.AllReduce) }

// Admits makes it a [schema.Open]: an algorithm of the file's own says which kernel it is.
func (settingsOfAlgorithms) Admits(key string, n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode || !ownName.MatchString(key) {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == "kernel" {
			return true
		}
	}
	return false
}

// ownName is what a file can call an algorithm.
var ownName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// kernels are the names of the file's own algorithms, in alphabetical order.
func (m settingsOfAlgorithms) kernels() []string {
	var names []string
	for name, s := range m {
		if s.Kernel != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// check reports kernels with the name of a built-in algorithm.
func (m settingsOfAlgorithms) check(d *schema.Document) {
	for _, name := range m.kernels() {
		if slices.Contains(m.Keys(), name) {
			d.Report("algorithms."+name+".kernel", "%s is a built-in algorithm: call the kernel something else", name)
		}
	}
}

// kernelPlace is a function in a file of Python.
type kernelPlace struct {
	file, function string
	line           int // on which it is named
}

var kernelSyntax = regexp.MustCompile(`^(.+\.py):([A-Za-z_][A-Za-z0-9_]*)$`)

// Parse makes it a [schema.Value].
func (k *kernelPlace) Parse(n *yaml.Node) error {
	parts := kernelSyntax.FindStringSubmatch(n.Value)
	if n.Kind != yaml.ScalarNode || parts == nil {
		return fmt.Errorf("must be a Python file and a function in it, such as my_kernels.py:my_ring, not %s", schema.Describe(n))
	}
	k.file, k.function, k.line = parts[1], parts[2], n.Line
	return nil
}

// Show makes it a [schema.Value].
func (k *kernelPlace) Show() any { return k.file + ":" + k.function }

// choices are the names of a collective's algorithms, and Auto.
func choices(c collective.Kind) []string { return append([]string{Auto}, names(Algorithms(c))...) }

// choicePerCollective is by the collective's name.
type choicePerCollective map[string]choice

// Keys makes it a [schema.Keyed].
func (choicePerCollective) Keys() []string { return collective.Names() }

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

// check compares the names with those there are: built in, or kernels.
func (m choicePerCollective) check(d *schema.Document, kernels []string) {
	for c := range collective.NumKinds {
		path := "collectives." + c.String()
		if !d.Has(path) {
			continue // not in this file
		}
		if c == collective.AllReduce {
			d.Report(path, "is not chosen here, but as defaults.algorithm")
		} else {
			m[c.String()].check(d, path, append(choices(c), kernelsFor(c, kernels)...))
		}
	}
}

// check reports a name that is none of the choices.
func (c choice) check(d *schema.Document, path string, choices []string) {
	if _, err := schema.Choice(c.node, choices); err != nil {
		d.Report(path, "%v", err)
	}
}

// kernelsFor are the kernels that a collective can be.
func kernelsFor(c collective.Kind, kernels []string) []string {
	if c.Row().Kernel {
		return kernels
	}
	return nil
}

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

// libraryName is the name of a library, or NoLibrary.
type libraryName string

func (l *libraryName) Parse(n *yaml.Node) error {
	names := append(Libraries(), NoLibrary)
	i, err := schema.Choice(n, names)
	*l = libraryName(names[i])
	return err
}

func (l *libraryName) Show() any { return string(*l) }
