package ccl

import (
	"embed"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/schema"
	"github.com/torchemu/torchemu/torchemu/topology"
)

//go:embed libraries/*.yaml
var libraries embed.FS

// Library is how a library of collectives for real machines chooses among its algorithms and protocols: by a model of
// their cost, with public constants. It has rings, for all_reduce trees, and where there is one a switch that works on data.
type Library struct{ file libraryFile }

// Libraries lists the libraries that ship with the program, in alphabetical order.
func Libraries() []string {
	entries, _ := libraries.ReadDir("libraries") // embedded: cannot fail
	var list []string
	for _, e := range entries {
		list = append(list, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return list
}

// LoadLibrary finds a library by its name. The error lists the names there are.
func LoadLibrary(name string) (*Library, error) {
	data, err := libraries.ReadFile("libraries/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("there is no library %s; the libraries are %s", schema.Quote(name), strings.Join(Libraries(), ", "))
	}
	l := &Library{}
	if err := (schema.Format{Name: "a library"}).Decode(name+".yaml", data, &l.file).Err(); err != nil {
		return nil, err
	}
	return l, nil
}

// NoLibrary is the name that stands for none.
const NoLibrary = "none"

// Choose returns the algorithm's name and the carriage of a collective of so many bytes, counted as in nccl-tests, among
// ranks of one node.
func (l *Library) Choose(c collective.Kind, at Layout, bytes int64) (algorithm string, how Carriage) {
	world := at.World
	switch c {
	case collective.AllToAll, collective.Gather, collective.Scatter:
		return "direct", Carriage{}
	}
	best := math.Inf(1)
	for k := range topology.ProtocolKind(topology.Protocols) {
		if cost := l.ringCost(c, world, bytes, k); cost < best {
			best, algorithm, how.Protocol = cost, ringOf(c), k
		}
		if cost := l.treeCost(world, bytes, k); c == collective.AllReduce && cost < best {
			best, algorithm, how.Protocol = cost, treeName, k
		}
	}
	if l.nvlsCost(c, at, bytes) < best {
		return nvls, Carriage{Protocol: topology.Simple}
	}
	how.Channels = l.Channels(how.Protocol, world, bytes)
	return algorithm, how
}

// nvlsCost is the time in µs that the library expects of a switch that does the work; infinite where none does, and for
// collectives that the library has it not for.
func (l *Library) nvlsCost(c collective.Kind, at Layout, bytes int64) float64 {
	n, steps := float64(at.World), float64(at.World-1)
	has, needs := l.file.NVLS.Bandwidth > 0, Switching{}
	switch c {
	case collective.AllReduce:
		needs = Switching{Multicast: true, Reduce: true} // twice the bytes, and both at once
	case collective.AllGather:
		needs = Switching{Multicast: true}
	case collective.ReduceScatter:
		needs = Switching{Reduce: true}
	default:
		has = false
	}
	if !has || needs.Multicast && !at.Switch.Multicast || needs.Reduce && !at.Switch.Reduce {
		return math.Inf(1)
	}
	return float64(l.file.NVLS.Base) + micros(bytes, float64(l.file.NVLS.Bandwidth)*n/steps)
}

// Carriage returns the protocol and the channels that the library would give an algorithm; false when it has no such
// algorithm.
func (l *Library) Carriage(c collective.Kind, algorithm string, at Layout, bytes int64) (how Carriage, ok bool) {
	world := at.World
	name, how := l.Choose(c, at, bytes)
	if name == algorithm {
		return how, true
	}
	best := math.Inf(1)
	for k := range topology.ProtocolKind(topology.Protocols) {
		cost := math.Inf(1)
		switch {
		case algorithm == ringOf(c):
			cost = l.ringCost(c, world, bytes, k)
		case algorithm == treeName && c == collective.AllReduce:
			cost = l.treeCost(world, bytes, k)
		}
		if cost < best {
			best, how.Protocol, ok = cost, k, true
		}
	}
	how.Channels = l.Channels(how.Protocol, world, bytes)
	return how, ok
}

// treeName is the algorithm that stands for the library's trees.
const treeName = "double_binary_tree"

// Ring is the name of the algorithm by which the library goes round a ring, or sends straight where it has no ring.
func (l *Library) Ring(c collective.Kind) string {
	switch c {
	case collective.AllToAll, collective.Gather, collective.Scatter:
		return "direct"
	}
	return ringOf(c)
}

// ringOf is the name of the algorithm that goes round a ring.
func ringOf(c collective.Kind) string {
	if c.Rooted() {
		return "chain"
	}
	return "ring"
}

// Channels is how many channels a call has.
func (l *Library) Channels(k topology.ProtocolKind, world int, bytes int64) int {
	grain := int64(l.file.Threads.of(k)) * int64(l.file.BytesAThread.of(k))
	if k == topology.LL {
		grain *= int64(world)
	}
	return int(min(max(bytes/grain, 1), int64(l.file.Channels)))
}

// ringCost is the time in µs that the library expects of a ring.
func (l *Library) ringCost(c collective.Kind, world int, bytes int64, k topology.ProtocolKind) float64 {
	n := float64(world)
	steps, hops := n-1, n-1
	switch c {
	case collective.AllReduce:
		steps, hops = 2*(n-1), 2*(n-1)
	case collective.Broadcast, collective.Reduce:
		steps, hops = n, 1
	}
	r := &l.file.Ring
	return r.Base.of(k) + hops*r.Hop.of(k) + micros(bytes, l.bandwidth(r, k)*n/steps)
}

// treeCost is the time in µs that the library expects of an all_reduce by trees.
func (l *Library) treeCost(world int, bytes int64, k topology.ProtocolKind) float64 {
	t := &l.file.Tree
	bandwidth := l.bandwidth(&t.costs, k) / 2
	if place := bits.Len64(uint64(bytes)/64) - 1; place >= 0 {
		if factors := t.Correction.of(k); place < len(factors) {
			bandwidth *= float64(factors[place])
		}
	}
	hops := 2 * float64(world-1) // in one node the tree is a chain
	return t.Base.of(k) + hops*t.Hop.of(k) + micros(bytes, bandwidth)
}

// bandwidth is what the library expects of a protocol, in GB/s.
func (l *Library) bandwidth(c *costs, k topology.ProtocolKind) float64 {
	rings := float64(l.file.Rings.Count)
	b := rings * float64(l.file.Rings.Bandwidth) * c.Share.of(k)
	if most := c.Most.of(k); most > 0 {
		b = min(b, most)
	}
	if most := c.MostARing.of(k); most > 0 {
		b = min(b, rings*most)
	}
	return b
}

// micros is how long bytes take at so many GB/s, in µs.
func micros(bytes int64, gbps float64) float64 { return float64(bytes) / gbps / 1e3 }
