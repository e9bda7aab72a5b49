package topology

import "math"

// Transport is how a library of collectives moves data between SIPs: what was measured on a machine, beside the figures
// of its links. Times are picoseconds, rates bytes per second.
type Transport struct {
	Library      string     // the library that was measured, whose choices hold unless ccl.yaml says otherwise; or ""
	SIP, Network *LinkClass // Network is nil in systems of one node
}

// LinkClass is how data moves over one class of links.
type LinkClass struct {
	Channels int   // blocks of threads that share out a collective
	Launch   int64 // from the end of one collective to the first operation of the next one on its stream
	Skew     int64 // what ranks are apart at the start, see [LinkClass.SkewOf]

	Protocols [Protocols]*Protocol // nil: the machine has no such protocol
	P2P       *PointToPoint        // nil: point to point goes by protocol simple
	Unaligned Unaligned
}

// ProtocolKind is a way to tell the receiver that data is there.
type ProtocolKind uint8

// The protocols, in the order in which they come into use as messages shrink.
const (
	Simple ProtocolKind = iota // a fence and a counter after every slice
	LL128                      // a flag in every 128 bytes
	LL                         // a flag beside every four bytes

	Protocols = iota
)

var protocolNames = [Protocols]string{"simple", "ll128", "ll"}

// String is the protocol's name in topology files.
func (k ProtocolKind) String() string { return protocolNames[k] }

// Protocol is the coefficients of a protocol.
type Protocol struct {
	Start            int64   // of a call
	Hop              int64   // from when a slice has left until the receiver can use it
	Op               int64   // of the sender's engine for each slice, beside the transmission
	Bandwidth        int64   // of payload, when the whole link is there for it
	ChannelBandwidth int64   // of payload on one channel; 0: no limit
	Chunk            int64   // payload of a channel in a loop, for each rank's block
	RootedChunk      int64   // the same where the vector is not in blocks
	Slices           int     // pieces that a chunk is sent in
	SliceMin         int64   // a channel's piece is no smaller
	Finish           float64 // what a rank does to bytes that it does not send on takes this share of their transmission
	FinishF16        float64 // of elements of two bytes that are reduced
	FinishNext       float64 // share of it that loops after the first take: channels are not in step any more
}

// PointToPoint is the coefficients of messages between pairs: all_to_all, gather, scatter.
type PointToPoint struct {
	Start            int64 // of a call
	StartSimple      int64 // of a call by protocol simple, in addition
	Channels         int   // of a rank to all peers
	ChannelBandwidth int64
	Chunk            int64   // of a channel: the receiver still has to copy the last one when all has arrived
	Finish           float64 // that copy, see [Protocol]
	LLBytes          int64   // messages up to this size go by protocol LL
	LLShare          float64 // of LL's bandwidth that they have
}

// Unaligned is what blocks cost that do not begin at a multiple of 16 bytes: ps for a call, a piece or a byte.
type Unaligned struct {
	LLStart int64
	LL      float64
	Op      int64      // of a piece that is sent by protocol simple
	Simple  [2]float64 // of blocks that begin at multiples of at most 4 bytes, of 8
	Reduce  float64    // of a byte that is reduced by protocol simple and not sent on
	P2P     [2]float64 // of a message's bytes on one channel
}

// Transport is nil in a topology that has none.
func (t *Topology) Transport() *Transport { return t.transport }

func newTransport(c *transportConfig) *Transport {
	if c == nil {
		return nil
	}
	t := &Transport{SIP: newLinkClass(c.SIP), Network: newLinkClass(c.Network)}
	if c.Library != nil {
		t.Library = string(*c.Library)
	}
	return t
}

func newLinkClass(c *linkClassConfig) *LinkClass {
	if c == nil {
		return nil
	}
	l := &LinkClass{Channels: int(c.Channels), Launch: c.Launch.picoseconds(), Skew: c.Skew.picoseconds()}
	for i, p := range [Protocols]*protocolConfig{c.Protocols.Simple, c.Protocols.LL128, c.Protocols.LL} {
		l.Protocols[i] = newProtocol(p)
	}
	if c.P2P != nil {
		l.P2P = newPointToPoint(c.P2P)
	}
	if u := c.Unaligned; u != nil {
		l.Unaligned = Unaligned{
			LLStart: u.LLStart.picoseconds(), LL: float64(u.LL), Op: u.Op.picoseconds(),
			Simple: u.Simple.perByte(), Reduce: float64(u.Reduce), P2P: u.P2P.perByte(),
		}
	}
	return l
}

func newProtocol(c *protocolConfig) *Protocol {
	if c == nil {
		return nil
	}
	p := &Protocol{
		Start: c.Start.picoseconds(), Hop: c.Hop.picoseconds(), Op: c.Op.picoseconds(),
		Bandwidth: c.Bandwidth.bytesPerSecond(), Chunk: int64(c.Chunk), RootedChunk: int64(c.Chunk),
		Slices: 1, SliceMin: int64(c.SliceMin), Finish: float64(c.Finish), FinishF16: float64(c.Finish), FinishNext: 1,
	}
	if c.ChannelBandwidth != nil {
		p.ChannelBandwidth = c.ChannelBandwidth.bytesPerSecond()
	}
	if c.RootedChunk != nil {
		p.RootedChunk = int64(*c.RootedChunk)
	}
	if c.Slices != nil {
		p.Slices = int(*c.Slices)
	}
	if c.FinishF16 != nil {
		p.FinishF16 = float64(*c.FinishF16)
	}
	if c.FinishNext != nil {
		p.FinishNext = float64(*c.FinishNext)
	}
	return p
}

func newPointToPoint(c *p2pConfig) *PointToPoint {
	p := &PointToPoint{
		Start: c.Start.picoseconds(), StartSimple: c.StartSimple.picoseconds(), Channels: int(c.Channels),
		ChannelBandwidth: c.ChannelBandwidth.bytesPerSecond(), Chunk: int64(c.Chunk), Finish: float64(c.Finish),
		LLBytes: int64(c.LLBytes), LLShare: 1,
	}
	if c.LLShare != nil {
		p.LLShare = float64(*c.LLShare)
	}
	return p
}

// perByte turns ns per kB into ps per byte, which is the same number.
func (m misalignments) perByte() [2]float64 { return [2]float64{float64(m.At4), float64(m.At8)} }

// SkewOf is how much later than the first the last of n ranks starts, beyond what it is for two: the range of n hosts
// whose starts are spread by chance grows as √(2 ln n).
func (l *LinkClass) SkewOf(n int) int64 {
	if n < 3 {
		return 0
	}
	return int64(math.Round(float64(l.Skew) * (math.Sqrt(2*math.Log(float64(n))) - math.Sqrt(2*math.Ln2))))
}

// WithTransport is the same topology with another transport, which must not change any more.
func (t *Topology) WithTransport(transport *Transport) *Topology {
	other := *t
	other.transport = transport
	return &other
}

// Clone is a copy that shares nothing with the transport.
func (t *Transport) Clone() *Transport {
	return &Transport{Library: t.Library, SIP: t.SIP.clone(), Network: t.Network.clone()}
}

func (l *LinkClass) clone() *LinkClass {
	if l == nil {
		return nil
	}
	other := *l
	for k, p := range l.Protocols {
		if p != nil {
			one := *p
			other.Protocols[k] = &one
		}
	}
	if l.P2P != nil {
		p2p := *l.P2P
		other.P2P = &p2p
	}
	return &other
}

// Spec is the tree of a transport section with these figures, in the file's own keys and units.
func (t *Transport) Spec() map[string]any {
	tree := map[string]any{"sip": t.SIP.spec()}
	if t.Library != "" {
		tree["library"] = t.Library
	}
	if t.Network != nil {
		tree["network"] = t.Network.spec()
	}
	return tree
}

func (l *LinkClass) spec() map[string]any {
	protocols := map[string]any{}
	for k, p := range l.Protocols {
		if p != nil {
			protocols[ProtocolKind(k).String()] = p.spec()
		}
	}
	tree := map[string]any{
		"channels": l.Channels, "launch": nano(l.Launch), "skew": nano(l.Skew), "protocols": protocols,
	}
	if l.P2P != nil {
		tree["p2p"] = l.P2P.spec()
	}
	if u := l.Unaligned; u != (Unaligned{}) {
		tree["unaligned"] = map[string]any{
			"ll_start": nano(u.LLStart), "ll": u.LL, "op": nano(u.Op), "reduce": u.Reduce,
			"simple": map[string]any{"4": u.Simple[0], "8": u.Simple[1]}, "p2p": map[string]any{"4": u.P2P[0], "8": u.P2P[1]},
		}
	}
	return tree
}

func (p *Protocol) spec() map[string]any {
	tree := map[string]any{
		"start": nano(p.Start), "hop": nano(p.Hop), "op": nano(p.Op), "bandwidth": giga(p.Bandwidth),
		"chunk": int(p.Chunk), "rooted_chunk": int(p.RootedChunk), "slices": p.Slices,
		"finish": p.Finish, "finish_f16": p.FinishF16, "finish_next": p.FinishNext,
	}
	if p.ChannelBandwidth > 0 {
		tree["channel_bandwidth"] = giga(p.ChannelBandwidth)
	}
	if p.SliceMin > 0 {
		tree["slice_min"] = int(p.SliceMin)
	}
	return tree
}

func (p *PointToPoint) spec() map[string]any {
	tree := map[string]any{
		"start": nano(p.Start), "start_simple": nano(p.StartSimple), "channels": p.Channels,
		"channel_bandwidth": giga(p.ChannelBandwidth), "chunk": int(p.Chunk), "finish": p.Finish, "ll_share": p.LLShare,
	}
	if p.LLBytes > 0 {
		tree["ll_bytes"] = int(p.LLBytes)
	}
	return tree
}

func nano(ps int64) float64 { return float64(ps) / 1e3 }

func giga(bytesPerSecond int64) float64 { return float64(bytesPerSecond) / 1e9 }
