package pybind

import (
	"encoding/json"

	"github.com/torchemu/torchemu/ccl/bandwidth"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// OpenBandwidth begins a sweep over sizes of a collective on a topology, a preset's name or a file, and returns its handle.
// A topology that has fewer SIPs than there are ranks gets more; 0 ranks: one for each SIP. Sizes go from minBytes to
// maxBytes, by stepBytes or, if that is 0, by the factor.
func OpenBandwidth(collectiveName, topologyName string, ranks int, algorithm, dtypeName string, root, calls int,
	minBytes, maxBytes, stepBytes, factor int64) (handle int64, err error) {
	defer host.Guard(&err)
	kind, err := collective.ParseKind(collectiveName)
	if err != nil {
		return 0, host.Raise("ValueError", "%v", err)
	}
	element, err := dtype.Parse(dtypeName)
	if err != nil {
		return 0, host.Raise("ValueError", "%v", err)
	}
	t, err := topology.LoadFor(topologyName, ranks)
	if err != nil {
		return 0, err
	}
	s, err := bandwidth.New(bandwidth.Options{
		Collective: kind, Topology: t, Ranks: ranks, Algorithm: algorithm, DType: element, Root: root, Calls: calls,
		Min: minBytes, Max: maxBytes, Step: stepBytes, Factor: factor,
	})
	if err != nil {
		return 0, host.Raise("ValueError", "%v", err)
	}
	return host.Register(s), nil
}

// NextBandwidth measures the next size of a sweep and returns its row as JSON; "" when there is none.
func NextBandwidth(handle int64) (row string, err error) {
	defer host.Guard(&err)
	s, err := host.SweepOf(handle)
	if err != nil {
		return "", err
	}
	next, ok, err := s.Next()
	if err != nil {
		return "", host.Raise("ValueError", "%v", err)
	}
	if !ok {
		return "", nil
	}
	text, err := json.Marshal(next)
	return string(text), err
}

// BandwidthRanks is on how many ranks a sweep measures.
func BandwidthRanks(handle int64) (ranks int, err error) {
	defer host.Guard(&err)
	s, err := host.SweepOf(handle)
	if err != nil {
		return 0, err
	}
	return s.Ranks, nil
}

// CloseBandwidth lets go of a sweep.
func CloseBandwidth(handle int64) (err error) {
	defer host.Guard(&err)
	_, err = host.SweepOf(handle)
	host.Forget(handle)
	return err
}
