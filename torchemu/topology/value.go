package topology

import (
	"fmt"
	"math"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/schema"
)

// text is a name or a sentence.
type text string

func (t *text) Parse(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return fmt.Errorf("must be text, not %s", schema.Describe(n))
	}
	*t = text(n.Value)
	return nil
}

func (t *text) Show() any { return string(*t) }

// maxCount bounds a single count, so that products of counts cannot overflow.
const maxCount = 1 << 20

// count is a whole number of things; 0 means not set.
type count int

func (c *count) Parse(n *yaml.Node) error {
	v, err := schema.WholeNumber(n, 1, maxCount)
	*c = count(v)
	return err
}

func (c *count) Show() any {
	if *c == 0 {
		return nil
	}
	return int(*c)
}

// bandwidth is in GB/s (10^9 bytes per second). The bounds keep the time of a terabyte within an int64 of picoseconds.
type bandwidth float64

func (b *bandwidth) Parse(n *yaml.Node) error {
	return number(n, (*float64)(b), "a bandwidth in GB/s", 0.001, 1e6)
}

func (b *bandwidth) Show() any { return float64(*b) }

func (b bandwidth) bytesPerSecond() int64 { return int64(math.Round(float64(b) * 1e9)) }

// duration is in nanoseconds.
type duration float64

func (d *duration) Parse(n *yaml.Node) error {
	return number(n, (*float64)(d), "a time in ns", 0, 1e9)
}

func (d *duration) Show() any { return float64(*d) }

func (d duration) picoseconds() int64 { return int64(math.Round(float64(d) * 1e3)) }

// teraflops is a rate of 10^12 operations per second.
type teraflops float64

func (t *teraflops) Parse(n *yaml.Node) error {
	return number(n, (*float64)(t), "a rate in TFLOPS", 0.001, 1e6)
}

func (t *teraflops) Show() any { return float64(*t) }

// optionalTeraflops is a rate that is 0 where it is not set.
type optionalTeraflops teraflops

func (t *optionalTeraflops) Parse(n *yaml.Node) error { return (*teraflops)(t).Parse(n) }
func (t *optionalTeraflops) Show() any                { return unlessZero(float64(*t)) }

func (t teraflops) perSecond() int64 { return int64(math.Round(float64(t) * 1e12)) }

// number parses a finite number in [lo, hi] of a quantity.
func number(n *yaml.Node, into *float64, quantity string, lo, hi float64) error {
	var v float64
	tag := n.ShortTag()
	numeric := n.Kind == yaml.ScalarNode && (tag == "!!int" || tag == "!!float") && n.Decode(&v) == nil
	if !numeric || !(lo <= v && v <= hi) { // the negation catches NaN
		return fmt.Errorf("must be %s from %s to %s, not %s", quantity, decimal(lo), decimal(hi), schema.Describe(n))
	}
	*into = v
	return nil
}

// decimal never uses an exponent: users write 1000000, not 1e+06.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// connect is how the SIPs of a node are joined.
type connect uint8

const (
	ring connect = iota
	torus2D
	fullyConnected
	switched
)

var connects = []string{"ring", "torus2d", "fully_connected", "switch"}

func (c *connect) Parse(n *yaml.Node) error { return choose(n, (*uint8)(c), connects) }
func (c *connect) Show() any                { return connects[*c] }

// forwarding is how a device passes a message on.
type forwarding uint8

const (
	cutThrough forwarding = iota
	storeAndForward
)

var forwardings = []string{"cut_through", "store_and_forward"}

func (f *forwarding) Parse(n *yaml.Node) error { return choose(n, (*uint8)(f), forwardings) }
func (f *forwarding) Show() any                { return forwardings[*f] }

// corner is a place in a cube where PEs sit.
type corner uint8

var corners = []string{"nw", "ne", "sw", "se"}

func (c *corner) Parse(n *yaml.Node) error { return choose(n, (*uint8)(c), corners) }
func (c *corner) Show() any                { return corners[*c] }

func choose(n *yaml.Node, into *uint8, names []string) error {
	i, err := schema.Choice(n, names)
	*into = uint8(i)
	return err
}
