package calibrate

import (
	_ "embed"

	"github.com/torchemu/torchemu/torchemu/topology"
)

//go:embed base.yaml
var base []byte

// Base is the topology that a fit starts from, unless it is given another.
func Base() *topology.Topology {
	t, err := topology.Parse("base.yaml", base)
	if err != nil {
		panic("calibrate: " + err.Error())
	}
	return t
}
