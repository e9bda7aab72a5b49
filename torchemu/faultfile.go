package torchemu

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/schema"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// faultFile is the tree of a faults file, and its schema.
type faultFile struct {
	Faults []faultEntry `yaml:"faults"`
}

// faultEntry is one fault: which one, and what that kind needs.
type faultEntry struct {
	Kill     rankNumber  `yaml:"kill"`
	SlowRank rankNumber  `yaml:"slow_rank"`
	SlowLink []end       `yaml:"slow_link"`
	DropLink []end       `yaml:"drop_link"`
	At       nanoseconds `yaml:"at"`
	From     nanoseconds `yaml:"from"`
	Factor   factor      `yaml:"factor"`
}

// faultKinds are the kinds of faults, what they need and what they may have besides.
var faultKinds = []struct {
	name       string
	needs, may []string
}{
	{"kill", []string{"at"}, nil},
	{"slow_rank", []string{"factor"}, []string{"from"}},
	{"slow_link", []string{"factor"}, []string{"from"}},
	{"drop_link", nil, []string{"from"}},
}

var faultFormat = schema.Format{Name: "a faults file", Needs: "faults"}

// LoadFaults reads a file of faults for a program of so many ranks on a system; 0 are as many as the system holds:
//
//	faults:
//	  - {kill: 2, at: 3e6}                     # rank 2 dies at 3 ms; times are simulated, in ns
//	  - {slow_rank: 3, factor: 2, from: 1e6}   # rank 3 computes and launches at half the speed from 1 ms on
//	  - {slow_link: [0, 1], factor: 4}         # a quarter of the bandwidth between SIPs 0 and 1; without from: from 0 on
//	  - {drop_link: [0, 3], from: 2e6}         # what is sent between SIPs 0 and 3 is lost from 2 ms on
//
// The ends of a link are SIPs that it joins directly, by number, or other devices by name: n0.switch, n0.s1.nic. A
// *[schema.Error] lists everything that is wrong.
func LoadFaults(file string, t *topology.Topology, ranks int) ([]Fault, error) {
	data, err := schema.Read(file)
	if err != nil {
		return nil, fmt.Errorf("faults file: %w", err)
	}
	return ParseFaults(file, data, t, ranks)
}

// ParseFaults reads faults from the text of a file, whose name is for the messages; see LoadFaults.
func ParseFaults(file string, data []byte, t *topology.Topology, ranks int) ([]Fault, error) {
	var f faultFile
	c := faultChecker{faultFormat.Decode(file, data, &f), t, ranks}
	if !c.Has("faults") && c.Sound("faults") {
		c.Report("faults", "is missing")
	}
	var list []Fault
	for i, e := range f.Faults {
		if fault := c.fault(fmt.Sprintf("faults[%d]", i), e); fault != nil {
			list = append(list, fault)
		}
	}
	return list, c.Err()
}

// FaultsJSONSchema describes files of faults, for editors.
func FaultsJSONSchema() map[string]any {
	return faultFormat.JSONSchema("faults.yaml", &faultFile{}, map[string]string{
		"faults[].kill": "a rank that dies", "faults[].slow_rank": "a rank that is slower",
		"faults[].slow_link": "the ends of a link that is slower", "faults[].drop_link": "the ends of a link that fails",
		"faults[].at": "ns, when a rank dies", "faults[].from": "ns, from when on",
		"faults[].factor": "by which it is slower",
	})
}

// faultChecker reports what is wrong between values that are each fine.
type faultChecker struct {
	*schema.Document
	topology *topology.Topology
	ranks    int // 0 is as many as the topology holds
}

// fault is what an entry stands for; nil after a report of what is wrong.
func (c faultChecker) fault(path string, e faultEntry) Fault {
	kind := c.kind(path)
	if kind == "" {
		return nil
	}
	at := path + "." + kind
	switch kind {
	case "kill":
		return Kill{c.rank(at, e.Kill), e.At.time()}
	case "slow_rank":
		return SlowRank{c.rank(at, e.SlowRank), float64(e.Factor), e.From.time()}
	case "slow_link":
		return SlowLink{c.cable(at, e.SlowLink), float64(e.Factor), e.From.time()}
	}
	return DropLink{c.cable(at, e.DropLink), e.From.time()}
}

// kind finds which fault an entry is and checks that it has the keys for it; "" when it has not.
func (c faultChecker) kind(path string) string {
	if !c.Sound(path) {
		return ""
	}
	var names, found []string
	for _, k := range faultKinds {
		names = append(names, k.name)
		if c.Has(path + "." + k.name) {
			found = append(found, k.name)
		}
	}
	switch {
	case len(found) == 0:
		c.Report(path, "must have one of the keys %s", strings.Join(names, ", "))
	case len(found) > 1:
		c.Report(path, "has %s; each needs an entry of its own", strings.Join(found, " and "))
	case c.checkKeys(path, slices.Index(names, found[0])):
		return found[0]
	}
	return ""
}

// checkKeys compares the other keys of an entry with those of its kind.
func (c faultChecker) checkKeys(path string, kind int) (fine bool) {
	k, fine := faultKinds[kind], true
	for _, key := range []string{"at", "from", "factor"} {
		at := path + "." + key
		needed := slices.Contains(k.needs, key)
		switch has := c.Has(at); {
		case needed && !has:
			c.Report(at, "is missing; %s needs it", k.name)
		case has && !needed && !slices.Contains(k.may, key):
			c.Report(at, "is no key of %s, which has %s", k.name, strings.Join(slices.Concat(k.needs, k.may), ", "))
		}
		fine = fine && c.Sound(at)
	}
	return fine
}

// rank checks that there is a rank.
func (c faultChecker) rank(path string, r rankNumber) int {
	n, whose := c.ranks, "the run"
	if n == 0 {
		n, whose = c.topology.SIPs(), fmt.Sprintf("topology %q", c.topology.Name)
	}
	if c.Sound(path) && int(r) >= n {
		c.Report(path, "there is no rank %d; %s has %s", r, whose, numbered(n))
	}
	return int(r)
}

// numbered names so many ranks.
func numbered(n int) string {
	if n == 1 {
		return "rank 0 only"
	}
	return fmt.Sprintf("ranks 0 to %d", n-1)
}

// cable finds what joins two ends.
func (c faultChecker) cable(path string, ends []end) Cable {
	if len(ends) != 2 && c.Sound(path) {
		c.Report(path, "must be the two ends of a link, such as [0, 1]; not %d", len(ends))
		return Cable{}
	}
	var devices []topology.DeviceID
	for i, e := range ends {
		at := fmt.Sprintf("%s[%d]", path, i)
		id, err := e.device(c.topology)
		if err != nil && c.Sound(at) {
			c.Report(at, "%v", err)
		}
		devices = append(devices, id)
	}
	if !c.Sound(path, path+"[0]", path+"[1]") {
		return Cable{}
	}
	cable, err := CableBetween(c.topology, devices[0], devices[1])
	if err != nil {
		c.Report(path, "%v", err)
	}
	return cable
}

// end is an end of a link: a SIP's number, or the name of another device.
type end struct {
	sip  int
	name string // "" for a SIP
}

func (e *end) Parse(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		e.name = n.Value
		return nil
	}
	v, err := schema.WholeNumber(n, 0, math.MaxInt32)
	e.sip = v
	if err != nil {
		return fmt.Errorf("must be the number of a SIP or the name of a device, not %s", schema.Describe(n))
	}
	return nil
}

func (e *end) Show() any {
	if e.name != "" {
		return e.name
	}
	return e.sip
}

// device finds the device that is meant.
func (e *end) device(t *topology.Topology) (topology.DeviceID, error) {
	if e.name == "" {
		if e.sip >= t.SIPs() {
			return 0, fmt.Errorf("there is no SIP %d; topology %q has SIPs 0 to %d", e.sip, t.Name, t.SIPs()-1)
		}
		return t.IO(e.sip), nil
	}
	for id := range topology.DeviceID(t.NumDevices()) {
		if t.Device(id).Name() == e.name {
			return id, nil
		}
	}
	return 0, fmt.Errorf("topology %q has no device %s; it has %s, for example", t.Name, schema.Quote(e.name),
		t.Device(t.IO(0)).Name())
}

// rankNumber is a rank.
type rankNumber int

func (r *rankNumber) Parse(n *yaml.Node) error {
	v, err := schema.WholeNumber(n, 0, math.MaxInt32)
	*r = rankNumber(v)
	return err
}

func (r *rankNumber) Show() any { return int(*r) }

// nanoseconds is a simulated time.
type nanoseconds float64

func (t *nanoseconds) Parse(n *yaml.Node) error {
	return parseNumber(n, (*float64)(t), "a time in ns", 0, 9e15)
}

func (t *nanoseconds) Show() any { return float64(*t) }

func (t nanoseconds) time() sim.Time { return sim.Time(math.Round(float64(t) * 1e3)) }

// factor is how many times as long something takes.
type factor float64

func (f *factor) Parse(n *yaml.Node) error {
	return parseNumber(n, (*float64)(f), "a number", 1, 1e6)
}

func (f *factor) Show() any { return float64(*f) }

// parseNumber reads a number in [lo, hi].
func parseNumber(n *yaml.Node, into *float64, what string, lo, hi float64) error {
	var v float64
	tag := n.ShortTag()
	numeric := n.Kind == yaml.ScalarNode && (tag == "!!int" || tag == "!!float") && n.Decode(&v) == nil
	if !numeric || !(lo <= v && v <= hi) { // the negation catches NaN
		return fmt.Errorf("must be %s from %g to %g, not %s", what, lo, hi, schema.Describe(n))
	}
	*into = v
	return nil
}
