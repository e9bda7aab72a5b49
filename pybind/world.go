package pybind

import (
	"encoding/json"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// OpenWorld builds a World from a topology (a preset's name or a file) and a ccl.yaml ("" for the built-in one) and
// returns its handle. The World belongs to the calling thread.
func OpenWorld(topologyName, cclFile string) (handle int64, err error) {
	defer host.Guard(&err)
	topo, err := topology.Load(topologyName)
	if err != nil {
		return 0, err
	}
	config, err := ccl.LoadConfig(cclFile)
	if err != nil {
		return 0, err
	}
	return host.OpenWorld(topo, config)
}

// ResizeWorld gives an idle World another topology with as many SIPs or more. Its ranks, streams and tensors stay; groups
// that are made from now on are on the new fabric.
func ResizeWorld(handle int64, topologyName string) (err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(handle)
	if err != nil {
		return err
	}
	topo, err := topology.Load(topologyName)
	if err != nil {
		return err
	}
	return w.MoveTo(topo)
}

// DescribeWorld returns JSON: the topology's name and spec, ccl.yaml as a mapping and as resolved for this topology.
func DescribeWorld(handle int64) (about string, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(handle)
	if err != nil {
		return "", err
	}
	return w.About, nil
}

// UntriedAlgorithms is the choices of algorithms that were made without trying all, as JSON: for each the collective, how
// many ranks, what was chosen, and what may be faster.
func UntriedAlgorithms(handle int64) (choices string, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(handle)
	if err != nil {
		return "", err
	}
	rows := [][4]any{}
	for _, u := range w.Backend.Untried() {
		rows = append(rows, [4]any{u.Collective.String(), u.Ranks, u.Chosen, u.Others})
	}
	text, err := json.Marshal(rows)
	return string(text), err
}

// CloseWorld frees a World. Its tensors, groups and works can no longer be used. Closing twice does nothing.
func CloseWorld(handle int64) (err error) {
	defer host.Guard(&err)
	if host.Lookup(handle) == nil {
		return nil
	}
	if _, err := host.WorldOf(handle); err != nil {
		return err
	}
	host.CloseOwner(handle)
	return nil
}

// Presets returns the names of the built-in topologies as a JSON list.
func Presets() (names string, err error) {
	defer host.Guard(&err)
	text, err := json.Marshal(topology.Presets())
	return string(text), err
}

// HostTime is the host clock of a rank, in simulated picoseconds.
func HostTime(handle int64, rank int) (ps int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(handle)
	if err != nil {
		return 0, err
	}
	r, err := w.Rank(rank)
	if err != nil {
		return 0, err
	}
	return int64(r.Now()), nil
}

// Collectives returns the collectives that have completed so far, from number first on, as JSON.
func Collectives(handle int64, first int) (list string, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(handle)
	if err != nil {
		return "", err
	}
	return w.Log(first)
}
