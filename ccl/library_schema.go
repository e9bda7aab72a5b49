package ccl

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/schema"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// libraryFile is the tree of a library's file, and its schema.
type libraryFile struct {
	Name         word       `yaml:"name"`
	Description  word       `yaml:"description"`
	Channels     worldSize  `yaml:"channels"`
	Rings        rings      `yaml:"rings"`
	Ring         costs      `yaml:"ring"`
	Tree         treeCosts  `yaml:"tree"`
	NVLS         nvlsCosts  `yaml:"nvls"`
	Threads      byProtocol `yaml:"threads"`
	BytesAThread byProtocol `yaml:"bytes_a_thread"`
}

type rings struct {
	Count     worldSize `yaml:"count"`
	Bandwidth quantity  `yaml:"bandwidth"` // GB/s of each
}

type costs struct {
	Base      byProtocol `yaml:"base"`
	Hop       byProtocol `yaml:"hop"`
	Share     byProtocol `yaml:"share"`
	Most      byProtocol `yaml:"most"`
	MostARing byProtocol `yaml:"most_a_ring"`
}

type nvlsCosts struct {
	Base      quantity `yaml:"base"`
	Bandwidth quantity `yaml:"bandwidth"`
}

type treeCosts struct {
	costs
	Correction factorsByProtocol `yaml:"correction"`
}

// byProtocol is a number for each protocol.
type byProtocol struct {
	Simple quantity `yaml:"simple"`
	LL128  quantity `yaml:"ll128"`
	LL     quantity `yaml:"ll"`
}

func (b *byProtocol) of(k topology.ProtocolKind) float64 {
	return float64([topology.Protocols]quantity{b.Simple, b.LL128, b.LL}[k])
}

// factorsByProtocol are numbers for each protocol.
type factorsByProtocol struct {
	Simple []quantity `yaml:"simple"`
	LL128  []quantity `yaml:"ll128"`
	LL     []quantity `yaml:"ll"`
}

func (f *factorsByProtocol) of(k topology.ProtocolKind) []quantity {
	return [topology.Protocols][]quantity{f.Simple, f.LL128, f.LL}[k]
}

// word is text.
type word string

func (w *word) Parse(n *yaml.Node) error {
	*w = word(n.Value)
	return nil
}

func (w *word) Show() any { return string(*w) }

// quantity is a number that is not negative.
type quantity float64

func (q *quantity) Parse(n *yaml.Node) error {
	var v float64
	if n.Kind != yaml.ScalarNode || n.Decode(&v) != nil || !(v >= 0 && v <= 1e6) {
		return fmt.Errorf("must be a number from 0 to 1000000, not %s", schema.Describe(n))
	}
	*q = quantity(v)
	return nil
}

func (q *quantity) Show() any { return float64(*q) }
