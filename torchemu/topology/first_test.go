package topology_test

import (
	"encoding/json"
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

func TestPresetsLoad(t *testing.T) {
	for _, name := range topology.Presets() {
		top, err := topology.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(top.Spec())
		t.Log(name, top.NumDevices(), top.NumLinks(), string(b))
		for i := range top.NumLinks() {
			top.LinkName(topology.LinkID(i))
		}
		for _, l := range top.Route(top.PE(0, 5, 3), top.PE(top.SIPs()-1, 6, 0)) {
			t.Log(top.LinkName(l), top.Link(l))
		}
	}
}
