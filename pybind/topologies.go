package pybind

import (
	"cmp"
	"encoding/json"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
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

// TopologySpec is the tree of a topology, a preset's name or a file, as JSON, which is a topology file too. One that
// has fewer SIPs than there are ranks has more here; 0: as it is.
func TopologySpec(nameOrFile string, ranks int) (spec string, err error) {
	defer host.Guard(&err)
	t, err := topology.LoadFor(nameOrFile, ranks)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(t.Spec())
	return string(text), err
}

// FileSchema is the JSON Schema of a kind of file: topology, ccl or faults.
func FileSchema(kind string) (text string, err error) {
	defer host.Guard(&err)
	made, known := map[string]func() map[string]any{
		"topology": topology.JSONSchema, "ccl": ccl.ConfigJSONSchema, "faults": torchemu.FaultsJSONSchema,
	}[kind]
	if !known {
		return "", host.Raise("ValueError", "there is no schema of %q: the files are topology, ccl and faults", kind)
	}
	out, err := json.MarshalIndent(made(), "", "  ")
	return string(out), err
}

// ResizedTopology is the tree of a topology with so many nodes of so many SIPs each, as JSON, which is a topology file too.
func ResizedTopology(nameOrFile string, nodes, sipsPerNode int) (spec string, err error) {
	defer host.Guard(&err)
	t, err := topology.Load(nameOrFile)
	if err != nil {
		return "", err
	}
	if t, err = t.Resized(nodes, sipsPerNode); err != nil {
		return "", err
	}
	text, err := json.Marshal(t.Spec())
	return string(text), err
}

// CollectiveAlgorithms is the names of each collective's algorithms, as JSON: a list for each, in the order of the table of
// collectives.
func CollectiveAlgorithms() (text string, err error) {
	defer host.Guard(&err)
	return host.AlgorithmNames(func(ccl.Algorithm) bool { return true })
}

// AlgorithmsOn is CollectiveAlgorithms of those that a topology, a preset or a file, has what they need for, on its first
// so many SIPs; 0: on all.
func AlgorithmsOn(nameOrFile string, ranks int) (text string, err error) {
	defer host.Guard(&err)
	if ranks < 0 {
		return "", host.Raise("ValueError", "there are no %d SIPs", ranks)
	}
	t, err := topology.LoadFor(nameOrFile, ranks)
	if err != nil {
		return "", err
	}
	layout := ccl.LayoutOf(t, t.FirstPEs(min(cmp.Or(ranks, t.SIPs()), t.SIPs())))
	return host.AlgorithmNames(func(a ccl.Algorithm) bool { return ccl.Offered(a, layout) == nil })
}
