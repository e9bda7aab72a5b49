package topology_test

import (
	"reflect"
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

const nothingBeside = sips4 + "transport:\n  sip:\n    channels: 24\n    protocols:\n      simple: {hop: 1, bandwidth: 2, chunk: 3}\n"

// Every kind of mistake in a transport section.
func TestTransportProblems(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", sips4 + "transport:\n", "t.yaml:2: transport: must be a mapping with the keys library, sip, network; not nothing"},
		{"no class", sips4 + "transport: {}\n", "t.yaml:2: transport.sip: is missing"},
		{"no channels", sips4 + "transport:\n  sip:\n    protocols: {simple: {hop: 1, bandwidth: 2, chunk: 3}}\n", "t.yaml:3: transport.sip.channels: is missing"},
		{"no protocol", sips4 + "transport: {sip: {channels: 2}}\n", "t.yaml:2: transport.sip.protocols.simple: is missing; the other protocols are for small messages"},
		{"only ll", sips4 + "transport:\n  sip:\n    channels: 2\n    protocols:\n      ll: {hop: 1, bandwidth: 2, chunk: 3}\n", "t.yaml:5: transport.sip.protocols.simple: is missing; the other protocols are for small messages"},
		{"half a protocol", sips4 + "transport: {sip: {channels: 2, protocols: {simple: {\nhop: 1}}}}\n", "t.yaml has 2 problems:\n  t.yaml:2: transport.sip.protocols.simple.bandwidth: is missing\n  t.yaml:2: transport.sip.protocols.simple.chunk: is missing"},
		{"slices", sips4 + "transport: {sip: {channels: 2, protocols: {simple: {hop: 1, bandwidth: 2, chunk: 3,\nslices: 2}}}}\n", "t.yaml:2: transport.sip.protocols.simple.slice_min: is missing"},
		{"slip", nothingBeside + "      ll: {hopp: 1, hop: 1, bandwidth: 2, chunk: 3}\n", "t.yaml:7: transport.sip.protocols.ll.hopp: is not a key here; did you mean hop?"},
		{"negative", nothingBeside + "    launch: -1\n", "t.yaml:7: transport.sip.launch: must be a time in ns from 0 to 1000000000, not -1"},
		{"fraction of a byte", nothingBeside + "      ll: {hop: 1, bandwidth: 2, chunk: 0.5}\n", "t.yaml:7: transport.sip.protocols.ll.chunk: must be a whole number from 1 to 1099511627776, not 0.5"},
		{"p2p", nothingBeside + "    p2p:\n      ll_bytes: 5\n", "t.yaml has 4 problems:\n  t.yaml:7: transport.sip.p2p.channels: is missing\n  t.yaml:7: transport.sip.p2p.channel_bandwidth: is missing\n  t.yaml:7: transport.sip.p2p.chunk: is missing\n  t.yaml:8: transport.sip.p2p.ll_bytes: needs transport.sip.protocols.ll"},
		{"nodes", "system: {nodes: {count: 2}, network: {nic: {bandwidth: 1, latency: 1}}, sips: {count: 4}}\ntransport:\n  sip: {channels: 1, protocols: {simple: {hop: 1, bandwidth: 2, chunk: 3}}}\n", "t.yaml:2: transport.network: is missing; there are 2 nodes (system.nodes.count)"},
		{"misaligned", nothingBeside + "    unaligned: {simple: {2: 1}}\n", "t.yaml:7: transport.sip.unaligned.simple.2: is not a key here; the keys are 4, 8"},
	} {
		_, err := topology.Parse("t.yaml", []byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestTransport(t *testing.T) {
	if top := parse(t, sips4); top.Transport() != nil {
		t.Errorf("a topology without a transport section has %+v", top.Transport())
	}
	got := parse(t, nothingBeside+`
      ll: {start: 1.5, hop: 0.25, op: 2, bandwidth: 0.5, channel_bandwidth: 0.25, chunk: 7, rooted_chunk: 5, slices: 2, slice_min: 3, finish: 0.5, finish_f16: 0.75, finish_next: 0.5}
    launch: 10
    skew: 20
    p2p: {start: 1, start_simple: 2, channels: 3, channel_bandwidth: 4, chunk: 5, finish: 6, ll_bytes: 7, ll_share: 0.5}
    unaligned: {ll_start: 1, ll: 2, op: 3, simple: {4: 3, 8: 4}, reduce: 7, p2p: {4: 5, 8: 6}}
  library: some
`).Transport()
	want := &topology.Transport{Library: "some", SIP: &topology.LinkClass{
		Channels: 24, Launch: 10000, Skew: 20000,
		Protocols: [topology.Protocols]*topology.Protocol{
			topology.Simple: {Hop: 1000, Bandwidth: 2e9, Chunk: 3, RootedChunk: 3, Slices: 1, FinishNext: 1},
			topology.LL: {
				Start: 1500, Hop: 250, Op: 2000, Bandwidth: 5e8, ChannelBandwidth: 25e7, Chunk: 7, RootedChunk: 5,
				Slices: 2, SliceMin: 3, Finish: 0.5, FinishF16: 0.75, FinishNext: 0.5,
			},
		},
		P2P: &topology.PointToPoint{
			Start: 1000, StartSimple: 2000, Channels: 3, ChannelBandwidth: 4e9, Chunk: 5, Finish: 6, LLBytes: 7, LLShare: 0.5,
		},
		Unaligned: topology.Unaligned{
			LLStart: 1000, LL: 2, Op: 3000, Simple: [2]float64{3, 4}, Reduce: 7, P2P: [2]float64{5, 6},
		},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got.SIP, want.SIP)
	}
}

// The range of n starts that are spread by chance, in units of the spread, beyond that of two.
func TestSkewGrowsAsTheRangeOfChance(t *testing.T) {
	class := topology.LinkClass{Skew: 1000}
	for n, want := range map[int]int64{1: 0, 2: 0, 3: 305, 4: 488, 8: 862, 1024: 2546} {
		if got := class.SkewOf(n); got != want {
			t.Errorf("%d ranks: %d, want %d", n, got, want)
		}
	}
}
