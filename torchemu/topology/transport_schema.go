package topology

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/schema"
)

// transportConfig is how a library of collectives moves data, as measured; see [Transport]. Nothing in it has a default
// from presets/default.yaml: a topology without it moves messages by its links' own figures.
type transportConfig struct {
	Library *text            `yaml:"library"`
	SIP     *linkClassConfig `yaml:"sip"`     // between SIPs of a node
	Network *linkClassConfig `yaml:"network"` // between nodes
}

type linkClassConfig struct {
	Channels  count            `yaml:"channels"`
	Launch    span             `yaml:"launch"`
	Skew      span             `yaml:"skew"`
	Protocols protocolsConfig  `yaml:"protocols"`
	P2P       *p2pConfig       `yaml:"p2p"`
	Unaligned *unalignedConfig `yaml:"unaligned"`
}

type protocolsConfig struct {
	LL     *protocolConfig `yaml:"ll"`
	LL128  *protocolConfig `yaml:"ll128"`
	Simple *protocolConfig `yaml:"simple"`
}

type protocolConfig struct {
	Start            span       `yaml:"start"`
	Hop              span       `yaml:"hop"`
	Op               span       `yaml:"op"`
	Bandwidth        bandwidth  `yaml:"bandwidth"`
	ChannelBandwidth *bandwidth `yaml:"channel_bandwidth"`
	Chunk            byteCount  `yaml:"chunk"`
	RootedChunk      *byteCount `yaml:"rooted_chunk"`
	Slices           *count     `yaml:"slices"`
	SliceMin         byteCount  `yaml:"slice_min"`
	Finish           factor     `yaml:"finish"`
	FinishF16        *factor    `yaml:"finish_f16"`
	FinishNext       *factor    `yaml:"finish_next"`
}

type p2pConfig struct {
	Start            span      `yaml:"start"`
	StartSimple      span      `yaml:"start_simple"`
	Channels         count     `yaml:"channels"`
	ChannelBandwidth bandwidth `yaml:"channel_bandwidth"`
	Chunk            byteCount `yaml:"chunk"`
	Finish           factor    `yaml:"finish"`
	LLBytes          byteCount `yaml:"ll_bytes"`
	LLShare          *factor   `yaml:"ll_share"`
}

type unalignedConfig struct {
	LLStart span          `yaml:"ll_start"`
	LL      factor        `yaml:"ll"` // this and the factors below are ns per kB
	Op      span          `yaml:"op"`
	Simple  misalignments `yaml:"simple"`
	Reduce  factor        `yaml:"reduce"`
	P2P     misalignments `yaml:"p2p"` // on one channel
}

// misalignments are ns per kB, by the power of two that blocks begin at multiples of.
type misalignments struct {
	At4 factor `yaml:"4"`
	At8 factor `yaml:"8"`
}

// byteCount is a number of bytes; 0 means not set.
type byteCount int64

func (b *byteCount) Parse(n *yaml.Node) error {
	v, err := schema.WholeNumber(n, 1, 1<<40)
	*b = byteCount(v)
	return err
}

func (b *byteCount) Show() any {
	if *b == 0 {
		return nil
	}
	return int(*b)
}

// factor is a number without a unit, or in the unit that its key's comment names; it is 0 where it is not set.
type factor float64

func (f *factor) Parse(n *yaml.Node) error {
	return number(n, (*float64)(f), "a number", 0, 1000)
}

func (f *factor) Show() any { return unlessZero(float64(*f)) }

// span is a duration that is 0 where it is not set.
type span duration

func (s *span) Parse(n *yaml.Node) error { return (*duration)(s).Parse(n) }
func (s *span) Show() any                { return unlessZero(float64(*s)) }
func (s span) picoseconds() int64        { return duration(s).picoseconds() }

func unlessZero(v float64) any {
	if v == 0 {
		return nil
	}
	return v
}

// checkTransport looks for what each class of links must have.
func (c checker) checkTransport() {
	t := c.Transport
	if t == nil || !c.Sound("transport") {
		return
	}
	if t.SIP == nil {
		c.Report("transport.sip", "is missing")
	} else {
		c.checkClass("transport.sip", t.SIP)
	}
	switch {
	case t.Network != nil:
		c.checkClass("transport.network", t.Network)
	case c.Sound(pathNodes) && c.nodes() > 1:
		c.Report("transport.network", "is missing; there are %d nodes (%s)", c.nodes(), pathNodes)
	}
}

func (c checker) checkClass(path string, l *linkClassConfig) {
	if !c.Sound(path, path+".protocols", path+".p2p") {
		return
	}
	c.require(path, "channels")
	if l.Protocols.Simple == nil {
		c.Report(path+".protocols.simple", "is missing; the other protocols are for small messages")
	}
	for name, p := range l.Protocols.byName() {
		c.require(path+".protocols."+name, "bandwidth", "chunk", "hop")
		if p.Slices != nil && p.SliceMin == 0 && *p.Slices > 1 {
			c.require(path+".protocols."+name, "slice_min")
		}
	}
	if l.P2P != nil {
		c.require(path+".p2p", "channels", "channel_bandwidth", "chunk")
	}
	if l.P2P != nil && l.P2P.LLBytes > 0 && l.Protocols.LL == nil {
		c.Report(path+".p2p.ll_bytes", "needs %s.protocols.ll", path)
	}
}

func (c checker) require(path string, keys ...string) {
	for _, key := range keys {
		if at := path + "." + key; !c.Has(at) && c.Sound(at) {
			c.Report(at, "is missing")
		}
	}
}

// byName yields the protocols that are set, in the order of their kinds.
func (p *protocolsConfig) byName() func(yield func(string, *protocolConfig) bool) {
	return func(yield func(string, *protocolConfig) bool) {
		for i, one := range [Protocols]*protocolConfig{p.Simple, p.LL128, p.LL} {
			if one != nil && !yield(ProtocolKind(i).String(), one) {
				return
			}
		}
	}
}

// ParseProtocol finds a protocol by its name.
func ParseProtocol(name string) (ProtocolKind, error) {
	for k, known := range protocolNames {
		if known == name {
			return ProtocolKind(k), nil
		}
	}
	return 0, fmt.Errorf("unknown protocol %q: choose one of simple, ll128, ll", name)
}
