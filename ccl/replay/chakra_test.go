package replay_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl/bandwidth"
	"github.com/torchemu/torchemu/ccl/replay"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace/protobuf"
)

// attributes are numbers, and texts, of a node.
type attributes map[string]any

// node makes a Chakra node.
func node(id uint64, name string, kind uint64, after []uint64, with attributes) protobuf.Message {
	var m protobuf.Message
	m.Uint(1, id)
	m.Str(2, name)
	m.Uint(3, kind)
	for _, a := range after {
		m.Uint(5, a)
	}
	for key, value := range with {
		var a protobuf.Message
		a.Str(1, key)
		switch v := value.(type) {
		case string:
			a.Str(29, v)
		case int:
			a.Int(9, int64(v))
		}
		m.Sub(10, a)
	}
	return m
}

// written writes a trace for each rank and returns the name for all.
func written(t *testing.T, ranks ...[]protobuf.Message) string {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "job")
	for r, nodes := range ranks {
		var head protobuf.Message
		head.Str(1, "0.0.4")
		var data []byte
		for _, m := range append([]protobuf.Message{head}, nodes...) {
			data = binary.AppendUvarint(data, uint64(len(m)))
			data = append(data, m...)
		}
		if err := os.WriteFile(fmt.Sprintf("%s.%d.et", prefix, r), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return prefix + ".et"
}

const (
	compute  = 4
	sends    = 5
	receives = 6
	group    = 7
)

// Computation, a message that both sides wait for, and what comes after it: without times of their own, as other tools
// write them.
func TestAMessageInChakra(t *testing.T) {
	message := attributes{"comm_src": 0, "comm_dst": 1, "comm_size": 4096, "comm_tag": 3}
	file := written(t,
		[]protobuf.Message{node(0, "mm", compute, nil, attributes{"duration_ps": 5000}), node(1, "send", sends, []uint64{0}, message)},
		[]protobuf.Message{
			node(7, "recv", receives, nil, message),
			node(9, "relu", compute, []uint64{7}, attributes{"duration_ps": 70}),
		},
	)
	j, err := replay.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	link := load(t, "h200_8", 0).Transport().SIP
	bytesPerSecond := float64(link.Protocols[topology.LL].Bandwidth) * link.P2P.LLShare
	carried := link.Launch + link.P2P.Start + int64(math.Ceil(4096e12/bytesPerSecond))
	for name, took := range map[string]sim.Time{"default": alone(t, 0, 1, 4096), "h200_8": sim.Time(carried)} {
		got, err := j.Play(load(t, name, 0))
		if err != nil {
			t.Fatal(err)
		}
		arrives := 5000 + took
		const wireByte = 2 // ps: what is sent on a wire is whole bytes
		if off := got.Ends[0] - arrives; off < -wireByte || off > wireByte || got.Ends[1] != got.Ends[0]+70 {
			t.Errorf("%s: ends at %v, want %v and 70 ps later", name, got.Ends, arrives)
		}
	}
}

// Calls take what they take alone, one after the other, by the numbers of their group and not by the order in the file.
func TestCallsInChakra(t *testing.T) {
	const bytes = 1 << 20
	call := func(id uint64, comm, seq int, after ...uint64) protobuf.Message {
		return node(id, "call", group, after, attributes{
			"comm_type": comm, "comm_size": bytes, "elems": bytes / 4, "elem_size": 4, "pg_name": "0", "pg_ranks": "0,1,2,3",
			"pg_seq": seq, "algorithm": "ring",
		})
	}
	reduce, gather := int(collective.AllReduce.Row().Chakra), int(collective.AllGather.Row().Chakra)
	var ranks [][]protobuf.Message
	for r := range 4 {
		nodes := []protobuf.Message{call(1, reduce, 1), call(2, gather, 2)}
		if r%2 == 1 {
			nodes = []protobuf.Message{call(1, gather, 2), call(2, reduce, 1)}
		}
		ranks = append(ranks, nodes)
	}
	j, err := replay.Read(written(t, ranks...))
	if err != nil {
		t.Fatal(err)
	}
	got, err := j.Play(load(t, "default", 0))
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for _, k := range []collective.Kind{collective.AllReduce, collective.AllGather} {
		s, err := bandwidth.New(bandwidth.Options{
			Collective: k, Topology: load(t, "default", 0), Algorithm: "ring", DType: dtype.F32, Calls: 1, Min: bytes, Max: bytes, Factor: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		row, _, _ := s.Next()
		want += row.Time
	}
	if took := float64(got.Last()) / float64(sim.Microsecond); took < want-1e-6 || took > want+1e-6 {
		t.Errorf("%v µs, want %v", took, want)
	}
}

func TestBrokenChakra(t *testing.T) {
	message := attributes{"comm_src": 0, "comm_dst": 1, "comm_size": 8}
	barrier := attributes{"comm_type": 0, "comm_size": 8, "pg_name": "7"}
	for _, c := range []struct {
		about string
		ranks [][]protobuf.Message
		want  string
	}{
		{"a dependency", [][]protobuf.Message{{node(3, "mm", compute, []uint64{9}, nil)}}, "job.0.et: node 3 (mm): depends on node 9, which is not there"},
		{"a type", [][]protobuf.Message{{node(3, "mm", 77, nil, nil)}}, "job.0.et: node 3 (mm): type 77 is not known"},
		{"twice", [][]protobuf.Message{{node(3, "a", compute, nil, nil), node(3, "b", compute, nil, nil)}}, "job.0.et: node 3 (b): there are two nodes of this number"},
		{"no receive", [][]protobuf.Message{{node(1, "send", sends, nil, message)}, nil}, "job.0.et: node 1 (send): there is no recv for it"},
		{"no send", [][]protobuf.Message{nil, {node(1, "recv", receives, nil, message)}}, "job.1.et: node 1 (recv): there is no send for it"},
		{"a rank", [][]protobuf.Message{{node(1, "send", sends, nil, message)}}, "job.0.et: node 1 (send): comm_dst is rank 1: there are 1 ranks"},
		{"a collective", [][]protobuf.Message{{node(1, "x", group, nil, attributes{"comm_type": 99})}}, "job.0.et: node 1 (x): comm_type 99 is not known"},
		{"differ", [][]protobuf.Message{{node(1, "x", group, nil, barrier)}, {node(1, "y", group, nil, attributes{"comm_type": 2, "pg_name": "7"})}},
			`job.1.et: node 1 (y): the ranks of group "7" differ: others call all_reduce there`},
		{"absent", [][]protobuf.Message{{node(1, "x", group, nil, attributes{"comm_type": 0, "pg_ranks": "0,1"})}, nil}, "all_reduce is called by ranks [0], of the group's [0 1]"},
		{"members", [][]protobuf.Message{{node(1, "x", group, nil, attributes{"comm_type": 0, "pg_ranks": "0,5"})}}, `pg_ranks "0,5": want different ranks from 0 to 0`},
	} {
		_, err := replay.Read(written(t, c.ranks...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.about, err, c.want)
		}
	}
}

func TestACycleInChakra(t *testing.T) {
	j, err := replay.Read(written(t, []protobuf.Message{node(1, "a", compute, []uint64{2}, nil), node(2, "b", compute, []uint64{1}, nil)}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Play(load(t, "default", 0)); err == nil || !strings.Contains(err.Error(), "job.0.et: node 1 (a), which waits for") {
		t.Errorf("got %v", err)
	}
}

func TestFilesThatAreNone(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "job")
	for text, want := range map[string]string{
		"\x05abc":           "message 0, at byte 0: it is longer than the file",
		"\x00\x02\x08":      "message 1, at byte 1: it is longer than the file",
		"\x00\x01\x08":      "message 1, at byte 1: field 1 is of kind 0, or ends too early",
		"\x00\x03\x12\x7fa": "message 1, at byte 1: field 2 is longer than what is around it",
	} {
		if err := os.WriteFile(prefix+".0.et", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := replay.Read(prefix + ".et"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := replay.Read(prefix + "none.et"); err == nil {
		t.Error("there is no such file")
	}
}
