package calibrate

import (
	"math"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu/topology"
)

// coefficient is one figure of a transport that can be fitted: a positive number in the file's unit.
type coefficient struct {
	path string // in a topology file, below transport
	get  func(t *topology.Transport) float64
	set  func(t *topology.Transport, v float64)

	// affects says whether the case's time depends on it.
	affects func(c *Case) bool
}

// A place is where a figure is kept: times as picoseconds, rates as bytes per second, or the number itself.
type place struct {
	whole func(t *topology.Transport) *int64
	real  func(t *topology.Transport) *float64
	unit  float64

	follow func(t *topology.Transport, ratio float64) // changes what keeps its ratio to it; may be nil
}

func (p place) get(t *topology.Transport) float64 {
	if p.whole != nil {
		return float64(*p.whole(t)) / p.unit
	}
	return *p.real(t)
}

func (p place) set(t *topology.Transport, v float64) {
	if before := p.get(t); p.follow != nil && before > 0 {
		p.follow(t, v/before)
	}
	if p.whole != nil {
		*p.whole(t) = int64(math.Round(v * p.unit))
		return
	}
	*p.real(t) = v
}

func nanoseconds(of func(t *topology.Transport) *int64) place { return place{whole: of, unit: 1e3} }
func gigabytes(of func(t *topology.Transport) *int64) place   { return place{whole: of, unit: 1e9} }
func plain(of func(t *topology.Transport) *float64) place     { return place{real: of} }

func (p place) named(path string, affects func(c *Case) bool) coefficient {
	return coefficient{path, p.get, p.set, affects}
}

func always(*Case) bool        { return true }
func isPairwise(c *Case) bool  { return c.Pairwise }
func isUnaligned(c *Case) bool { return c.blockAlignment() < 16 }

// of says whether a case goes by a protocol, or could: messages between pairs are Simple or LL by their size.
func of(k topology.ProtocolKind) func(c *Case) bool {
	return func(c *Case) bool { return c.Pairwise && k != topology.LL128 || !c.Pairwise && c.Protocol == k }
}

// blockAlignment is the greatest power of two that the blocks of a row begin at multiples of.
func (r *Row) blockAlignment() int64 {
	block := r.Bytes / int64(r.World) / int64(r.ElemSize) * int64(r.ElemSize)
	return block & -block
}

// coefficients lists what is fitted of a transport: of the parts that it has. What two bytes an element change is fitted
// only where some case has them.
func coefficients(t *topology.Transport, cases []Case) []coefficient {
	return slices.DeleteFunc(every(t), func(c coefficient) bool {
		return strings.HasSuffix(c.path, "_f16") && !slices.ContainsFunc(cases, func(one Case) bool { return c.affects(&one) })
	})
}

func every(t *topology.Transport) []coefficient {
	list := []coefficient{
		nanoseconds(func(t *topology.Transport) *int64 { return &t.SIP.Launch }).named("sip.launch", always),
		nanoseconds(func(t *topology.Transport) *int64 { return &t.SIP.Skew }).
			named("sip.skew", func(c *Case) bool { return c.World > 2 }),
	}
	for k := range topology.ProtocolKind(topology.Protocols) {
		if t.SIP.Protocols[k] != nil {
			list = append(list, ofProtocol(t, k)...)
		}
	}
	if t.SIP.P2P != nil {
		list = append(list, ofPairs()...)
	}
	return append(list, ofUnaligned(t)...)
}

func ofProtocol(t *topology.Transport, k topology.ProtocolKind) []coefficient {
	path := "sip.protocols." + k.String() + "."
	at := func(t *topology.Transport) *topology.Protocol { return t.SIP.Protocols[k] }
	list := []coefficient{
		nanoseconds(func(t *topology.Transport) *int64 { return &at(t).Hop }).named(path+"hop", of(k)),
		gigabytes(func(t *topology.Transport) *int64 { return &at(t).Bandwidth }).named(path+"bandwidth", of(k)),
		finishOf(at).named(path+"finish", of(k)),
		plain(func(t *topology.Transport) *float64 { return &at(t).FinishF16 }).named(path+"finish_f16", func(c *Case) bool {
			return of(k)(c) && c.ElemSize == 2 && c.Collective.Reduces()
		}),
	}
	for _, one := range []coefficient{
		nanoseconds(func(t *topology.Transport) *int64 { return &at(t).Start }).named(path+"start", of(k)),
		nanoseconds(func(t *topology.Transport) *int64 { return &at(t).Op }).named(path+"op", of(k)),
		gigabytes(func(t *topology.Transport) *int64 { return &at(t).ChannelBandwidth }).named(path+"channel_bandwidth", of(k)),
	} {
		if one.get(t) > 0 {
			list = append(list, one)
		}
	}
	if at(t).FinishNext < 1 {
		list = append(list, plain(func(t *topology.Transport) *float64 { return &at(t).FinishNext }).named(path+"finish_next", of(k)))
	}
	return list
}

// finishOf is a protocol's finish. That of elements of two bytes keeps its ratio to it.
func finishOf(at func(t *topology.Transport) *topology.Protocol) place {
	p := plain(func(t *topology.Transport) *float64 { return &at(t).Finish })
	p.follow = func(t *topology.Transport, ratio float64) { at(t).FinishF16 *= ratio }
	return p
}

func ofPairs() []coefficient {
	return []coefficient{
		nanoseconds(func(t *topology.Transport) *int64 { return &t.SIP.P2P.Start }).named("sip.p2p.start", isPairwise),
		nanoseconds(func(t *topology.Transport) *int64 { return &t.SIP.P2P.StartSimple }).named("sip.p2p.start_simple", isPairwise),
		gigabytes(func(t *topology.Transport) *int64 { return &t.SIP.P2P.ChannelBandwidth }).
			named("sip.p2p.channel_bandwidth", isPairwise),
		plain(func(t *topology.Transport) *float64 { return &t.SIP.P2P.Finish }).named("sip.p2p.finish", isPairwise),
		plain(func(t *topology.Transport) *float64 { return &t.SIP.P2P.LLShare }).named("sip.p2p.ll_share", isPairwise),
	}
}

func ofUnaligned(t *topology.Transport) []coefficient {
	var list []coefficient
	for _, one := range []coefficient{
		nanoseconds(func(t *topology.Transport) *int64 { return &t.SIP.Unaligned.LLStart }).named("sip.unaligned.ll_start", isUnaligned),
		plain(func(t *topology.Transport) *float64 { return &t.SIP.Unaligned.LL }).named("sip.unaligned.ll", isUnaligned),
		nanoseconds(func(t *topology.Transport) *int64 { return &t.SIP.Unaligned.Op }).named("sip.unaligned.op", isUnaligned),
		plain(func(t *topology.Transport) *float64 { return &t.SIP.Unaligned.Reduce }).named("sip.unaligned.reduce", isUnaligned),
		plain(func(t *topology.Transport) *float64 { return &t.SIP.Unaligned.Simple[0] }).named("sip.unaligned.simple.4", isUnaligned),
		plain(func(t *topology.Transport) *float64 { return &t.SIP.Unaligned.Simple[1] }).named("sip.unaligned.simple.8", isUnaligned),
		plain(func(t *topology.Transport) *float64 { return &t.SIP.Unaligned.P2P[0] }).named("sip.unaligned.p2p.4", isUnaligned),
		plain(func(t *topology.Transport) *float64 { return &t.SIP.Unaligned.P2P[1] }).named("sip.unaligned.p2p.8", isUnaligned),
	} {
		if one.get(t) > 0 {
			list = append(list, one)
		}
	}
	return list
}
