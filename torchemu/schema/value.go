package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Value is a leaf of a schema. It keeps the file's own unit.
type Value interface {
	Parse(n *yaml.Node) error // what is wrong, as a sentence about the key: "must be …, not …"
	Show() any                // for [Tree]; nil when the value is not set
}

// WholeNumber parses a whole number in [lo, hi].
func WholeNumber(n *yaml.Node, lo, hi int) (int, error) {
	var v int
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&v) != nil || v < lo || v > hi {
		return 0, fmt.Errorf("must be a whole number from %d to %d, not %s", lo, hi, Describe(n))
	}
	return v, nil
}

// Choice parses one of the names to its index.
func Choice(n *yaml.Node, names []string) (int, error) {
	wrong := "must be " + strings.Join(names, ", ") + "; not " + Describe(n)
	if n.Kind != yaml.ScalarNode {
		return 0, errors.New(wrong)
	}
	if i := slices.Index(names, n.Value); i >= 0 {
		return i, nil
	}
	if meant := nearest(n.Value, names); meant != "" {
		wrong += "; did you mean " + meant + "?"
	}
	return 0, errors.New(wrong)
}

// Describe names what stands in the file, shortened.
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	case yaml.AliasNode:
		return "an alias (write the value out)"
	}
	switch plain := n.Style == 0; {
	case isNull(n):
		return "nothing"
	case plain && n.ShortTag() != "!!str":
		return shorten(n.Value, 40)
	}
	return Quote(n.Value)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
