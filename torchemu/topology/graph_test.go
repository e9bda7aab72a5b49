package topology_test

import (
	"fmt"
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

// figures gives every kind of link numbers of its own, so that a mix-up shows.
const figures = `
sip:
  cube_mesh: {w: %d, h: %d}
  noc: {bandwidth: 11, latency: 1.5}
  io: {bandwidth: 13, latency: 2.25}
cube:
  hbm: {bandwidth: 17, latency: 3}
  pe_layout: {pe_per_corner: 1, corners: [ne, sw]}
`

// system is a small system, and what the oracle needs to know of it.
type system struct {
	connect      string
	nodes, n     int // n SIPs per node
	w, h         int // of the torus
	meshW, meshH int
}

func (s system) String() string {
	return fmt.Sprintf("%d nodes, %d SIPs each, %s %d×%d, mesh %d×%d", s.nodes, s.n, s.connect, s.w, s.h, s.meshW,
		s.meshH)
}

func (s system) yaml() string {
	torus := ""
	if s.connect == "torus2d" {
		torus = fmt.Sprintf("w: %d, h: %d, ", s.w, s.h)
	}
	return fmt.Sprintf(`system:
  nodes: {count: %d}
  sips: {count: %d, connect: %s, %slink: {bandwidth: 19, latency: 5}}
  switch: {latency: 0.5}
  network: {nic: {bandwidth: 23, latency: 7}, latency: 0.125}
`, s.nodes, s.nodes*s.n, s.connect, torus) + fmt.Sprintf(figures, s.meshW, s.meshH)
}

// systems holds every way to connect, from one SIP up, with odd, even and degenerate sizes.
func systems() []system {
	var all []system
	for _, nodes := range []int{1, 2, 3} {
		for _, n := range []int{1, 2, 3, 4, 5} {
			for _, connect := range []string{"ring", "fully_connected", "switch"} {
				all = append(all, system{connect, nodes, n, 0, 0, 1, 1})
			}
		}
		for _, wh := range [][2]int{{1, 1}, {1, 4}, {4, 1}, {2, 2}, {3, 2}, {2, 5}, {4, 4}} {
			all = append(all, system{"torus2d", nodes, wh[0] * wh[1], wh[0], wh[1], 1, 2})
		}
	}
	return append(all, system{"ring", 1, 7, 0, 0, 4, 3}, system{"switch", 2, 2, 0, 0, 3, 4})
}

func parse(t testing.TB, text string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// joined is the oracle of the wiring: the link from a to b, if there is one, from the coordinates of both.
func (s system) joined(a, b topology.Device) (bandwidth, latency int64, ok bool) {
	sameSIP := a.SIP == b.SIP
	switch [2]topology.Kind{a.Kind, b.Kind} {
	case [2]topology.Kind{topology.HBM, topology.Cube}, [2]topology.Kind{topology.Cube, topology.HBM}:
		return 17e9, 3000, sameSIP && a.Cube == b.Cube
	case [2]topology.Kind{topology.Cube, topology.Cube}:
		dx, dy := abs(a.Cube%s.meshW-b.Cube%s.meshW), abs(a.Cube/s.meshW-b.Cube/s.meshW)
		return 11e9, 1500, sameSIP && dx+dy == 1
	case [2]topology.Kind{topology.Cube, topology.IO}:
		return 13e9, 2250, sameSIP && a.Cube == 0
	case [2]topology.Kind{topology.IO, topology.Cube}:
		return 13e9, 2250, sameSIP && b.Cube == 0
	case [2]topology.Kind{topology.IO, topology.IO}:
		return 19e9, 5000, a.Node == b.Node && !sameSIP && s.neighbours(a.SIP%s.n, b.SIP%s.n)
	case [2]topology.Kind{topology.IO, topology.Switch}:
		return 19e9, 5000, a.Node == b.Node
	case [2]topology.Kind{topology.Switch, topology.IO}:
		return 19e9, 5500, a.Node == b.Node
	case [2]topology.Kind{topology.IO, topology.NIC}, [2]topology.Kind{topology.NIC, topology.IO}:
		return 13e9, 2250, sameSIP
	case [2]topology.Kind{topology.NIC, topology.Net}:
		return 23e9, 7000, true
	case [2]topology.Kind{topology.Net, topology.NIC}:
		return 23e9, 7125, true
	}
	return 0, 0, false
}

// neighbours tells whether two different SIPs of a node have a cable.
func (s system) neighbours(a, b int) bool {
	switch s.connect {
	case "ring":
		return around(a, b, s.n) == 1
	case "torus2d":
		return around(a%s.w, b%s.w, s.w)+around(a/s.w, b/s.w, s.h) == 1
	default:
		return s.connect == "fully_connected"
	}
}

func abs(n int) int { return max(n, -n) }

// around is the distance of two places on a ring of n.
func around(a, b, n int) int { return min(abs(a-b), n-abs(a-b)) }

func TestLinksAreExactlyTheWiring(t *testing.T) {
	for _, s := range systems() {
		top := parse(t, s.yaml())
		type pair struct{ from, to topology.DeviceID }
		links := map[pair]topology.Link{}
		for i := range top.NumLinks() {
			l := top.Link(topology.LinkID(i))
			if l.ID != topology.LinkID(i) {
				t.Errorf("%v: link %d says it is %d", s, i, l.ID)
			}
			if other, twice := links[pair{l.From, l.To}]; twice {
				t.Errorf("%v: links %d and %d join the same devices", s, other.ID, i)
			}
			links[pair{l.From, l.To}] = l
		}
		for a := range topology.DeviceID(top.NumDevices()) {
			for b := range topology.DeviceID(top.NumDevices()) {
				bandwidth, latency, ok := s.joined(top.Device(a), top.Device(b))
				got, has := links[pair{a, b}]
				if has != ok || ok && (got.Bandwidth != bandwidth || got.Latency != latency) {
					t.Errorf("%v: %s>%s: link %v %+v, want %v with %d B/s, %d ps", s, top.Device(a).Name(),
						top.Device(b).Name(), has, got, ok, bandwidth, latency)
				}
			}
		}
	}
}

func TestDevicesAreExactlyTheParts(t *testing.T) {
	for _, s := range systems() {
		top := parse(t, s.yaml())
		got := map[topology.Device]bool{}
		for i := range topology.DeviceID(top.NumDevices()) {
			d := top.Device(i)
			if d.ID != i {
				t.Errorf("%v: device %d says it is %d", s, i, d.ID)
			}
			d.ID = 0
			got[d] = true
		}
		want := s.parts()
		for _, d := range want {
			if !got[d] {
				t.Errorf("%v: no device %+v", s, d)
			}
		}
		if len(got) != len(want) || len(got) != top.NumDevices() {
			t.Errorf("%v: %d devices, %d of them different, want %d", s, top.NumDevices(), len(got), len(want))
		}
	}
}

// parts enumerates the devices of a system, without their numbers.
func (s system) parts() []topology.Device {
	var all []topology.Device
	add := func(kind topology.Kind, node, sip, cube, pe int) {
		all = append(all, topology.Device{Kind: kind, Node: node, SIP: sip, Cube: cube, PE: pe})
	}
	for sip := range s.nodes * s.n {
		node := sip / s.n
		for cube := range s.meshW * s.meshH {
			add(topology.Cube, node, sip, cube, -1)
			add(topology.HBM, node, sip, cube, -1)
			add(topology.PE, node, sip, cube, 0)
			add(topology.PE, node, sip, cube, 1)
		}
		add(topology.IO, node, sip, -1, -1)
		if s.nodes > 1 {
			add(topology.NIC, node, sip, -1, -1)
		}
	}
	if s.connect == "switch" {
		for node := range s.nodes {
			add(topology.Switch, node, -1, -1, -1)
		}
	}
	if s.nodes > 1 {
		add(topology.Net, -1, -1, -1, -1)
	}
	return all
}

func TestForwarding(t *testing.T) {
	const all = `
system:
  nodes: {count: 2}
  sips: {count: 4, connect: switch}
  switch: {forwarding: %[1]s}
  network: {nic: {bandwidth: 1, latency: 1}, forwarding: %[2]s}
sip:
  noc: {forwarding: %[3]s}
  io: {forwarding: %[4]s}
`
	words := map[bool]string{true: "store_and_forward", false: "cut_through"}
	kinds := []topology.Kind{topology.Switch, topology.Net, topology.Cube, topology.IO}
	for _, stores := range append(kinds, topology.PE) { // PE: none of them
		var forwarding []any
		for _, k := range kinds {
			forwarding = append(forwarding, words[k == stores])
		}
		top := parse(t, fmt.Sprintf(all, forwarding...))
		for id := range topology.DeviceID(top.NumDevices()) {
			d := top.Device(id)
			if want := d.Kind == stores && stores != topology.PE; d.StoreAndForward != want {
				t.Errorf("%s: store and forward is %v, want %v", d.Name(), d.StoreAndForward, want)
			}
		}
	}
}
