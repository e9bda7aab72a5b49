package topology_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/schema"
	"github.com/torchemu/torchemu/torchemu/topology"
)

const sips4 = "system: {sips: {count: 4}}\n"

// Every kind of mistake, with the whole text that a user sees.
func TestProblems(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "t.yaml:1: the file is empty; a topology needs at least system.sips.count"},
		{"only comments", "# nothing\n\n", "t.yaml:1: the file is empty; a topology needs at least system.sips.count"},
		{"no mapping", "\n- a\n", "t.yaml:2: must be a mapping with the keys name, description, system, sip, cube, pe, host, transport, kernels, engines; not a list"},
		{"a word", "hello", `t.yaml:1: must be a mapping with the keys name, description, system, sip, cube, pe, host, transport, kernels, engines; not "hello"`},
		{"nothing", "---\n", "t.yaml:2: must be a mapping with the keys name, description, system, sip, cube, pe, host, transport, kernels, engines; not nothing"},
		{"syntax", "system:\n  sips: {count: 4\nsip: x\n", "t.yaml:2: not valid YAML: did not find expected ',' or '}'"},
		{"tab", "system:\n\tsips: 1\n", "t.yaml:2: not valid YAML: found character that cannot start any token"},
		{"list not closed", "[", "t.yaml:1: not valid YAML: did not find expected node content"},
		{"unknown anchor", "name: a*b\nsystem:\n  sips: *b\n", "t.yaml:3: not valid YAML: unknown anchor 'b' referenced"},
		{"broken second document", sips4 + "---\n- a\nb: 1\n", "t.yaml:3: not valid YAML: did not find expected '-' indicator"},
		{"binary", "\x00\x01\x02", "t.yaml:1: not valid YAML: control characters are not allowed"},
		{"two documents", sips4 + "---\n" + sips4, "t.yaml:2: a second document starts here; a topology is one document"},
		{"no count", "name: x\n", "t.yaml:1: system.sips.count: is missing"},
		{"no count in sips", "name: x\nsystem:\n  sips:\n    connect: ring\n", "t.yaml:3: system.sips.count: is missing"},
		{"slip", sips4 + "sip:\n  noc: {bandwith: 4}\n", "t.yaml:3: sip.noc.bandwith: is not a key here; did you mean bandwidth?"},
		{"unknown", sips4 + "pe:\n  cores: 4\n", "t.yaml:3: pe.cores: is not a key here; the keys are scratch_kib, matrix, vector, dma"},
		{"strange key", sips4 + "? [a, b]\n: 1\n", `t.yaml:2: a list: is not a key here; the keys are name, description, system, sip, cube, pe, host, transport, kernels, engines`},
		{"merge key", sips4 + "sip: {<<: {w: 1}}\n", `t.yaml:2: sip."<<": is not a key here; the keys are cube_mesh, noc, io`},
		{"twice", "system:\n  sips:\n    count: 4\n    count: 5\n", "t.yaml:4: system.sips.count: is already set on line 3"},
		{"section twice", sips4 + "host: {}\nhost: {}\n", "t.yaml:3: host: is already set on line 2"},
		{"empty section", sips4 + "host:\n", "t.yaml:2: host: must be a mapping with the keys launch_overhead, autograd, dtensor, dtensor_backward, functional_collective, fsdp, fsdp_parameter, optimizer_parameter, link; not nothing"},
		{"alias", "system: {sips: {count: &n 4}}\nsip:\n  cube_mesh: {w: *n, h: 1}\n", "t.yaml:3: sip.cube_mesh.w: must be a whole number from 1 to 1048576, not an alias (write the value out)"},
		{"name", "name: [a]\n" + sips4, "t.yaml:1: name: must be text, not a list"},
		{"number as name", "name: 4\n" + sips4, "t.yaml:1: name: must be text, not 4"},
		{"zero", "system: {sips: {count: 0}}", "t.yaml:1: system.sips.count: must be a whole number from 1 to 1048576, not 0"},
		{"negative", "system: {sips: {count: -4}}", "t.yaml:1: system.sips.count: must be a whole number from 1 to 1048576, not -4"},
		{"fraction", "system: {sips: {count: 4.0}}", "t.yaml:1: system.sips.count: must be a whole number from 1 to 1048576, not 4.0"},
		{"word", "system: {sips: {count: four}}", `t.yaml:1: system.sips.count: must be a whole number from 1 to 1048576, not "four"`},
		{"quoted", "system: {sips: {count: '4'}}", `t.yaml:1: system.sips.count: must be a whole number from 1 to 1048576, not "4"`},
		{"huge", "system: {sips: {count: 99999999999999999999}}", "t.yaml:1: system.sips.count: must be a whole number from 1 to 1048576, not 99999999999999999999"},
		{"negative bandwidth", sips4 + "sip: {io: {bandwidth: -5}}", "t.yaml:2: sip.io.bandwidth: must be a bandwidth in GB/s from 0.001 to 1000000, not -5"},
		{"zero bandwidth", sips4 + "sip: {io: {bandwidth: 0.0}}", "t.yaml:2: sip.io.bandwidth: must be a bandwidth in GB/s from 0.001 to 1000000, not 0.0"},
		{"NaN", sips4 + "sip: {io: {bandwidth: .nan}}", "t.yaml:2: sip.io.bandwidth: must be a bandwidth in GB/s from 0.001 to 1000000, not .nan"},
		{"infinite", sips4 + "sip: {io: {bandwidth: .inf}}", "t.yaml:2: sip.io.bandwidth: must be a bandwidth in GB/s from 0.001 to 1000000, not .inf"},
		{"absurd", sips4 + "sip: {io: {bandwidth: 1e300}}", "t.yaml:2: sip.io.bandwidth: must be a bandwidth in GB/s from 0.001 to 1000000, not 1e300"},
		{"unit", sips4 + "sip: {io: {bandwidth: 5 GB/s}}", `t.yaml:2: sip.io.bandwidth: must be a bandwidth in GB/s from 0.001 to 1000000, not "5 GB/s"`},
		{"true", sips4 + "sip: {io: {bandwidth: true}}", "t.yaml:2: sip.io.bandwidth: must be a bandwidth in GB/s from 0.001 to 1000000, not true"},
		{"negative latency", sips4 + "host: {launch_overhead: -0.1}", "t.yaml:2: host.launch_overhead: must be a time in ns from 0 to 1000000000, not -0.1"},
		{"endless latency", sips4 + "host: {launch_overhead: -.inf}", "t.yaml:2: host.launch_overhead: must be a time in ns from 0 to 1000000000, not -.inf"},
		{"no flops", sips4 + "pe: {matrix: {f8_tflops: 0}}", "t.yaml:2: pe.matrix.f8_tflops: must be a rate in TFLOPS from 0.001 to 1000000, not 0"},
		{"connect", "system: {sips: {count: 4, connect: mesh}}", `t.yaml:1: system.sips.connect: must be ring, torus2d, fully_connected, switch; not "mesh"`},
		{"forwarding", sips4 + "sip: {noc: {forwarding: 1}}", "t.yaml:2: sip.noc.forwarding: must be cut_through, store_and_forward; not 1"},
		{"long text", sips4 + "sip: {noc: {forwarding: " + strings.Repeat("ü", 99) + "}}", `t.yaml:2: sip.noc.forwarding: must be cut_through, store_and_forward; not "` + strings.Repeat("ü", 40) + `…"`},
		{"no corners", sips4 + "cube: {pe_layout: {corners: []}}", "t.yaml:2: cube.pe_layout.corners: must be a list with at least one entry, not an empty list"},
		{"corners", sips4 + "cube: {pe_layout: {corners: nw}}", `t.yaml:2: cube.pe_layout.corners: must be a list with at least one entry, not "nw"`},
		{"corner", sips4 + "cube: {pe_layout: {corners: [\nnw,\nnn]}}", `t.yaml:4: cube.pe_layout.corners[1]: must be nw, ne, sw, se; not "nn"`},
		{"corner twice", sips4 + "cube: {pe_layout: {corners: [se,\nnw,\nse]}}", "t.yaml:4: cube.pe_layout.corners[2]: se is there twice"},
		{"uneven nodes", "system: {nodes: {count: 3}, network: {nic: {bandwidth: 1, latency: 1}},\n sips: {count: 8}}", "t.yaml:2: system.sips.count: 8 SIPs cannot be shared out evenly to 3 nodes (system.nodes.count)"},
		{"disconnected", "system:\n  nodes: {count: 2}\n  sips: {count: 8}\n", "t.yaml:1: system.network: is missing; nothing connects the 2 nodes (system.nodes.count)"},
		{"NIC", "system: {nodes: {count: 2}, sips: {count: 8},\n network: {latency: 1}}\n", "t.yaml has 2 problems:\n  t.yaml:2: system.network.nic.bandwidth: is missing\n  t.yaml:2: system.network.nic.latency: is missing"},
		{"torus", "system: {sips: {count: 4, connect: torus2d,\n w: 4}}\n", "t.yaml:1: system.sips.h: is missing; connect: torus2d needs it"},
		{"torus size", "system: {sips: {count: 12, connect: torus2d,\n w: 4,\n h: 4}}\n", "t.yaml:2: system.sips.w: a torus of 4×4 has 16 SIPs, but a node has 12"},
		{"no torus", "system: {sips: {count: 12, connect: switch,\n w: 4,\n h: 3}}\n", "t.yaml has 2 problems:\n  t.yaml:2: system.sips.w: only connect: torus2d has it, not switch\n  t.yaml:3: system.sips.h: only connect: torus2d has it, not switch"},
		{"slip in the host's link", sips4 + "host: {link: {bandwith: 4}}\n", "t.yaml:2: host.link.bandwith: is not a key here; did you mean bandwidth?"},
		{"slow host's link", sips4 + "host: {link: {bandwidth: 0}}\n", "t.yaml:2: host.link.bandwidth: must be a bandwidth in GB/s from 0.001 to 1000000, not 0"},
		{"fast PEs", sips4 + "pe: {vector: {f32_tflops: 1000000}}\n", "t.yaml:2: pe.vector.f32_tflops: is too much for the 128 PEs of a SIP; together they may have at most 4611686018427387904 a second"},
		{"fast memories", sips4 + "sip: {cube_mesh: {w: 5000}}\ncube: {hbm: {bandwidth: 1e6}}\n", "t.yaml:3: cube.hbm.bandwidth: is too much for the 20000 memories of a SIP; together they may have at most 4611686018427387904 a second"},
		{"many devices", "system: {sips: {count: 1048576}}\n", "t.yaml:1: system.sips.count: 1048576 SIPs of 16 cubes of 8 PEs are too many; a system has at most 33554432 devices"},
		{"overflow", "system: {sips: {count: 1048576}}\nsip: {cube_mesh: {w: 1048576, h: 1048576}}\ncube: {pe_layout: {pe_per_corner: 1048576}}", "t.yaml:1: system.sips.count: 1048576 SIPs of 1099511627776 cubes of 4194304 PEs are too many; a system has at most 33554432 devices"},
		{"many links", "system: {sips: {count: 8192, connect: fully_connected}}\n", "t.yaml:1: system.sips.count: 8192 SIPs with connect: fully_connected have 67772416 links; a system has at most 33554432"},
	} {
		_, err := topology.Parse("t.yaml", []byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

// One run names them all, in the order of the file, and draws no false conclusions from a wrong value.
func TestAllProblemsAtOnce(t *testing.T) {
	const text = `name: 7
system:
  nodes: {count: two}
  sips: {count: 7, connect: torus2d, w: 2, h: x, links: {}}
sip:
  noc: {bandwidth: -1, latency: .nan, forwarding: maybe}
cube: [1]
pe:
  dma: {engines: 0, setup: -1, setup: 2}
hots: {launch_overhead: 1}
`
	_, err := topology.Parse("dir/t.yaml", []byte(text))
	want := strings.TrimSpace(`
dir/t.yaml has 12 problems:
  dir/t.yaml:1: name: must be text, not 7
  dir/t.yaml:3: system.nodes.count: must be a whole number from 1 to 1048576, not "two"
  dir/t.yaml:4: system.sips.h: must be a whole number from 1 to 1048576, not "x"
  dir/t.yaml:4: system.sips.links: is not a key here; did you mean link?
  dir/t.yaml:6: sip.noc.bandwidth: must be a bandwidth in GB/s from 0.001 to 1000000, not -1
  dir/t.yaml:6: sip.noc.latency: must be a time in ns from 0 to 1000000000, not .nan
  dir/t.yaml:6: sip.noc.forwarding: must be cut_through, store_and_forward; not "maybe"
  dir/t.yaml:7: cube: must be a mapping with the keys hbm, pe_layout; not a list
  dir/t.yaml:9: pe.dma.engines: must be a whole number from 1 to 1048576, not 0
  dir/t.yaml:9: pe.dma.setup: must be a time in ns from 0 to 1000000000, not -1
  dir/t.yaml:9: pe.dma.setup: is already set on line 9
  dir/t.yaml:10: hots: is not a key here; did you mean host?
`)
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	var list *schema.Error
	if !errors.As(err, &list) || len(list.Problems) != 12 {
		t.Fatalf("not an Error of 12 problems: %#v", err)
	}
	first := schema.Problem{File: "dir/t.yaml", Line: 1, Path: "name", Text: "must be text, not 7"}
	if list.Problems[0] != first {
		t.Errorf("first problem %+v, want %+v", list.Problems[0], first)
	}
}

func TestTextOfAnErrorIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 150 {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	_, err := topology.Parse("t.yaml", []byte(b.String()))
	var list *schema.Error
	if !errors.As(err, &list) || len(list.Problems) != 151 { // and the count is missing
		t.Fatalf("want 151 problems, got %v", err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 102 || lines[101] != "  … and 51 more" {
		t.Errorf("%d lines, the last: %s", len(lines), lines[len(lines)-1])
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, yml := write("good.yaml", sips4), write("other.yml", "name: mine\n"+sips4)
	for path, name := range map[string]string{good: "good", yml: "mine", "default": "default", "sips2": "sips2"} {
		if top, err := topology.Load(path); err != nil || top.Name != name {
			t.Errorf("Load(%s) is %v, %v; want %s", path, top, err, name)
		}
	}
	bad := write("bad", "system: 4")
	large := write("large.yaml", sips4+strings.Repeat("#", 64<<10))
	const choices = "; the presets are default, h200_8, h200_8_nvls, h800_2x8, mi300x_2x4, mi300x_2x8, " +
		"mi355x_2x4, mi355x_2x8, nodes2x8, sips16, sips2, sips8 " +
		"(the path of a file contains a / or ends in .yaml or .yml)"
	for path, want := range map[string]string{
		bad:                     bad + ":1: system: must be a mapping with the keys nodes, sips, switch, network; not 4",
		large:                   large + ":1: the file is larger than 65536 bytes",
		dir + "/":               "topology file: read " + dir + "/: is a directory",
		dir + "/none":           "topology file: open " + dir + "/none: no such file or directory",
		"none.yaml":             "topology file: open none.yaml: no such file or directory",
		"":                      `there is no topology preset ""` + choices,
		"sips3":                 `there is no topology preset "sips3"` + choices,
		strings.Repeat("a", 50): `there is no topology preset "` + strings.Repeat("a", 40) + `…"` + choices,
	} {
		if top, err := topology.Load(path); err == nil || err.Error() != want {
			t.Errorf("Load(%s) is %v\n%v\nwant\n%s", path, top, err, want)
		}
	}
	if _, err := topology.Load("none.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v is not os.ErrNotExist", err)
	}
}
