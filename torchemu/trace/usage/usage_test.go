package usage_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
	"github.com/torchemu/torchemu/torchemu/trace/usage"
)

func load(t *testing.T, name string) *topology.Topology {
	t.Helper()
	topo, err := topology.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// The parts of a link's time hold together what its flows moved, however times and rates fall on them.
func TestPartsHoldWhatFlowsMoved(t *testing.T) {
	topo := load(t, "sips2")
	random := rand.New(rand.NewPCG(1, 2))
	for _, span := range []sim.Time{1, 7, 239, 240, 241, 1000, 123_456_789, sim.Second} {
		rec := &trace.Recording{Topology: topo, Segments: []trace.Segment{{Links: []topology.LinkID{3}}}}
		want := 0.0
		for range 20 {
			start := sim.Time(random.Int64N(int64(span)))
			end := start + 1 + sim.Time(random.Int64N(int64(span-start)))
			rate := random.Float64() * 1e12
			rates := []trace.Rate{{From: start, BytesPerSecond: rate}, {From: (start + end) / 2, BytesPerSecond: rate / 2}}
			want += rate*float64((start+end)/2-start)/1e12 + rate/2*float64(end-(start+end)/2)/1e12
			rec.Flows = append(rec.Flows, trace.Flow{Engine: -1, Start: start, End: end, Rates: rates})
		}
		_, links := usage.Of(rec, 0, span)
		got := 0.0
		for i, share := range links[0].Parts {
			part := span/usage.Parts*sim.Time(i+1) + span%usage.Parts*sim.Time(i+1)/usage.Parts -
				span/usage.Parts*sim.Time(i) - span%usage.Parts*sim.Time(i)/usage.Parts
			got += share * float64(topo.Link(3).Bandwidth) * float64(part) / 1e12
		}
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("over %v: the parts hold %g bytes, the flows moved %g", span, got, want)
		}
	}
}

// What overlaps on an engine or a card, or meets, is one busy time, in whatever order flows end.
func TestLanesAreBusyWhileFlowsAre(t *testing.T) {
	topo := load(t, "nodes2x8")
	var out, in topology.LinkID = -1, -1
	for l := range topology.LinkID(topo.NumLinks()) {
		from, to := topo.Device(topo.Link(l).From), topo.Device(topo.Link(l).To)
		if from.Node == 0 && from.SIP == 3 && to.Node < 0 {
			out = l
		}
		if to.SIP == 9 && from.Node < 0 {
			in = l
		}
	}
	rec := &trace.Recording{Topology: topo, Segments: []trace.Segment{{From: topo.IO(3), Links: []topology.LinkID{out, in}}}}
	for _, f := range [][2]sim.Time{{5, 6}, {8, 9}, {9, 12}, {2, 13}, {20, 21}} {
		rec.Flows = append(rec.Flows, trace.Flow{Engine: 2, Bytes: 1, Start: f[0], End: f[1]})
	}
	lanes, _ := usage.Of(rec, 0, 30)
	want := []struct {
		sip  int
		name string
	}{{3, "io DMA 2"}, {3, "NIC out"}, {9, "NIC in"}}
	if len(lanes) != len(want) {
		t.Fatalf("%d lanes: %v", len(lanes), lanes)
	}
	for i, lane := range lanes {
		busy := []usage.Busy{{Start: 2, End: 13, Bytes: 4}, {Start: 20, End: 21, Bytes: 1}}
		if lane.SIP != want[i].sip || lane.Name != want[i].name || len(lane.Busy) != 2 || lane.Busy[0] != busy[0] || lane.Busy[1] != busy[1] {
			t.Errorf("lane %d is %v, want %v with %v", i, lane, want[i], busy)
		}
	}
}

func TestNothingToSumUp(t *testing.T) {
	lanes, links := usage.Of(&trace.Recording{Topology: load(t, "sips2")}, 4, 4)
	if lanes == nil || links == nil || len(lanes)+len(links) != 0 {
		t.Errorf("of nothing there are lanes %v and links %v", lanes, links)
	}
}
