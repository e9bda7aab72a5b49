package pybind

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

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

// TopologySpec is the tree of a topology, a preset's name or a file, as JSON, which is a topology file too. A preset has as
// many SIPs as there are ranks; 0: as it is.
func TopologySpec(nameOrFile string, ranks int) (spec string, err error) {
	defer host.Guard(&err)
	t, err := topology.LoadFor(nameOrFile, ranks)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(t.Spec())
	return string(text), err
}

// CollectiveAlgorithms lists the algorithms for people, a line for each collective: its name, and the algorithms'.
func CollectiveAlgorithms() string {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for k := range collective.NumKinds {
		var names []string
		for _, a := range ccl.Algorithms(k) {
			names = append(names, a.Name())
		}
		fmt.Fprintf(columns, "%v\t%s\n", k, strings.Join(names, ", "))
	}
	columns.Flush()
	return text.String()
}
