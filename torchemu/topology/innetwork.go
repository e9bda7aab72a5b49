package topology

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/schema"
)

// inNetworkConfig is the in-network computing of a node's switch; see [InNetwork]. Nothing in it has a default from
// presets/default.yaml: a switch without it only forwards.
type inNetworkConfig struct {
	Multicast toggle      `yaml:"multicast"`
	Reduce    []reduction `yaml:"reduce"`
	Bandwidth *bandwidth  `yaml:"bandwidth"` // of the multicasts and reductions on one SIP's link, each way
	Latency   span        `yaml:"latency"`   // of a reduction, beside the switch's own
}

// Reduction is an operation that a switch reduces by.
type Reduction uint8

// The reductions that a switch may have.
const (
	SwitchSum Reduction = iota
	SwitchMin
	SwitchMax
	numReductions = iota
)

var reductionNames = []string{"sum", "min", "max"}

func (r Reduction) String() string { return reductionNames[r] }

// reduction is a Reduction in a file.
type reduction Reduction

func (r *reduction) Parse(n *yaml.Node) error { return choose(n, (*uint8)(r), reductionNames) }
func (r *reduction) Show() any                { return reductionNames[*r] }

// toggle is true or false.
type toggle bool

func (t *toggle) Parse(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode((*bool)(t)) != nil {
		return fmt.Errorf("must be true or false, not %s", schema.Describe(n))
	}
	return nil
}

func (t *toggle) Show() any {
	if !*t {
		return nil
	}
	return true
}

// InNetwork is what a node's switch does with data itself, as NVLink SHARP does: it copies what one SIP sends to several,
// and combines what several send for one. Times are picoseconds, rates bytes per second.
type InNetwork struct {
	Multicast bool
	Bandwidth int64 // of both together on the link of one SIP, each way; 0: as the link has it
	Latency   int64 // of a reduction, beside the switch's own

	reduces [numReductions]bool
}

// Reduces says whether the switch reduces by an operation.
func (n InNetwork) Reduces(by Reduction) bool { return n.reduces[by] }

// ReducesAny says whether the switch reduces at all.
func (n InNetwork) ReducesAny() bool { return n.reduces != [numReductions]bool{} }

// InNetwork is what the switches of the nodes do with data themselves: nothing, for most.
func (t *Topology) InNetwork() InNetwork { return t.inNetwork }

func newInNetwork(c *inNetworkConfig) InNetwork {
	if c == nil {
		return InNetwork{}
	}
	n := InNetwork{Multicast: bool(c.Multicast), Latency: c.Latency.picoseconds()}
	if c.Bandwidth != nil {
		n.Bandwidth = c.Bandwidth.bytesPerSecond()
	}
	for _, r := range c.Reduce {
		n.reduces[r] = true
	}
	return n
}

const pathInNetwork = "system.switch.in_network"

// checkInNetwork checks that there is such a switch, and that all on the way to it cuts through: a flow goes over many
// links at once.
func (c checker) checkInNetwork() {
	n := c.System.Switch.InNetwork
	if n == nil || !c.Sound(pathInNetwork) {
		return
	}
	c.checkTwice(n.Reduce)
	if c.Sound(pathInNetwork+".multicast") && !bool(n.Multicast) && len(n.Reduce) == 0 {
		c.Report(pathInNetwork, "says nothing that the switch does: multicast: true, or a list of what it reduces by")
	}
	if how := c.System.SIPs.Connect; c.Sound(pathConnect) && how != switched {
		c.Report(pathInNetwork, "only connect: switch has it, not %s", connects[how])
	}
	for _, on := range []struct {
		path string
		how  forwarding
	}{
		{"system.switch.forwarding", c.System.Switch.Forwarding},
		{"sip.noc.forwarding", c.SIP.NoC.Forwarding},
		{"sip.io.forwarding", c.SIP.IO.Forwarding},
	} {
		if c.Sound(on.path) && on.how == storeAndForward {
			c.Report(on.path, "must be cut_through with %s", pathInNetwork)
		}
	}
}

func (c checker) checkTwice(list []reduction) {
	var seen [numReductions]bool
	for i, r := range list {
		if path := fmt.Sprintf("%s.reduce[%d]", pathInNetwork, i); c.Sound(path) {
			if seen[r] {
				c.Report(path, "%s is there twice", reductionNames[r])
			}
			seen[r] = true
		}
	}
}

// ToSwitch lists the links that data crosses from the HBM of a PE's cube to the switch of its node. It is nil where there
// is none.
func (t *Topology) ToSwitch(pe DeviceID) []LinkID {
	at, l := t.Device(pe), &t.layout
	if !t.Switched() || at.Kind != PE {
		return nil
	}
	route := l.mesh.path([]LinkID{l.readLink(at.SIP, at.Cube)}, l.meshLink0(at.SIP), at.Cube, 0)
	return append(route, l.outLink(at.SIP), l.switchLink(at.SIP))
}

// FromSwitch lists the links that data crosses from the switch of a PE's node to the HBM of its cube. It is nil where there
// is none.
func (t *Topology) FromSwitch(pe DeviceID) []LinkID {
	at, l := t.Device(pe), &t.layout
	if !t.Switched() || at.Kind != PE {
		return nil
	}
	route := []LinkID{l.switchLink(at.SIP) + 1, l.inLink(at.SIP)}
	return append(l.mesh.path(route, l.meshLink0(at.SIP), 0, at.Cube), l.writeLink(at.SIP, at.Cube))
}

// switchLink is the link from a SIP to the switch of its node; the one back follows it.
func (l *layout) switchLink(sip int) LinkID {
	n := l.sipsPerNode()
	return l.fabricLinks(sip/n) + LinkID(2*(sip%n))
}
