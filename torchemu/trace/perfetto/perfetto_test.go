package perfetto_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
	"github.com/torchemu/torchemu/torchemu/trace/perfetto"
)

const us = sim.Microsecond

// fields are those of a decoded message, by number, in their order: numbers, and texts of whatever kind.
type fields map[int][]any

// decode reads a protocol buffer without knowing what it is of.
func decode(t *testing.T, b []byte) fields {
	t.Helper()
	m := fields{}
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		b = b[n:]
		number := int(tag >> 3)
		switch tag & 7 {
		case 0:
			v, n := binary.Uvarint(b)
			m[number], b = append(m[number], v), b[n:]
		case 1:
			m[number], b = append(m[number], binary.LittleEndian.Uint64(b)), b[8:]
		case 2:
			size, n := binary.Uvarint(b)
			m[number], b = append(m[number], b[n:n+int(size)]), b[n+int(size):]
		default:
			t.Fatalf("field %d has kind %d", number, tag&7)
		}
	}
	return m
}

func (m fields) num(field int) uint64 {
	if len(m[field]) == 0 {
		return 0
	}
	return m[field][0].(uint64)
}

func (m fields) text(field int) string {
	if len(m[field]) == 0 {
		return ""
	}
	return string(m[field][0].([]byte))
}

func (m fields) sub(t *testing.T, field int) fields {
	t.Helper()
	if len(m[field]) == 0 {
		return fields{}
	}
	return decode(t, m[field][0].([]byte))
}

// seen is what a reader makes of a file.
type seen struct {
	tracks map[uint64]string   // full names
	bars   []string            // "track: name start-end", in the order of their starts
	levels map[string][]string // of counters
	arrows map[uint64][]string // names of the bars that an arrow touches

	touched map[uint64][]string // tracks of these
}

// read reads a file, and checks what Perfetto asks of it: names before their use, times in order, bars nested.
func read(t *testing.T, file []byte) seen {
	t.Helper()
	s := seen{map[uint64]string{}, nil, map[string][]string{}, map[uint64][]string{}, map[uint64][]string{}}
	names := map[uint64]string{}
	open := map[uint64][]string{}
	last := map[uint64]uint64{}
	for i, raw := range decode(t, file)[1] {
		p := decode(t, raw.([]byte))
		if p.num(10) != 1 {
			t.Fatalf("packet %d is of sequence %d", i, p.num(10))
		}
		if d := p.sub(t, 60); len(d) > 0 {
			s.track(t, d)
			continue
		}
		for _, entry := range p.sub(t, 12)[2] {
			e := decode(t, entry.([]byte))
			names[e.num(1)] = e.text(2)
		}
		s.event(t, p, names, open, last)
	}
	for track, left := range open {
		if len(left) > 0 {
			t.Errorf("%s: %q have no end", s.tracks[track], left)
		}
	}
	return s
}

func (s *seen) track(t *testing.T, d fields) {
	t.Helper()
	name := d.text(2)
	if parent := d.num(5); parent != 0 {
		if s.tracks[parent] == "" {
			t.Errorf("%s comes before its parent", name)
		}
		name = s.tracks[parent] + "/" + name
	}
	if _, twice := s.tracks[d.num(1)]; twice {
		t.Errorf("two tracks have number %d", d.num(1))
	}
	s.tracks[d.num(1)] = name
}

func (s *seen) event(t *testing.T, p fields, names map[uint64]string, open map[uint64][]string, last map[uint64]uint64) {
	t.Helper()
	e, at := p.sub(t, 11), p.num(8)
	track := e.num(11)
	if s.tracks[track] == "" || last[track] > at {
		t.Errorf("an event of track %d (%q) at %d, after one at %d", track, s.tracks[track], at, last[track])
	}
	last[track] = at
	switch e.num(9) {
	case 1:
		name := names[e.num(10)]
		if name == "" {
			t.Errorf("a bar of %s has no name", s.tracks[track])
		}
		open[track] = append(open[track], fmt.Sprintf("%s: %s %d", s.tracks[track], name, at))
		for _, arrow := range slices.Concat(e[47], e[48]) {
			s.arrows[arrow.(uint64)] = append(s.arrows[arrow.(uint64)], name)
			s.touched[arrow.(uint64)] = append(s.touched[arrow.(uint64)], s.tracks[track])
		}
	case 2:
		list := open[track]
		s.bars = append(s.bars, fmt.Sprintf("%s-%d", list[len(list)-1], at))
		open[track] = list[:len(list)-1]
	case 4:
		value := math.Float64frombits(e[44][0].(uint64))
		s.levels[s.tracks[track]] = append(s.levels[s.tracks[track]], fmt.Sprintf("%d=%g", at, value))
	}
}

func written(t *testing.T, rec *trace.Recording) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := perfetto.Write(&b, rec); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// open makes a recording of ranks 0 and 1 of the default topology.
func open(t *testing.T) *trace.Recording {
	t.Helper()
	topo, err := topology.Load("default")
	if err != nil {
		t.Fatal(err)
	}
	var r trace.Recorder
	rec := r.New(topo, trace.Links)
	rec.Open(0, 0)
	rec.Open(1, 0)
	return rec
}

func compare(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A host's bars are nested; what overlaps on a device is on tracks of its own. Arrows lead from calls to what they are
// for.
func TestRanks(t *testing.T) {
	rec := open(t)
	stream := trace.Track{Kind: trace.StreamTrack, Name: "stream 0"}
	messages := trace.Track{Kind: trace.MessageTrack, Name: "default"}
	g := &trace.Group{Name: "default", Ranks: []int{0, 1}}
	rec.Spans = []trace.Span{
		{Rank: 1, Wait: true, Name: "x", Start: 9 * us, End: 10 * us},
		{Rank: 1, Name: "step", Start: 0, End: 10 * us},
	}
	rec.Activities = []trace.Activity{
		{Rank: 1, Kind: trace.Kernel, Name: "mm", Track: stream, Number: 1, Called: 0, Issued: 4 * us, Start: 4 * us, End: 9*us + 999},
		{Rank: 1, Kind: trace.Kernel, Name: "add", Track: stream, Number: 2, Called: 4 * us, Issued: 8 * us, Start: 9*us + 999, End: 9*us + 1999},
		{Rank: 0, Kind: trace.Send, Name: "send", Track: messages, Number: 3, Group: g, Called: 0, Issued: 1 * us, Start: 1 * us, End: 3 * us},
		{Rank: 0, Kind: trace.Send, Name: "send", Track: messages, Number: 4, Group: g, Called: 1 * us, Issued: 2 * us, Start: 2 * us, End: 4 * us},
		{Rank: 0, Kind: trace.Kernel, Name: "relu", Track: stream, Number: 5, Called: 2 * us, Issued: 2 * us, Start: 4 * us, End: 5 * us},
	}
	s := read(t, written(t, rec))
	compare(t, s.bars,
		"rank 0 on n0.s0: communicate 1000-4000",
		"rank 0 on n0.s0: compute 4000-5000",
		"rank 1 on n0.s1: compute 4000-9001",
		"rank 0 on n0.s0/host: send 0-1000",
		"rank 0 on n0.s0/host: send 1000-2000",
		"rank 0 on n0.s0/host: relu 2000-2000",
		"rank 0 on n0.s0/stream 0: wait 2000-4000",
		"rank 0 on n0.s0/stream 0: relu 4000-5000",
		"rank 0 on n0.s0/messages of default: send 1000-3000",
		"rank 0 on n0.s0/messages of default: send 2000-4000",
		"rank 1 on n0.s1/host: step 0-10000",
		"rank 1 on n0.s1/host: mm 0-4000",
		"rank 1 on n0.s1/host: add 4000-8000",
		"rank 1 on n0.s1/host: wait 9000-10000",
		"rank 1 on n0.s1/stream 0: mm 4000-9000",
		"rank 1 on n0.s1/stream 0: add 9000-9001",
	)
	var touched []string
	for _, names := range s.arrows {
		touched = append(touched, strings.Join(names, ">"))
	}
	compare(t, touched, "mm>mm", "add>add", "send>send", "send>send", "relu>relu")
}

// Links and DMA engines are with the hardware that they are of, and levels add up.
func TestHardware(t *testing.T) {
	rec := open(t)
	topo := rec.Topology
	a, b := topo.PE(0, 0, 0), topo.PE(1, 0, 0)
	rec.Segments = []trace.Segment{{From: a, To: b, Links: topo.Route(a, b)}}
	half := float64(100e9) / 2
	rec.Flows = []trace.Flow{
		{Engine: 0, Bytes: 150_000, Start: 1 * us, End: 3 * us, Rates: []trace.Rate{{From: 1 * us, BytesPerSecond: 100e9}, {From: 2 * us, BytesPerSecond: half}}},
		{Engine: 1, Bytes: 100_000, Start: 2 * us, End: 4 * us, Rates: []trace.Rate{{From: 2 * us, BytesPerSecond: half}}},
	}
	rec.Reductions = []trace.Reduction{{PE: b, Bytes: 10, Start: 4 * us, End: 5 * us}}
	call := &trace.Call{Name: "all_reduce", Group: &trace.Group{}, Seq: 3}
	rec.Steps = []trace.Step{
		{Call: call, Src: 0, Dst: 1, From: a, To: b, Reduce: true, Start: 1 * us, Arrived: 3 * us, Combine: 4 * us, End: 5 * us},
	}
	s := read(t, written(t, rec))
	want := []string{
		"rank 0 on n0.s0/cube n0.s0.c0/PE n0.s0.c0.p0/DMA engine 0: s0 → s1 1000-3000",
		"rank 0 on n0.s0/cube n0.s0.c0/PE n0.s0.c0.p0/DMA engine 1: s0 → s1 2000-4000",
		"rank 0 on n0.s0/cube n0.s0.c0/PE n0.s0.c0.p0/sends: to 1 1000-3000",
		"rank 1 on n0.s1/cube n0.s1.c0/PE n0.s1.c0.p0/receives: reduce from 0 3000-5000",
		"rank 1 on n0.s1/cube n0.s1.c0/PE n0.s1.c0.p0/vector unit: reduce 4000-5000",
	}
	for _, link := range []string{
		"rank 0 on n0.s0/cube n0.s0.c0/n0.s0.c0.hbm>n0.s0.c0", "rank 0 on n0.s0/n0.s0.c0>n0.s0.io", "node n0/n0.s0.io>n0.s1.io",
		"rank 1 on n0.s1/n0.s1.io>n0.s1.c0", "rank 1 on n0.s1/cube n0.s1.c0/n0.s1.c0>n0.s1.c0.hbm",
	} {
		want = append(want, link+": s0 → s1 1000-3000", link+": s0 → s1 2000-4000")
	}
	compare(t, s.bars, want...)
	for arrow, tracks := range s.touched { // of bars that begin together, Perfetto takes the first in the file as the start
		if len(tracks) > 2 && !strings.Contains(tracks[0], "DMA engine") {
			t.Errorf("arrow %d begins at %s", arrow, tracks[0])
		}
	}
	for counter, want := range map[string]string{
		"rank 0 on n0.s0/cube n0.s0.c0/PE n0.s0.c0.p0/busy DMA engines": "1000=1 2000=2 3000=1 4000=0",
		"node n0/n0.s0.io>n0.s1.io in use":                              "1000=100 3000=50 4000=0",
		"rank 0 on n0.s0/cube n0.s0.c0/n0.s0.c0.hbm>n0.s0.c0 in use":    "1000=10 3000=5 4000=0",
		"rank 0 on n0.s0/n0.s0.c0>n0.s0.io in use":                      "1000=10 3000=5 4000=0",
		"rank 1 on n0.s1/cube n0.s1.c0/n0.s1.c0>n0.s1.c0.hbm in use":    "1000=10 3000=5 4000=0",
		"rank 1 on n0.s1/n0.s1.io>n0.s1.c0 in use":                      "1000=10 3000=5 4000=0",
	} {
		if got := strings.Join(s.levels[counter], " "); got != want {
			t.Errorf("%s: %s, want %s", counter, got, want)
		}
	}
	if len(s.levels) != 6 {
		t.Errorf("%d counters, want 6", len(s.levels))
	}
}

// Where nodes have NICs, their links are with the SIP or the network.
func TestNodes(t *testing.T) {
	topo, err := topology.Load("nodes2x8")
	if err != nil {
		t.Fatal(err)
	}
	var r trace.Recorder
	rec := r.New(topo, trace.Links)
	a, b := topo.PE(1, 0, 0), topo.PE(9, 0, 0)
	rec.Segments = []trace.Segment{{From: a, To: b, Links: topo.Route(a, b)}}
	rec.Flows = []trace.Flow{{Engine: -1, Start: 0, End: us, Rates: []trace.Rate{{BytesPerSecond: 1}}}}
	var got []string
	for _, bar := range read(t, written(t, rec)).bars {
		got = append(got, strings.Split(bar, ":")[0])
	}
	compare(t, got,
		"SIP 01, n0.s1/cube n0.s1.c0/n0.s1.c0.hbm>n0.s1.c0", "SIP 01, n0.s1/n0.s1.c0>n0.s1.io", "SIP 01, n0.s1/n0.s1.io>n0.s1.nic",
		"network between the nodes/n0.s1.nic>net", "network between the nodes/net>n1.s9.nic",
		"SIP 09, n1.s9/n1.s9.nic>n1.s9.io", "SIP 09, n1.s9/n1.s9.io>n1.s9.c0", "SIP 09, n1.s9/cube n1.s9.c0/n1.s9.c0>n1.s9.c0.hbm",
	)
}

// Of what changes within a nanosecond, the last is written.
func TestMemory(t *testing.T) {
	rec := open(t)
	rec.Memory = []trace.MemoryUse{
		{Rank: 1, From: us, Bytes: 512}, {Rank: 0, From: us, Bytes: 99}, {Rank: 1, From: us + 1, Bytes: 1024},
		{Rank: 1, From: 3 * us, Bytes: 0},
	}
	s := read(t, written(t, rec))
	for counter, want := range map[string]string{
		"rank 0 on n0.s0/memory allocated": "1000=99", "rank 1 on n0.s1/memory allocated": "1000=1024 3000=0",
	} {
		if got := strings.Join(s.levels[counter], " "); got != want {
			t.Errorf("%s: %q, want %q of %v", counter, got, want, s.levels)
		}
	}
}

func TestAnEmptyRecordingIsAFile(t *testing.T) {
	rec := open(t)
	if s := read(t, written(t, rec)); len(s.bars) != 0 || len(s.tracks) != 4 {
		t.Errorf("%+v", s)
	}
}

// A rank's own track has what its device does, all rows in one.
func TestStates(t *testing.T) {
	rec := open(t)
	stream := trace.Track{Kind: trace.StreamTrack, Name: "stream 0"}
	side := trace.Track{Kind: trace.GroupTrack, Name: "default"}
	g := &trace.Group{Name: "default", Ranks: []int{0, 1}}
	call := &trace.Call{Name: "all_reduce", Group: g, Root: -1}
	rec.Activities = []trace.Activity{
		{Kind: trace.Kernel, Name: "mm", Track: stream, Start: 0, End: 4 * us},
		{Kind: trace.Collective, Name: "all_reduce", Track: side, Group: g, Call: call, Start: 2 * us, End: 6 * us},
		{Kind: trace.Kernel, Name: "short", Track: stream, Start: 4*us + 1, End: 4*us + 999},
		{Kind: trace.CopyOut, Name: "copy", Track: stream, Start: 5 * us, End: 6 * us},
		{Kind: trace.CopyIn, Name: "copy", Track: stream, Start: 6 * us, End: 7 * us},
		{Kind: trace.Kernel, Name: "mm", Track: stream, Start: 8 * us, End: 9 * us},
		{Kind: trace.Kernel, Name: "mm", Track: stream, Start: 9 * us, End: 10 * us},
	}
	var got []string
	for _, bar := range read(t, written(t, rec)).bars {
		if track, state, _ := strings.Cut(bar, ": "); track == "rank 0 on n0.s0" {
			got = append(got, state)
		}
	}
	compare(t, got, "compute 0-2000", "compute + communicate 2000-4000", "communicate 4000-5000",
		"copy + communicate 5000-6000", "copy 6000-7000", "compute 8000-10000")
}
