package chakra_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
	"github.com/torchemu/torchemu/torchemu/trace/chakra"
)

const us = sim.Microsecond

// text reads the fields of a protocol buffer: numbers as they are, texts in quotes, attributes as name=value.
func text(t *testing.T, b []byte) string {
	t.Helper()
	var parts []string
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		value, m := binary.Uvarint(b[n:])
		b = b[n+m:]
		field := tag >> 3
		switch {
		case tag&7 == 0:
			parts = append(parts, fmt.Sprintf("%d:%d", field, int64(value)))
		case field == 10:
			parts = append(parts, "{"+text(t, b[:value])+"}")
			b = b[value:]
		case tag&7 == 2:
			parts = append(parts, fmt.Sprintf("%d:%q", field, b[:value]))
			b = b[value:]
		default:
			t.Fatalf("field %d has kind %d", field, tag&7)
		}
	}
	return strings.Join(parts, " ")
}

// messages splits a file.
func messages(t *testing.T, b []byte) []string {
	t.Helper()
	var list []string
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		list = append(list, text(t, b[n:n+int(size)]))
		b = b[n+int(size):]
	}
	return list
}

func recorded(t *testing.T) *trace.Recording {
	t.Helper()
	topo, err := topology.Load("sips2")
	if err != nil {
		t.Fatal(err)
	}
	g := &trace.Group{ID: 3, Name: "pair", Ranks: []int{0, 1}}
	stream, side := trace.Track{Kind: trace.StreamTrack, ID: 0}, trace.Track{Kind: trace.StreamTrack, ID: 1}
	ring, mail := trace.Track{Kind: trace.GroupTrack, ID: 3}, trace.Track{Kind: trace.MessageTrack, ID: 3}
	reduce := &trace.Call{Name: "reduce", Collective: collective.Reduce, Group: g, Root: 1, Bytes: 4096, Elems: 1024, Seq: 8, Algorithm: "tree"}
	return &trace.Recording{Topology: topo, Activities: []trace.Activity{
		{Rank: 0, Kind: trace.Kernel, Name: "mm", Track: stream, Number: 1, Start: 1 * us, End: 3 * us, Bytes: 96, Ops: 7},
		{Rank: 1, Kind: trace.Kernel, Name: "other", Track: stream, Number: 2, Start: 1 * us, End: 3 * us},
		{Rank: 0, Kind: trace.CopyIn, Name: "copy", Track: side, Number: 3, Start: 2 * us, End: 2*us + us/2, Bytes: 8},
		{Rank: 0, Kind: trace.Collective, Name: "reduce", Track: ring, Number: 4, Start: 3 * us, End: 6*us + 1, Call: reduce, Group: g},
		{Rank: 0, Kind: trace.Kernel, Name: "relu", Track: stream, Number: 5, Start: 6*us + 1, End: 7 * us, Ops: 2},
		{Rank: 0, Kind: trace.Send, Name: "send", Track: mail, Number: 6, Start: 7 * us, End: 8 * us, Bytes: 16, Group: g, Peer: 1, Tag: 9},
		{Rank: 0, Kind: trace.Receive, Name: "recv", Track: mail, Number: 7, Start: 7 * us, End: 9 * us, Bytes: 24, Group: g, Peer: 1},
	}}
}

// What begins when something else ends came after it, on whichever row; and so did what follows on a stream.
func TestWrite(t *testing.T) {
	var b bytes.Buffer
	if err := chakra.Write(&b, recorded(t), 0); err != nil {
		t.Fatal(err)
	}
	cpu := func(ps, start int) string {
		return fmt.Sprintf(`{1:"is_cpu_op" 27:0} {1:"duration_ps" 9:%d} {1:"start_ps" 9:%d}`, ps, start)
	}
	want := []string{
		`1:"0.0.4"`,
		`1:0 2:"mm" 3:4 6:1 7:2 ` + cpu(2e6, 1e6) + ` {1:"num_ops" 9:7} {1:"tensor_size" 13:96}`,
		`1:1 2:"copy" 3:3 6:2 7:1 ` + cpu(5e5, 2e6) + ` {1:"num_ops" 9:0} {1:"tensor_size" 13:8}`,
		`1:2 2:"reduce" 3:7 5:0 6:3 7:3 ` + cpu(3000001, 3e6) +
			` {1:"comm_type" 9:1} {1:"comm_size" 9:4096} {1:"comm_priority" 7:0} {1:"pg_name" 29:"3"} {1:"pg_ranks" 29:"0,1"} {1:"pg_seq" 9:8} {1:"algorithm" 29:"tree"} {1:"elems" 9:1024} {1:"elem_size" 9:4} {1:"root" 7:1}`,
		`1:3 2:"relu" 3:4 5:0 5:2 6:6 7:1 ` + cpu(999999, 6000001) + ` {1:"num_ops" 9:2} {1:"tensor_size" 13:0}`,
		`1:4 2:"send" 3:5 5:3 6:7 7:1 ` + cpu(1e6, 7e6) +
			` {1:"comm_src" 7:0} {1:"comm_dst" 7:1} {1:"comm_tag" 7:9} {1:"comm_size" 9:16} {1:"pg_name" 29:"3"}`,
		`1:5 2:"recv" 3:6 5:3 6:7 7:2 ` + cpu(2e6, 7e6) +
			` {1:"comm_src" 7:1} {1:"comm_dst" 7:0} {1:"comm_tag" 7:0} {1:"comm_size" 9:24} {1:"pg_name" 29:"3"}`,
	}
	got := messages(t, b.Bytes())
	if len(got) != len(want) {
		t.Fatalf("%d messages:\n%s", len(got), strings.Join(got, "\n"))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("message %d is\n%s\nand not\n%s", i, got[i], want[i])
		}
	}
}

func TestNothing(t *testing.T) {
	var b bytes.Buffer
	if err := chakra.Write(&b, recorded(t), 2); err != nil || len(messages(t, b.Bytes())) != 1 {
		t.Errorf("a rank that did nothing: %v, %q", err, b.Bytes())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestErrorsOfWriting(t *testing.T) {
	if err := chakra.Write(full{}, recorded(t), 0); err == nil {
		t.Error("no error")
	}
}
