package ccl

import (
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

// A lower bound above the true time would hide the best algorithm. Where nothing is shared the bound is the time.
func TestLowerBounds(t *testing.T) {
	for _, preset := range topology.Presets() {
		topo, err := topology.Load(preset)
		if err != nil {
			t.Fatal(err)
		}
		var devices []topology.DeviceID
		for s := range topo.SIPs() {
			devices = append(devices, topo.PE(s, 0, 0))
		}
		tuner := NewTuner(topo)
		for _, c := range []Collective{AllReduce, AllGather, ReduceScatter} {
			for _, a := range Algorithms(c) {
				for _, elems := range []int{16, 1 << 10, 1 << 20} {
					s := a.Build(Layout{World: len(devices)}, 4*int64(elems))
					l := Launch{Schedule: s, Elems: elems, ElemSize: 4, PartialSize: 4, Devices: devices}
					chain, busy := tuner.lowerBounds(l)
					took := tuner.simulate(l, never)
					if max(chain, busy) > took {
						t.Errorf("%s %s on %s, %d elements: bounds %v, %v, took %v", c, a.Name(), preset, elems, chain, busy, took)
					}
					alone := a.Name() == "ring" && topo.Nodes() == 1 || a.Name() == "two_shot" && preset == "sips8"
					if alone && chain != took {
						t.Errorf("%s %s on %s, %d elements: bound %v, took %v", c, a.Name(), preset, elems, chain, took)
					}
				}
			}
		}
	}
}

func TestSimulateGivesUp(t *testing.T) {
	topo, err := topology.Load("default")
	if err != nil {
		t.Fatal(err)
	}
	tuner := NewTuner(topo)
	devices := []topology.DeviceID{topo.PE(0, 0, 0), topo.PE(1, 0, 0), topo.PE(2, 0, 0), topo.PE(3, 0, 0)}
	l := Launch{Schedule: allReduceDoubleBinaryTree().Build(Layout{World: 4}, 1<<24), Elems: 1 << 22, ElemSize: 4, PartialSize: 4, Devices: devices}
	took := tuner.simulate(l, never)
	if got := tuner.simulate(l, took/2); got != never {
		t.Errorf("took %v, which is more than the limit %v", got, took/2)
	}
	if got := tuner.simulate(l, took); got != took {
		t.Errorf("took %v after a trial that was given up, %v before", got, took)
	}
}
