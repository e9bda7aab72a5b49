package ccl

import (
	"math"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Carriage is how a library moves the data of one call. Only topologies with a transport section know of it.
type Carriage struct {
	Protocol topology.ProtocolKind // of all_to_all, gather and scatter the size decides
	Channels int                   // that share out the call; 0: all that the transport has
	Message  bool                  // of a rank's own, and no part of a collective

	// ByProtocol says that gather and scatter go by the Protocol, too, instead of as messages between pairs.
	ByProtocol bool
}

// carrier is how data moves between one pair of ranks in one call.
type carrier struct {
	link      *topology.LinkClass
	channels  int
	rate      float64 // bytes of payload per second
	wire      float64 // bytes on the wire for one of payload
	hop, op   int64   // ps
	off       misplaced
	finish    float64 // ps for a byte that is not forwarded
	next      float64 // share of that in loops after the first
	finishes  int64   // bytes of a step that are finished at most
	slices    int64
	sliceMin  int64
	narrowest int64 // bandwidth of the narrowest link
}

// wireRate is the rate on the wire.
func (c *carrier) wireRate() int64 { return int64(math.Round(c.rate * c.wire)) }

// pieces is how many pieces so many bytes are sent in.
func (c *carrier) pieces(bytes int64) int64 {
	if bytes == 0 {
		return 0
	}
	piece := max(ceilDiv(bytes, c.slices), c.sliceMin)
	return ceilDiv(bytes, piece)
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// misplaced is what steps cost whose blocks do not begin at multiples of 16 bytes.
type misplaced struct {
	op      int64                  // ps that a piece takes the engine beside its transmission
	perByte [misalignments]float64 // ps that a byte does
	kept    float64                // ps for a byte that is not forwarded, beside finish
}

// piece is what a piece costs beside its transmission.
func (m *misplaced) piece(bytes int64, where misalignment) int64 {
	if where == aligned {
		return 0
	}
	return m.op + int64(math.Round(float64(bytes)*m.perByte[where]))
}

// misalignment is where a block begins that a step moves.
type misalignment uint8

const (
	aligned       misalignment = iota // at a multiple of 16 bytes
	offBy8                            // at one of 8 only
	offBy4                            // at one of 4 or less
	misalignments = iota
)

// misalignmentOf is that of a place, in bytes.
func misalignmentOf(place int64) misalignment {
	switch {
	case place%16 == 0:
		return aligned
	case place%8 == 0:
		return offBy8
	}
	return offBy4
}

// call is what a Carriage comes to for one launch.
type call struct {
	Launch
	world     int64
	transport *topology.Transport
	spread    bool // over nodes
	aligned   int  // all blocks begin at multiples of so many bytes: 16 is as good as more
	largest   int64
}

func newCall(t *topology.Topology, l Launch) *call {
	c := &call{Launch: l, world: int64(l.Schedule.World), transport: t.Transport(), aligned: 16}
	for _, d := range l.Devices {
		c.spread = c.spread || t.Device(d).Node != t.Device(l.Devices[0]).Node
	}
	blocks := l.Schedule.Collective.Blocks(l.Schedule.World)
	switch {
	case l.Carriage.Message: // a tensor of its own, which begins where an allocation does
	case blocks > 0 || l.Schedule.Collective == collective.AllReduce:
		c.aligned = alignment(c.blocks(blocks))
	}
	return c
}

// blocks yields where each block that may differ in size ends, in bytes.
func (c *call) blocks(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		if c.Sizes == nil {
			yield(c.Elems / max(n, c.Schedule.World) * c.ElemSize)
			return
		}
		for _, size := range c.Sizes {
			if !yield(size * c.ElemSize) {
				return
			}
		}
	}
}

// alignment is the greatest power of two, up to 16, that divides all sizes.
func alignment(sizes func(yield func(int) bool)) int {
	all := 16
	for size := range sizes {
		all |= size
	}
	return all & -all
}

// home is the class of links that the call as a whole goes by.
func (c *call) home() *topology.LinkClass {
	if c.spread {
		return c.transport.Network
	}
	return c.transport.SIP
}

// pairwise says whether the call is messages between pairs.
func (c *call) pairwise() bool {
	return isPairwise(c.Schedule.Collective) && c.home().P2P != nil && !c.Carriage.ByProtocol
}

// isWaited says whether ranks wait for one another. Those that only send to a root, or only receive from one, do not: they
// begin the next call while others are at this one.
func (c *call) isWaited() bool {
	return !c.pairwise() || c.Schedule.Collective == collective.AllToAll
}

// isPairwise says whether libraries make a collective of messages between pairs.
func isPairwise(c collective.Kind) bool {
	switch c {
	case collective.AllToAll, collective.Gather, collective.Scatter:
		return true
	}
	return false
}

// isChained says whether the whole vector goes from rank to rank, and not in blocks: its loops are short, for they are
// the pipeline.
func (c *call) isChained() bool {
	return c.Schedule.Collective.Rooted() && c.Schedule.Chunks() < max(3, c.Schedule.World-1)
}

// isSmall says whether all messages between pairs go by protocol LL.
func (c *call) isSmall() bool {
	return c.largest <= c.home().P2P.LLBytes && c.home().Protocols[topology.LL] != nil
}

// protocol is the protocol of a class: the call's, if the class has it.
func (c *call) protocol(link *topology.LinkClass) (*topology.Protocol, topology.ProtocolKind) {
	if p := link.Protocols[c.Carriage.Protocol]; p != nil {
		return p, c.Carriage.Protocol
	}
	return link.Protocols[topology.Simple], topology.Simple
}

// start is the time from when a rank joins until its first operation, in ps.
func (c *call) start() int64 {
	home := c.home()
	start := home.Launch
	if c.isWaited() {
		start += home.SkewOf(int(c.world))
	}
	if c.pairwise() {
		start += home.P2P.Start
		if !c.isSmall() {
			start += home.P2P.StartSimple
		} else if c.aligned < 16 {
			start += home.Unaligned.LLStart
		}
		return start
	}
	p, kind := c.protocol(home)
	if kind == topology.LL && c.aligned < 16 && c.Schedule.Collective != collective.ReduceScatter {
		start += home.Unaligned.LLStart
	}
	return start + p.Start
}

// loop is how many bytes of the whole vector the call carries at a time.
func (c *call) loop() int64 {
	if c.pairwise() {
		return math.MaxInt64
	}
	p, _ := c.protocol(c.home())
	channels := int64(c.channels(c.home()))
	if c.isChained() {
		return channels * p.RootedChunk
	}
	return c.world * channels * p.Chunk
}

func (c *call) channels(link *topology.LinkClass) int {
	if c.Carriage.Channels > 0 {
		return min(c.Carriage.Channels, link.Channels)
	}
	return link.Channels
}

// carrier is how data moves between a pair of ranks over links of a class. The largest message between them has most
// bytes, and its sender sends to so many peers.
func (c *call) carrier(link *topology.LinkClass, narrowest, most int64, peers int) carrier {
	if c.pairwise() && link.P2P != nil {
		return c.pairCarrier(link, narrowest, most, peers)
	}
	p, kind := c.protocol(link)
	channels := c.channels(link)
	rate := float64(p.Bandwidth)
	if p.ChannelBandwidth > 0 {
		rate = min(rate, float64(channels)*float64(p.ChannelBandwidth))
	}
	finish := p.Finish
	if c.ElemSize == 2 && c.Schedule.Collective.Reduces() {
		finish = p.FinishF16
	}
	one := carrier{
		link: link, channels: channels, narrowest: narrowest, rate: rate,
		wire: float64(narrowest) / float64(p.Bandwidth), hop: p.Hop, op: p.Op,
		off: c.unaligned(link, kind), finish: finish * 1e12 / float64(p.Bandwidth), finishes: math.MaxInt64,
		next: p.FinishNext, slices: int64(p.Slices), sliceMin: max(1, p.SliceMin*int64(channels)),
	}
	if c.isChained() {
		one.slices = 1 // its loops are the pipeline
	}
	return one
}

// unaligned is what blocks cost off 16 bytes. An all_gather copies whatever it moves from or to such a place. A
// reduce_scatter reads there what it reduces, which waits for the link unless the result stays.
func (c *call) unaligned(link *topology.LinkClass, kind topology.ProtocolKind) misplaced {
	var m misplaced
	switch of, u := c.Schedule.Collective, &link.Unaligned; {
	case of == collective.AllGather && kind == topology.LL:
		m.perByte[offBy8], m.perByte[offBy4] = u.LL, u.LL
	case of == collective.AllGather:
		m.perByte[offBy8], m.perByte[offBy4] = u.Simple[1], u.Simple[0]
		if kind == topology.Simple {
			m.op = u.Op
		}
	case of == collective.ReduceScatter && kind == topology.Simple:
		m.kept = u.Reduce
	}
	return m
}

// A channel between two ranks takes at least pairGrain of a message, and where it would take more than pairPart there
// are more channels, up to mostPairChannels. These are NCCL's.
const (
	pairGrain        = 64 << 10
	pairPart         = 16 << 20
	mostPairChannels = 32
)

// pairCarrier is carrier for messages between pairs.
func (c *call) pairCarrier(link *topology.LinkClass, narrowest, most int64, peers int) carrier {
	p2p, simple := link.P2P, link.Protocols[topology.Simple]
	one := carrier{
		link: link, narrowest: narrowest, channels: 1, slices: 1, sliceMin: 1, next: 1,
		rate: float64(simple.Bandwidth), wire: float64(narrowest) / float64(simple.Bandwidth),
	}
	if c.isSmall() && link.Protocols[topology.LL] != nil {
		one.rate = float64(link.Protocols[topology.LL].Bandwidth) * p2p.LLShare
		one.wire = float64(narrowest) / one.rate
		return one
	}
	if c.Carriage.Message {
		return one // no block of its own is copied meanwhile, for which the rest stands
	}
	one.channels = pairChannels(p2p.Channels, int(c.world), most)
	all := float64(min(one.channels*max(1, peers), p2p.Channels)) // messages to several peers share channels
	one.rate = 1 / (1/one.rate + 1/(float64(p2p.ChannelBandwidth)*all))
	one.finish = p2p.Finish * 1e12 / float64(simple.Bandwidth)
	one.finishes = p2p.Chunk * int64(one.channels)
	off := link.Unaligned.P2P
	one.off.perByte = [misalignments]float64{offBy8: off[1] / all, offBy4: off[0] / all}
	return one
}

// pairChannels is how many of a rank's channels a message to one of its peers has.
func pairChannels(all, world int, bytes int64) int {
	n := all
	for n > 1 && n*world > all {
		n /= 2
	}
	n = int(min(int64(n), max(1, ceilDiv(bytes, pairGrain))))
	for n*2 <= mostPairChannels && bytes/int64(n) > pairPart {
		n *= 2
	}
	return n
}
