package replay

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// The types of Chakra's nodes.
const (
	metadataNode = 1
	loadNode     = 2
	storeNode    = 3
	computeNode  = 4
	sendNode     = 5
	receiveNode  = 6
	groupNode    = 7
)

// node is one of a rank's, in a Chakra trace.
type node struct {
	id, kind uint64
	name     string
	after    []uint64
	duration sim.Time
	start    sim.Time // -1: not known
	numbers  map[string]int64
	texts    map[string]string

	operation uint32 // that ends when the node does
}

// readChakra reads the traces of all ranks, PREFIX.0.et, PREFIX.1.et, ….
func readChakra(prefix string) (*Job, error) {
	c := chakraJob{Job: &Job{file: prefix + ".et"}, calls: map[callKey]uint32{}}
	for {
		file := fmt.Sprintf("%s.%d.et", prefix, c.ranks)
		data, err := os.ReadFile(file)
		if err != nil {
			if c.ranks > 0 && os.IsNotExist(err) {
				break
			}
			return nil, fmt.Errorf("trace: %w", err)
		}
		nodes, err := decode(file, data)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, file)
		c.nodes = append(c.nodes, nodes)
		c.ranks++
	}
	for rank := range c.ranks {
		c.addRank(rank)
	}
	c.matchMessages()
	c.checkCalls()
	if err := c.wrong.error(); err != nil {
		return nil, err
	}
	c.link()
	return c.Job, nil
}

// chakraJob is a Job in the making.
type chakraJob struct {
	*Job
	nodes [][]node // by rank
	pairs [][2]uint32
	calls map[callKey]uint32
	wrong mistakes
}

// callKey is a call of a group: by its number, or the order of the trace.
type callKey struct {
	group  string
	number int64
}

// add adds an operation and returns its number.
func (c *chakraJob) add(o operation, n *node) uint32 {
	o.mate, o.line = none, int32(n.id)
	c.operations = append(c.operations, o)
	c.names = append(c.names, n.name)
	return uint32(len(c.operations) - 1)
}

func (c *chakraJob) fail(rank int, n *node, format string, args ...any) {
	if len(c.wrong) <= maxShown {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: node %d (%s): ", c.files[rank], n.id, n.name)+fmt.Sprintf(format, args...))
	}
}

// addRank adds what a rank does: for each node, if it waited for more than others, that time, and the node itself.
func (c *chakraJob) addRank(rank int) {
	nodes := c.nodes[rank]
	byID := map[uint64]*node{}
	for i := range nodes {
		if _, twice := byID[nodes[i].id]; twice {
			c.fail(rank, &nodes[i], "there are two nodes of this number")
		}
		byID[nodes[i].id] = &nodes[i]
	}
	ordinals := map[string]int{}
	firsts := make([]uint32, len(nodes))
	causes := make([][]*node, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		for _, id := range n.after {
			if cause, ok := byID[id]; ok {
				causes[i] = append(causes[i], cause)
			} else {
				c.fail(rank, n, "depends on node %d, which is not there", id)
			}
		}
	}
	latest := lastEnds(nodes)
	for i := range nodes {
		n := &nodes[i]
		delay := sim.Time(0)
		if n.start >= 0 {
			causes[i], delay = waited(n, causes[i], latest(n))
		}
		firsts[i] = c.addNode(rank, n, delay, ordinals)
	}
	for i := range nodes {
		for _, cause := range causes[i] {
			c.pairs = append(c.pairs, [2]uint32{cause.operation, firsts[i]})
			c.operations[firsts[i]].waits++
		}
	}
	c.order(nodes)
}

// order lets a rank's calls of one group follow each other, as they do in libraries.
func (c *chakraJob) order(nodes []node) {
	calls := map[string][]*node{}
	for i := range nodes {
		if n := &nodes[i]; n.kind == groupNode {
			calls[n.texts["pg_name"]] = append(calls[n.texts["pg_name"]], n)
		}
	}
	for i := range nodes {
		name := nodes[i].texts["pg_name"]
		list := calls[name]
		delete(calls, name) // once
		slices.SortStableFunc(list, func(a, b *node) int { return int(a.numbers["pg_seq"] - b.numbers["pg_seq"]) })
		for k := 1; k < len(list); k++ {
			c.pairs = append(c.pairs, [2]uint32{list[k-1].operation, list[k].operation})
			c.operations[list[k].operation].waits++
		}
	}
}

// lastEnds finds, for a node, the one that ended last before it began: what its host may have waited for.
func lastEnds(nodes []node) func(*node) *node {
	var byEnd []*node
	for i := range nodes {
		if nodes[i].start >= 0 {
			byEnd = append(byEnd, &nodes[i])
		}
	}
	slices.SortStableFunc(byEnd, func(a, b *node) int { return int(a.end() - b.end()) })
	return func(n *node) *node {
		k, _ := slices.BinarySearchFunc(byEnd, n.start, func(m *node, t sim.Time) int {
			if m.end() <= t {
				return -1
			}
			return 1
		})
		for k--; k >= 0; k-- {
			if byEnd[k] != n && (byEnd[k].start < n.start || byEnd[k].id < n.id) {
				return byEnd[k]
			}
		}
		return nil
	}
}

func (n *node) end() sim.Time { return n.start + n.duration }

// waited is what a node waited for, and how much later it began than that had ended.
func waited(n *node, causes []*node, last *node) ([]*node, sim.Time) {
	if last != nil && !slices.Contains(causes, last) {
		causes = append(causes, last)
	}
	ready := sim.Time(0)
	for _, cause := range causes {
		ready = max(ready, cause.end())
	}
	return causes, max(0, n.start-ready)
}

// addNode adds a node, and returns its first operation.
func (c *chakraJob) addNode(rank int, n *node, delay sim.Time, ordinals map[string]int) (first uint32) {
	o := operation{rank: int32(rank), kind: pause}
	switch n.kind {
	case metadataNode, loadNode, storeNode, computeNode:
		o.amount = int64(delay + n.duration)
		n.operation = c.add(o, n)
		return n.operation
	case sendNode, receiveNode:
		c.setMessage(&o, rank, n)
	case groupNode:
		o.kind = group
		o.amount = c.callOf(rank, n, ordinals)
	default:
		c.fail(rank, n, "type %d is not known", n.kind)
	}
	if delay == 0 {
		n.operation = c.add(o, n)
		return n.operation
	}
	first = c.add(operation{rank: int32(rank), kind: pause, amount: int64(delay)}, n)
	o.waits++
	n.operation = c.add(o, n)
	c.pairs = append(c.pairs, [2]uint32{first, n.operation})
	return first
}

// setMessage makes an operation a side of a message, of which both sides wait for each other, as ranks' do here.
func (c *chakraJob) setMessage(o *operation, rank int, n *node) {
	o.kind, o.tag, o.amount = meetingSend, int32(n.numbers["comm_tag"]), n.numbers["comm_size"]
	from, to := n.numbers["comm_src"], n.numbers["comm_dst"]
	other, key := to, "comm_dst"
	if n.kind == receiveNode {
		o.kind, other, key = meetingReceive, from, "comm_src"
	} else {
		o.waits = 1
	}
	if other < 0 || other >= int64(c.ranks) {
		c.fail(rank, n, "%s is rank %d: there are %d ranks", key, other, c.ranks)
		other = 0
	}
	o.peer = int32(other)
}

// callOf is the call that a node is a rank's part of: the next of its group.
func (c *chakraJob) callOf(rank int, n *node, ordinals map[string]int) int64 {
	name := n.texts["pg_name"]
	key := callKey{name, int64(ordinals[name])}
	ordinals[name]++
	if seq, given := n.numbers["pg_seq"]; given {
		key.number = seq
	}
	number, known := c.calls[key]
	if !known {
		number = uint32(len(c.Job.calls))
		c.calls[key] = number
		c.Job.calls = append(c.Job.calls, c.newCall(rank, n))
	}
	one := &c.Job.calls[number]
	if kind, ok := kindOf(n); !ok || kind != one.kind {
		c.fail(rank, n, "the ranks of group %q differ: others call %s there", name, one.kind)
	}
	if slices.Contains(one.members, rank) {
		c.fail(rank, n, "the rank makes this call twice")
	} else if one.ranks == nil || slices.Contains(one.ranks, rank) {
		one.members = append(one.members, rank)
	} else {
		c.fail(rank, n, "rank %d is no member of group %s", rank, name)
	}
	return int64(number)
}

// kindOf is the collective of a node.
func kindOf(n *node) (collective.Kind, bool) {
	for k := range collective.NumKinds {
		if k.Row().Chakra == n.numbers["comm_type"] {
			return k, true
		}
	}
	return 0, false
}

func (c *chakraJob) newCall(rank int, n *node) call {
	kind, ok := kindOf(n)
	if !ok {
		c.fail(rank, n, "comm_type %d is not known", n.numbers["comm_type"])
	}
	one := call{kind: kind, algorithm: n.texts["algorithm"], elems: n.numbers["elems"], elemSize: n.numbers["elem_size"], root: int(n.numbers["root"])}
	if one.elemSize < 1 {
		one.elems, one.elemSize = n.numbers["comm_size"], 1
		if one.elems%4 == 0 {
			one.elems, one.elemSize = one.elems/4, 4
		}
	}
	if one.elems < 0 {
		c.fail(rank, n, "%d elements", one.elems)
		one.elems = 0
	}
	for _, word := range strings.FieldsFunc(n.texts["pg_ranks"], func(r rune) bool { return r == ',' }) {
		r, ok := integer([]byte(word))
		if !ok || r < 0 || r >= c.ranks || slices.Contains(one.ranks, r) {
			c.fail(rank, n, "pg_ranks %q: want different ranks from 0 to %d", n.texts["pg_ranks"], c.ranks-1)
			break
		}
		one.ranks = append(one.ranks, r)
	}
	return one
}

// checkCalls sees to it that all members make every call.
func (c *chakraJob) checkCalls() {
	for i := range c.Job.calls {
		one := &c.Job.calls[i]
		if one.ranks == nil {
			one.ranks = slices.Clone(one.members)
			slices.Sort(one.ranks)
		}
		if len(one.members) != len(one.ranks) && len(c.wrong) <= maxShown {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: %s is called by ranks %v, of the group's %v", c.file, one.kind, one.members, one.ranks))
		}
		if one.kind.Rooted() && !slices.Contains(one.ranks, one.root) && len(c.wrong) <= maxShown {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: %s with root %d, among ranks %v", c.file, one.kind, one.root, one.ranks))
		}
	}
}

// matchMessages gives the k-th send of a sender, receiver and tag the k-th receive.
func (c *chakraJob) matchMessages() {
	type key struct{ from, to, tag int32 }
	sends := map[key][]uint32{}
	for i := range c.operations {
		if o := &c.operations[i]; o.kind == meetingSend {
			k := key{o.rank, o.peer, o.tag}
			sends[k] = append(sends[k], uint32(i))
		}
	}
	for i := range c.operations {
		o := &c.operations[i]
		if o.kind != meetingReceive {
			continue
		}
		k := key{o.peer, o.rank, o.tag}
		if len(sends[k]) == 0 {
			c.wrong = append(c.wrong, c.show(uint32(i))+": there is no send for it")
			continue
		}
		o.mate = sends[k][0]
		c.operations[o.mate].mate = uint32(i)
		sends[k] = sends[k][1:]
	}
	for i := range c.operations {
		if o := &c.operations[i]; o.kind == meetingSend && o.mate == none {
			c.wrong = append(c.wrong, c.show(uint32(i))+": there is no recv for it")
		}
	}
}

// link sorts the edges.
func (c *chakraJob) link() {
	slices.SortStableFunc(c.pairs, func(a, b [2]uint32) int { return int(a[0]) - int(b[0]) })
	c.edgeStart = make([]uint32, len(c.operations)+1)
	for _, p := range c.pairs {
		c.edgeStart[p[0]+1]++
		c.edges = append(c.edges, p[1])
	}
	for i := range c.operations {
		c.edgeStart[i+1] += c.edgeStart[i]
	}
}
