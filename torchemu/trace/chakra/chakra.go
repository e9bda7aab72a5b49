// Package chakra writes what a recording has of one rank as a Chakra execution trace, the format of MLCommons that
// simulators such as ASTRA-sim replay: a graph of kernels, copies, collectives and messages, each with the ones that it
// came after. Field numbers, and the types of attributes, are those of Chakra's et_def.proto and of its feeder.
package chakra

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
	"github.com/torchemu/torchemu/torchemu/trace/protobuf"
)

// The fields of a Node.
const (
	nodeID          = 1
	nodeName        = 2
	nodeType        = 3
	nodeDataDeps    = 5
	nodeStart       = 6 // microseconds, as is the next
	nodeDuration    = 7
	nodeAttribute   = 10
	metadataVersion = 1
)

// The fields of an AttributeProto.
const (
	attributeName   = 1
	attributeInt32  = 7
	attributeInt64  = 9
	attributeUint64 = 13
	attributeBool   = 27
	attributeString = 29
)

// The types of nodes.
const (
	loadNode    = 2
	storeNode   = 3
	computeNode = 4
	sendNode    = 5
	receiveNode = 6
	groupNode   = 7
)

var types = map[trace.Kind]uint64{
	trace.Kernel: computeNode, trace.CopyIn: storeNode, trace.CopyOut: loadNode, trace.Collective: groupNode,
	trace.Send: sendNode, trace.Receive: receiveNode,
}

// version is that of the format.
const version = "0.0.4"

// Write writes what a recording has of a rank: messages, each behind its length. Times are rounded to microseconds, of
// which the format has whole ones; the attributes "duration_ps" and "start_ps" have the rest. What replays need besides of a
// collective is in attributes, too: its algorithm, its elements and their size, the ranks of its group,
// and its number among theirs.
func Write(w io.Writer, rec *trace.Recording, rank int) error {
	out := &writer{w: bufio.NewWriterSize(w, 1<<16)}
	var head protobuf.Message
	head.Str(metadataVersion, version)
	out.message(head)
	for _, n := range nodes(rec, rank) {
		out.message(n.message())
	}
	return errors.Join(out.err, out.w.Flush())
}

// node is an activity and the numbers of those that it came after.
type node struct {
	*trace.Activity
	id    int
	after []uint64
}

// nodes lists a rank's in the order of their starts. Simulated times are exact: what begins at the very moment at which
// something else ends was waiting for it; and what a row has follows what the row had before.
func nodes(rec *trace.Recording, rank int) []node {
	var list []node
	before := map[*trace.Activity]*trace.Activity{}
	for _, row := range rec.Rows(rank) {
		for i, a := range row.Activities {
			if i > 0 && row.Track.Kind != trace.MessageTrack {
				before[a] = row.Activities[i-1]
			}
			list = append(list, node{Activity: a})
		}
	}
	slices.SortStableFunc(list, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Number, b.Number))
	})
	ids := map[*trace.Activity]uint64{}
	ends := map[sim.Time][]uint64{}
	for i := range list {
		n := &list[i]
		n.id = i
		n.after = append(n.after, ends[n.Start]...)
		if id, ok := ids[before[n.Activity]]; ok && !slices.Contains(n.after, id) {
			n.after = append(n.after, id)
		}
		slices.Sort(n.after)
		ids[n.Activity] = uint64(i)
		ends[n.End] = append(ends[n.End], uint64(i))
	}
	return list
}

func (n *node) message() (m protobuf.Message) {
	m.Uint(nodeID, uint64(n.id))
	m.Str(nodeName, n.Name)
	m.Uint(nodeType, types[n.Kind])
	for _, id := range n.after {
		m.Uint(nodeDataDeps, id)
	}
	m.Uint(nodeStart, rounded(n.Start))
	m.Uint(nodeDuration, rounded(n.End-n.Start))
	for _, a := range n.attributes() {
		m.Sub(nodeAttribute, a)
	}
	return m
}

// rounded is a time in microseconds.
func rounded(t sim.Time) uint64 { return uint64((t + sim.Microsecond/2) / sim.Microsecond) }

func (n *node) attributes() []protobuf.Message {
	list := []protobuf.Message{
		attribute("is_cpu_op", attributeBool, 0),
		attribute("duration_ps", attributeInt64, int64(n.End-n.Start)),
		attribute("start_ps", attributeInt64, int64(n.Start)),
	}
	switch n.Kind {
	case trace.Collective:
		return append(list, n.ofCollective()...)
	case trace.Send, trace.Receive:
		return append(list, n.ofMessage()...)
	}
	return append(list,
		attribute("num_ops", attributeInt64, n.Ops),
		attribute("tensor_size", attributeUint64, n.Bytes),
	)
}

func (n *node) ofCollective() []protobuf.Message {
	list := []protobuf.Message{
		attribute("comm_type", attributeInt64, n.Call.Collective.Row().Chakra),
		attribute("comm_size", attributeInt64, n.Call.Bytes),
		attribute("comm_priority", attributeInt32, 0),
		text("pg_name", fmt.Sprint(n.Group.ID)),
		text("pg_ranks", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(n.Group.Ranks)), ","), "[]")),
		attribute("pg_seq", attributeInt64, int64(n.Call.Seq)),
		text("algorithm", n.Call.Algorithm),
		attribute("elems", attributeInt64, int64(n.Call.Elems)),
		attribute("elem_size", attributeInt64, elemSize(n.Call)),
	}
	if n.Call.Root >= 0 && n.Call.Root < len(n.Group.Ranks) {
		list = append(list, attribute("root", attributeInt32, int64(n.Group.Ranks[n.Call.Root])))
	}
	return list
}

// elemSize is the bytes of an element of a call's vector.
func elemSize(c *trace.Call) int64 {
	if c.Elems == 0 {
		return 1
	}
	return c.Bytes / int64(c.Elems)
}

func (n *node) ofMessage() []protobuf.Message {
	from, to := n.Rank, n.Peer
	if n.Kind == trace.Receive {
		from, to = to, from
	}
	return []protobuf.Message{
		attribute("comm_src", attributeInt32, int64(from)),
		attribute("comm_dst", attributeInt32, int64(to)),
		attribute("comm_tag", attributeInt32, int64(n.Tag)),
		attribute("comm_size", attributeInt64, n.Bytes),
		text("pg_name", fmt.Sprint(n.Group.ID)),
	}
}

func attribute(name string, field int, value int64) (m protobuf.Message) {
	m.Str(attributeName, name)
	m.Int(field, value)
	return m
}

func text(name, value string) (m protobuf.Message) {
	m.Str(attributeName, name)
	m.Str(attributeString, value)
	return m
}

// writer writes until the first error and remembers it.
type writer struct {
	w    *bufio.Writer
	err  error
	size []byte
}

func (o *writer) message(m protobuf.Message) {
	if o.err != nil {
		return
	}
	o.size = binary.AppendUvarint(o.size[:0], uint64(len(m)))
	if _, o.err = o.w.Write(o.size); o.err == nil {
		_, o.err = o.w.Write(m)
	}
}
