package ccl

import (
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// LayoutOf says what an algorithm may know of where ranks are: which share a node (or, all inside one SIP, a cube),
// whether they form a grid, and what a switch does for them in a call that reduces by sums.
func LayoutOf(t *topology.Topology, devices []topology.DeviceID) Layout {
	l := Layout{World: len(devices), Group: groupsOf(t, devices), Switch: SwitchingOf(t, devices, tensor.Sum)}
	if w, h := t.Grid(); w*h == len(devices) && inSIPOrder(t, devices) {
		l.W, l.H = w, h
	} else if size, ok := evenRows(l.Group); ok {
		l.W, l.H = size, len(devices)/size
	}
	return l
}

// SwitchingOf is what the switch of a node does for devices that are all in it, each on a SIP of its own, in a call that
// reduces by op, if it reduces. A switch that sums averages too: whoever gets the sum divides it.
func SwitchingOf(t *topology.Topology, devices []topology.DeviceID, op tensor.ReduceOp) Switching {
	n := t.InNetwork()
	if !n.Multicast && !n.ReducesAny() {
		return Switching{}
	}
	seen := make(map[int]bool, len(devices))
	for _, id := range devices {
		d := t.Device(id)
		if d.Node != t.Device(devices[0]).Node || seen[d.SIP] {
			return Switching{}
		}
		seen[d.SIP] = true
	}
	by, known := switchReductions[op]
	return Switching{Multicast: n.Multicast, Reduce: known && n.Reduces(by)}
}

var switchReductions = map[tensor.ReduceOp]topology.Reduction{
	tensor.Sum: topology.SwitchSum, tensor.Avg: topology.SwitchSum, tensor.Min: topology.SwitchMin, tensor.Max: topology.SwitchMax,
}

// groupsOf numbers the nodes, or else the cubes, that the devices are spread over; nil when they share one.
func groupsOf(t *topology.Topology, devices []topology.DeviceID) []int {
	nodes, cubes := make([]int, len(devices)), make([]int, len(devices))
	for i, id := range devices {
		d := t.Device(id)
		nodes[i], cubes[i] = d.Node, d.Cube
	}
	if spread(nodes) {
		return nodes
	}
	if sameSIP(t, devices) && spread(cubes) {
		return cubes
	}
	return nil
}

func spread(groups []int) bool {
	for _, g := range groups {
		if g != groups[0] {
			return true
		}
	}
	return false
}

func sameSIP(t *topology.Topology, devices []topology.DeviceID) bool {
	for _, id := range devices {
		if t.Device(id).SIP != t.Device(devices[0]).SIP {
			return false
		}
	}
	return true
}

func inSIPOrder(t *topology.Topology, devices []topology.DeviceID) bool {
	for i, id := range devices {
		if t.Device(id).SIP != i {
			return false
		}
	}
	return true
}

// evenRows returns the length of the runs of equal groups when all runs have the same length.
func evenRows(groups []int) (size int, ok bool) {
	start := 0
	for i := 1; i <= len(groups); i++ {
		if i < len(groups) && groups[i] == groups[start] {
			continue
		}
		if size != 0 && i-start != size {
			return 0, false
		}
		size, start = i-start, i
	}
	return size, size != 0
}
