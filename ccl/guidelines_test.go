package ccl_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// guidelines are the compositions by which a collective could be done: each list of kinds, one after another, leaves
// ranks with what the first of a row does. (Träff, Gropp, Thakur: "Self-consistent MPI performance requirements", 2007;
// Hunold, Carpen-Amarie: "Autotuning MPI collectives using performance guidelines", 2018.)
var guidelines = []struct {
	kind collective.Kind
	by   []collective.Kind
}{
	{collective.AllReduce, []collective.Kind{collective.Reduce, collective.Broadcast}},
	{collective.AllReduce, []collective.Kind{collective.ReduceScatter, collective.AllGather}},
	{collective.AllGather, []collective.Kind{collective.Gather, collective.Broadcast}},
	{collective.AllGather, []collective.Kind{collective.AllReduce}},
	{collective.ReduceScatter, []collective.Kind{collective.Reduce, collective.Scatter}},
	{collective.ReduceScatter, []collective.Kind{collective.AllReduce}},
	{collective.Broadcast, []collective.Kind{collective.Scatter, collective.AllGather}},
	{collective.Broadcast, []collective.Kind{collective.AllReduce}},
	{collective.Reduce, []collective.Kind{collective.ReduceScatter, collective.Gather}},
	{collective.Reduce, []collective.Kind{collective.AllReduce}},
	{collective.Gather, []collective.Kind{collective.AllGather}},
	{collective.Gather, []collective.Kind{collective.Reduce}},
	{collective.Scatter, []collective.Kind{collective.Broadcast}},
}

// slack is how much slower than a composition a collective may be, in percent.
const slack = 5

// exceptions are the known cases of more slack. With a transport a broadcast's loops are as long as a library makes them
// for other collectives than scatter and all_gather. In the others the phases of a composition, which begin together,
// collide less than those of one schedule, in which each rank goes on when it can.
var exceptions = map[string]sim.Time{
	"h200_8 broadcast":   25,
	"sips16 all_reduce":  9,
	"nodes2x8 broadcast": 7,
}

// oddities are those of numbers of ranks that a preset was not made for: 12 and 48 SIPs of which each reaches all, 33 as a
// torus of 3 by 11.
var oddities = map[string]sim.Time{
	"h200_8 broadcast 48":   27,
	"h200_8 reduce 48":      6,
	"nodes2x8 broadcast 48": 8,
	"sips16 reduce 33":      7,
	"sips8 scatter 12":      9,
}

// A collective that is slower than a composition of others would be replaced by it.
func TestGuidelines(t *testing.T) {
	for _, name := range topology.Presets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, world := range guidelineWorlds() {
				followGuidelines(t, name, world)
			}
		})
	}
}

// followGuidelines compares collectives of so many ranks with others that do the same.
func followGuidelines(t *testing.T, name string, world int) {
	topo := ofRanks(t, name, world)
	layout, devices := ccl.LayoutOf(topo, firstPEs(topo)[:world]), firstPEs(topo)[:world]
	tuner := ccl.NewTuner(topo)
	for _, bytes := range []int{1 << 10, 16 << 10, 256 << 10, 64 << 20} {
		elems := max(4, bytes/4/world/4*4) * world
		var took [collective.NumKinds]sim.Time
		var chosen [collective.NumKinds]string
		for c := range collective.AllToAll {
			took[c], chosen[c] = autoTime(t, tuner, topo, c, layout, devices, elems)
		}
		for _, g := range guidelines {
			composed, how := sim.Time(0), ""
			for _, c := range g.by {
				composed += took[c]
				how += fmt.Sprintf(" + %s by %s, %s", c, chosen[c], took[c])
			}
			known := name + " " + g.kind.String()
			allowed := max(slack, exceptions[known], oddities[fmt.Sprintf("%s %d", known, world)])
			if took[g.kind] > composed+composed*allowed/100 {
				t.Errorf("%d ranks, %d bytes: %s by %s takes %s; %s only %s", world, 4*elems, g.kind, chosen[g.kind],
					took[g.kind], how[3:], composed)
			}
		}
	}
}

// guidelineWorlds are the numbers of ranks that the guidelines are tried for; TORCHEMU_GUIDELINES=all tries many.
func guidelineWorlds() []int {
	if os.Getenv("TORCHEMU_GUIDELINES") == "all" {
		return []int{2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 33, 48, 64}
	}
	if testing.Short() {
		return []int{2, 8}
	}
	return []int{2, 8, 16, 64}
}

// ofRanks is a preset with so many SIPs, on as many nodes as that takes.
func ofRanks(t *testing.T, name string, world int) *topology.Topology {
	topo := preset(t, name)
	nodes, perNode := 1, world
	if topo.Nodes() > 1 {
		perNode = topo.SIPs() / topo.Nodes()
		nodes = (world + perNode - 1) / perNode
	}
	resized, err := topo.Resized(nodes, perNode)
	if err != nil {
		t.Fatal(err)
	}
	return resized
}

// autoTime is how long a collective takes that the Tuner chooses, and the algorithm.
func autoTime(t *testing.T, tuner *ccl.Tuner, topo *topology.Topology, c collective.Kind, l ccl.Layout, devices []topology.DeviceID, elems int) (sim.Time, string) {
	t.Helper()
	a, err := tuner.Select(c, l, devices, elems, 4)
	if err != nil {
		t.Fatal(err)
	}
	run := launch(a.Build(l, ccl.ToCut(topo, a, int64(4*elems))), elems, 4, devices)
	if topo.Transport() != nil {
		run.Carriage = tuner.Carriage(run)
	}
	return ccl.Repeat(topo, run, 1), a.Name()
}
