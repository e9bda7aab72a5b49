package distributed_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// atSwitch is a cluster of four SIPs at a switch with some in-network computing.
func atSwitch(t *testing.T, does string, o distributed.Options) cluster {
	t.Helper()
	topo, err := topology.Parse("test.yaml", []byte("system: {sips: {count: 4, connect: switch}, switch: {in_network: "+does+"}}"))
	if err != nil {
		t.Fatal(err)
	}
	return newClusterOn(t, topo, o)
}

func TestCollectivesByASwitch(t *testing.T) {
	for _, algorithm := range []string{"nvls", "auto"} {
		c := atSwitch(t, "{multicast: true, reduce: [sum]}", distributed.Options{Algorithm: algorithm})
		if err := c.spawn(func(p *multiprocessing.Process) error { return allThree(c, p) }); err != nil {
			t.Error(err)
		}
		for _, r := range c.Log {
			if algorithm == "nvls" && r.Algorithm != "nvls" {
				t.Errorf("%s by %s", r.Name, r.Algorithm)
			}
		}
	}
}

// What ccl.yaml names for all_reduce must be there; of other collectives it is only a namesake.
func TestASwitchThatDoesNotDoEverything(t *testing.T) {
	run := func(does string, op tensor.ReduceOp) (cluster, error) {
		c := atSwitch(t, does, distributed.Options{Algorithm: "nvls"})
		return c, c.spawn(func(p *multiprocessing.Process) error {
			gathered, err := c.group.AllGatherIntoTensor(me(p), ramp(20, 0), ramp(5, 0))
			if err := ended(p, gathered, err); err != nil {
				return err
			}
			w, err := c.group.AllReduce(me(p), ramp(5, p.ID), op)
			return ended(p, w, err)
		})
	}
	for _, k := range []struct {
		does string
		op   tensor.ReduceOp
		want string
	}{
		{"{multicast: true, reduce: [sum]}", tensor.Sum, ""},
		{"{multicast: true, reduce: [sum]}", tensor.Avg, ""},
		{"{multicast: true, reduce: [sum]}", tensor.Max, "all_reduce by nvls: the 4 ranks are not on SIPs of one node whose switch reduces by this operation"},
		{"{reduce: [max]}", tensor.Max, "all_reduce by nvls: the 4 ranks are not on SIPs of one node whose switch multicasts"},
	} {
		c, err := run(k.does, k.op)
		if (err == nil) != (k.want == "") || err != nil && !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s by a switch with %s: got %v, want %q", k.op, k.does, err, k.want)
		}
		if byNVLS := c.Log[0].Algorithm == "nvls"; byNVLS != strings.Contains(k.does, "multicast") {
			t.Errorf("%s: all_gather by %s", k.does, c.Log[0].Algorithm)
		}
	}
}

// A cable to the switch that is dropped is the reason why a collective does not end.
func TestASwitchBehindADroppedLink(t *testing.T) {
	c := atSwitch(t, "{multicast: true, reduce: [sum]}", distributed.Options{Algorithm: "nvls"})
	c.limit(t, patience)
	cable, err := torchemu.CableBetween(c.Topology, c.Topology.IO(2), c.Topology.Link(c.Topology.FromSwitch(c.Topology.PE(2, 0, 0))[0]).From)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Inject(torchemu.DropLink{Cable: cable, From: sim.Microsecond}); err != nil {
		t.Fatal(err)
	}
	for r, got := range c.endings(t, func(p *multiprocessing.Process) error {
		w, err := c.group.AllReduce(me(p), ramp(1<<16, 0), tensor.Sum)
		return ended(p, w, err)
	}) {
		if !strings.Contains(got, "SIP 2") || !strings.Contains(got, "was dropped at 1us") {
			t.Errorf("rank %d: %s", r, got)
		}
	}
}

// A recording names what the switch does.
func TestRecordingOfASwitch(t *testing.T) {
	c := atSwitch(t, "{multicast: true, reduce: [sum]}", distributed.Options{Algorithm: "nvls"})
	rec := c.record(trace.Steps)
	if err := c.spawn(func(p *multiprocessing.Process) error {
		w, err := c.group.AllReduce(me(p), ramp(400, 0), tensor.Sum)
		return ended(p, w, err)
	}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range rec.Steps {
		got = append(got, fmt.Sprintf("%d %d %s of %d bytes", s.Src, s.Dst, s.Does(), s.Bytes))
	}
	slices.Sort(got)
	var want []string
	for r := range 4 {
		want = append(want, fmt.Sprintf("%d %d multicast to 4 of 400 bytes", r, r), fmt.Sprintf("%d %d reduce of 4 in the switch of 400 bytes", r, r))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("steps are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
