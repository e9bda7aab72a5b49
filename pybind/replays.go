package pybind

import (
	"encoding/json"

	"github.com/torchemu/torchemu/ccl/replay"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Replay simulates a recorded job, in a file or in NAME.0.et, NAME.1.et, … for NAME.et, on a topology, a preset's
// name or a file, which gets more SIPs if it has fewer than there are ranks. The result is JSON: ranks, operations,
// time_us, and ends_us of each rank.
func Replay(trace, topologyName string) (result string, err error) {
	defer host.Guard(&err)
	j, err := replay.Read(trace)
	if err != nil {
		return "", host.Raise("ValueError", "%v", err)
	}
	t, err := topology.LoadFor(topologyName, j.Ranks())
	if err != nil {
		return "", err
	}
	r, err := j.Play(t)
	if err != nil {
		return "", host.Raise("ValueError", "%v", err)
	}
	ends := make([]float64, len(r.Ends))
	for i, end := range r.Ends {
		ends[i] = float64(end) / float64(sim.Microsecond)
	}
	text, err := json.Marshal(map[string]any{
		"ranks": j.Ranks(), "operations": j.Operations(), "time_us": float64(r.Last()) / float64(sim.Microsecond), "ends_us": ends,
	})
	return string(text), err
}
