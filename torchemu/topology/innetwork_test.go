package topology_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

const behindASwitch = "system: {sips: {count: 4, connect: switch}, switch: "

func TestInNetworkProblems(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", behindASwitch + "{in_network: {latency: 3}}}", "t.yaml:1: system.switch.in_network: says nothing that the switch does: multicast: true, or a list of what it reduces by"},
		{"no", behindASwitch + "{in_network: {multicast: no}}}", `t.yaml:1: system.switch.in_network.multicast: must be true or false, not "no"`},
		{"false", behindASwitch + "{in_network: {multicast: false}}}", "t.yaml:1: system.switch.in_network: says nothing that the switch does: multicast: true, or a list of what it reduces by"},
		{"prod", behindASwitch + "{in_network: {reduce: [sum, prod]}}}", `t.yaml:1: system.switch.in_network.reduce[1]: must be sum, min, max; not "prod"`},
		{"twice", behindASwitch + "{in_network: {reduce: [sum,\n max,\n sum]}}}", "t.yaml:3: system.switch.in_network.reduce[2]: sum is there twice"},
		{"slip", behindASwitch + "{in_network: {latncy: 1, multicast: true}}}", "t.yaml:1: system.switch.in_network.latncy: is not a key here; did you mean latency?"},
		{"bandwidth", behindASwitch + "{in_network: {multicast: true, bandwidth: 0}}}", "t.yaml:1: system.switch.in_network.bandwidth: must be a bandwidth in GB/s from 0.001 to 1000000, not 0"},
		{"ring", "system:\n  sips: {count: 4}\n  switch:\n    in_network: {multicast: true}\n", "t.yaml:4: system.switch.in_network: only connect: switch has it, not ring"},
		{"store and forward", behindASwitch + "{in_network: {multicast: true},\n forwarding: store_and_forward}}\nsip: {noc: {forwarding: store_and_forward}}", "t.yaml has 2 problems:\n  t.yaml:2: system.switch.forwarding: must be cut_through with system.switch.in_network\n  t.yaml:3: sip.noc.forwarding: must be cut_through with system.switch.in_network"},
	} {
		_, err := topology.Parse("t.yaml", []byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestInNetwork(t *testing.T) {
	top := parse(t, behindASwitch+"{in_network: {multicast: true, reduce: [max, sum], bandwidth: 7.5, latency: 12}}}")
	does := top.InNetwork()
	if !does.Multicast || does.Bandwidth != 7_500_000_000 || does.Latency != 12_000 {
		t.Errorf("got %+v", does)
	}
	for by, want := range map[topology.Reduction]bool{topology.SwitchSum: true, topology.SwitchMin: false, topology.SwitchMax: true} {
		if does.Reduces(by) != want {
			t.Errorf("reduces by %s: %v", by, !want)
		}
	}
	if want := "the switch multicasts, reduces by sum, reduces by max: 7.5 GB/s on the link of a SIP\n"; !strings.Contains(top.Text(), want) {
		t.Errorf("there is no %q in\n%s", want, top.Text())
	}
	again, err := top.Resized(1, 3)
	if err != nil || again.InNetwork() != does {
		t.Errorf("resized it does %+v, %v", again.InNetwork(), err)
	}
	plain := parse(t, behindASwitch+"{}}")
	if does := plain.InNetwork(); does != (topology.InNetwork{}) || does.ReducesAny() || strings.Contains(plain.Text(), "the switch ") {
		t.Errorf("a switch that only forwards does %+v:\n%s", does, plain.Text())
	}
}

// A message goes to the switch, and from it.
func TestWaysToAndFromTheSwitch(t *testing.T) {
	top := parse(t, "system: {nodes: {count: 2}, sips: {count: 6, connect: switch}, network: {nic: {bandwidth: 1, latency: 1}}}\nsip: {cube_mesh: {w: 3, h: 2}}")
	for sip := range 6 {
		for cube := range top.CubesPerSIP() {
			src, dst := top.PE(sip, cube, 1), top.PE(sip/3*3+(sip+1)%3, cube, 0)
			if got, want := slices.Concat(top.ToSwitch(src), top.FromSwitch(dst)), top.Route(src, dst); !slices.Equal(got, want) {
				t.Errorf("SIP %d, cube %d: by the switch %v, else %v", sip, cube, got, want)
			}
		}
	}
	ring := parse(t, sips4)
	if up, down := ring.ToSwitch(ring.PE(0, 0, 0)), top.FromSwitch(top.IO(0)); up != nil || down != nil {
		t.Errorf("ways %v and %v, where there is no switch and from no PE", up, down)
	}
}
