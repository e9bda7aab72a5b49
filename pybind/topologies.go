package pybind

import (
	"strings"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// ShowTopology draws a topology, a preset's name or a file: as SVG, or as text.
func ShowTopology(nameOrFile string, svg bool) (picture string, err error) {
	defer host.Guard(&err)
	t, err := topology.Load(nameOrFile)
	if err != nil {
		return "", err
	}
	if svg {
		return t.SVG(), nil
	}
	return t.Text(), nil
}

// CollectiveAlgorithms lists the algorithms, a line for each collective: its name, and the algorithms'.
func CollectiveAlgorithms() string {
	var text strings.Builder
	for k := range collective.NumKinds {
		text.WriteString(k.String())
		for _, a := range ccl.Algorithms(k) {
			text.WriteString(" " + a.Name())
		}
		text.WriteByte('\n')
	}
	return text.String()
}
