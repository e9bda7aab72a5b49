package topology_test

import (
	"fmt"
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

func TestPresets(t *testing.T) {
	want := "[default h200_8 h200_8_nvls h800_2x8 mi300x_2x4 mi300x_2x8 mi355x_2x4 mi355x_2x8 nodes2x8 sips16 sips2 sips8]"
	if got := fmt.Sprint(topology.Presets()); got != want {
		t.Fatalf("presets are %s, want %s", got, want)
	}
	type sizes struct{ nodes, sips, cubes, pes, w, h int }
	for name, want := range map[string]sizes{
		"default":  {1, 4, 16, 8, 0, 0},
		"sips2":    {1, 2, 16, 8, 0, 0},
		"sips8":    {1, 8, 16, 8, 0, 0},
		"sips16":   {1, 16, 16, 8, 4, 4},
		"nodes2x8": {2, 16, 16, 8, 0, 0},

		"h200_8":      {1, 8, 1, 132, 0, 0},
		"h200_8_nvls": {1, 8, 1, 132, 0, 0},
		"h800_2x8":    {2, 16, 1, 132, 0, 0},
		"mi300x_2x4":  {2, 8, 1, 304, 0, 0},
		"mi300x_2x8":  {2, 16, 1, 304, 0, 0},
		"mi355x_2x4":  {2, 8, 1, 256, 0, 0},
		"mi355x_2x8":  {2, 16, 1, 256, 0, 0},
	} {
		top, _ := preset(t, name)
		w, h := top.Grid()
		got := sizes{top.Nodes(), top.SIPs(), top.CubesPerSIP(), top.PEsPerCube(), w, h}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if w, h := top.Mesh(); w*h != want.cubes {
			t.Errorf("%s: mesh of %d×%d", name, w, h)
		}
	}
}

func TestGridIsTheTorusOfOneNode(t *testing.T) {
	for _, s := range systems() {
		want := [2]int{}
		if s.connect == "torus2d" && s.nodes == 1 {
			want = [2]int{s.w, s.h}
		}
		if w, h := parse(t, s.yaml()).Grid(); [2]int{w, h} != want {
			t.Errorf("%v: grid %d×%d, want %v", s, w, h, want)
		}
	}
}

func TestPEIsWhereItSays(t *testing.T) {
	top := parse(t, system{"switch", 2, 3, 0, 0, 3, 2}.yaml())
	for sip := range top.SIPs() {
		for cube := range top.CubesPerSIP() {
			for pe := range top.PEsPerCube() {
				d := top.Device(top.PE(sip, cube, pe))
				want := topology.Device{ID: d.ID, Kind: topology.PE, Node: sip / 3, SIP: sip, Cube: cube, PE: pe}
				if d != want {
					t.Errorf("PE(%d, %d, %d) is %+v", sip, cube, pe, d)
				}
			}
		}
	}
}

func TestIOIsThePortOfItsSIP(t *testing.T) {
	top := parse(t, system{"switch", 2, 3, 0, 0, 3, 2}.yaml())
	for sip := range top.SIPs() {
		d := top.Device(top.IO(sip))
		if want := (topology.Device{ID: d.ID, Kind: topology.IO, Node: sip / 3, SIP: sip, Cube: -1, PE: -1}); d != want {
			t.Errorf("IO(%d) is %+v", sip, d)
		}
	}
}

func TestNames(t *testing.T) {
	top := parse(t, system{"switch", 2, 2, 0, 0, 2, 2}.yaml())
	names := map[string]bool{}
	for id := range topology.DeviceID(top.NumDevices()) {
		names[top.Device(id).Name()] = true
	}
	if len(names) != top.NumDevices() {
		t.Errorf("%d names for %d devices", len(names), top.NumDevices())
	}
	for _, want := range []string{"n0.s1.c3.p1", "n1.s3.c0.hbm", "n1.s2.c1", "n1.s2.io", "n0.switch", "n1.s3.nic", "net"} {
		if !names[want] {
			t.Errorf("no device is called %s", want)
		}
	}
	route := top.Route(top.PE(0, 0, 0), top.PE(1, 0, 1))
	got := ""
	for _, l := range route {
		got += top.LinkName(l) + " "
	}
	want := "n0.s0.c0.hbm>n0.s0.c0 n0.s0.c0>n0.s0.io n0.s0.io>n0.switch n0.switch>n0.s1.io n0.s1.io>n0.s1.c0 " +
		"n0.s1.c0>n0.s1.c0.hbm "
	if got != want {
		t.Errorf("route\n%s\nwant\n%s", got, want)
	}
	if got := fmt.Sprint(topology.PE, topology.HBM, topology.Cube, topology.IO, topology.Switch, topology.NIC,
		topology.Net); got != "pe hbm cube io switch nic net" {
		t.Errorf("kinds are %s", got)
	}
}

func TestRates(t *testing.T) {
	top := parse(t, `
system: {sips: {count: 1}}
cube: {hbm: {bandwidth: 819.2, latency: 0.0004, capacity_gib: 3}}
pe:
  scratch_kib: 5
  matrix: {f8_tflops: 7, f16_tflops: 3.5, f32_tflops: 0.25}
  vector: {f32_tflops: 0.125, reduce_bandwidth: 0.3333333333}
  dma: {engines: 3, bandwidth: 1e2, setup: 12.3456}
host: {launch_overhead: 1_000, link: {bandwidth: 0.5, latency: 2.5}}
`)
	for _, c := range []struct{ got, want any }{
		{top.DMA(), topology.DMA{Engines: 3, Bandwidth: 100e9, Setup: 12346}},
		{top.ReduceRate(), int64(333333333)},
		{top.LaunchOverhead(), int64(1e6)},
		{top.HostLink(), topology.HostLink{Bandwidth: 5e8, Latency: 2500}},
		{top.Compute(), topology.Compute{
			MatrixF8: 7e12, MatrixF16: 3.5e12, MatrixF32: 0.25e12, MatrixTF32: 0.25e12, VectorF32: 0.125e12, Scratch: 5120}},
		{top.Memory(), topology.Memory{Bandwidth: 819.2e9, Latency: 0, Capacity: 3 << 30}},
	} {
		if c.got != c.want {
			t.Errorf("%T %+v, want %+v", c.got, c.got, c.want)
		}
	}
}

func TestOutOfRangePanicsWithTheNumbers(t *testing.T) {
	top := parse(t, "name: tiny\nsystem: {sips: {count: 2}}\nsip: {cube_mesh: {w: 1, h: 1}}\n"+
		"cube: {pe_layout: {pe_per_corner: 1, corners: [nw]}}")
	for want, call := range map[string]func(){
		"topology tiny: no PE 0 in cube 0 of SIP 2; it has 2 SIPs of 1 cubes of 1 PEs":  func() { top.PE(2, 0, 0) },
		"topology tiny: no PE 0 in cube 1 of SIP 0; it has 2 SIPs of 1 cubes of 1 PEs":  func() { top.PE(0, 1, 0) },
		"topology tiny: no PE -1 in cube 0 of SIP 0; it has 2 SIPs of 1 cubes of 1 PEs": func() { top.PE(0, 0, -1) },
		"topology tiny: no SIP 2; it has 2 SIPs":                                        func() { top.IO(2) },
		"topology tiny: no SIP -1; it has 2 SIPs":                                       func() { top.IO(-1) },
		"topology tiny: no device 8; it has 8 devices":                                  func() { top.Device(8) },
		"topology tiny: no device -1; it has 8 devices":                                 func() { top.Device(-1) },
		"topology tiny: no link 10; it has 10 links":                                    func() { top.Link(10) },
		"topology tiny: no link -1; it has 10 links":                                    func() { top.Link(-1) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %s", got, want)
				}
			}()
			call()
		}()
	}
}
