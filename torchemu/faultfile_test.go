package torchemu_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/schema"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

func load(t *testing.T, preset string) *topology.Topology {
	t.Helper()
	topo, err := topology.Load(preset)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// names are those of a cable's links.
func names(t *topology.Topology, c torchemu.Cable) string {
	var list []string
	for _, l := range c.Links {
		list = append(list, t.LinkName(l))
	}
	return strings.Join(list, " ")
}

func TestFaultsAreReadFromAFile(t *testing.T) {
	topo := load(t, "default")
	file := filepath.Join(t.TempDir(), "faults.yaml")
	text := `
faults:
  - {kill: 2, at: 3e6}
  - {slow_rank: 3, factor: 2.5, from: 1.5}
  - {slow_link: [1, 0], factor: 4}
  - {drop_link: [0, n0.s3.io], from: 2}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := torchemu.LoadFaults(file, topo, 0)
	if err != nil {
		t.Fatal(err)
	}
	up, down := got[2].(torchemu.SlowLink).Cable, got[3].(torchemu.DropLink).Cable
	want := []torchemu.Fault{
		torchemu.Kill{Rank: 2, At: 3 * sim.Millisecond},
		torchemu.SlowRank{Rank: 3, Factor: 2.5, From: 1500},
		torchemu.SlowLink{Cable: up, Factor: 4},
		torchemu.DropLink{Cable: down, From: 2000},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if up.Name != "the link between SIP 1 and SIP 0" || names(topo, up) != "n0.s0.io>n0.s1.io n0.s1.io>n0.s0.io" {
		t.Errorf("%s is %s", up.Name, names(topo, up))
	}
	if down.Name != "the link between SIP 0 and SIP 3" || names(topo, down) != "n0.s3.io>n0.s0.io n0.s0.io>n0.s3.io" {
		t.Errorf("%s is %s", down.Name, names(topo, down))
	}
}

func TestLinksBetweenOtherDevices(t *testing.T) {
	topo := load(t, "nodes2x8")
	text := "faults: [{drop_link: [3, n0.switch]}, {slow_link: [n1.s9.nic, net], factor: 2}]"
	got, err := torchemu.ParseFaults("f.yaml", []byte(text), topo, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"n0.s3.io>n0.switch n0.switch>n0.s3.io", "n1.s9.nic>net net>n1.s9.nic"} {
		var c torchemu.Cable
		switch f := got[i].(type) {
		case torchemu.DropLink:
			c = f.Cable
		case torchemu.SlowLink:
			c = f.Cable
		}
		if names(topo, c) != want {
			t.Errorf("number %d is %s, want %s", i, names(topo, c), want)
		}
	}
}

// Every mistake, all at once, with its line and place.
func TestProblemsOfAFaultsFile(t *testing.T) {
	topo := load(t, "default")
	for text, want := range map[string][]string{
		"":          {"1: the file is empty; a faults file needs at least faults"},
		"{}":        {"1: faults: is missing"},
		"fault: 1":  {"1: fault: is not a key here; did you mean faults?", "1: faults: is missing"},
		"faults: 7": {"1: faults: must be a list with at least one entry, not 7"},
		"faults:\n- 3\n- {}\n- {at: 1}\n": {
			"2: faults[0]: must be a mapping with the keys kill, slow_rank, slow_link, drop_link, at, from, factor; not 3",
			"3: faults[1]: must have one of the keys kill, slow_rank, slow_link, drop_link",
			"4: faults[2]: must have one of the keys kill, slow_rank, slow_link, drop_link",
		},
		"faults:\n- {kill: 1}\n- {kill: 1, form: 3}\n- {kill: 1, at: 3, from: 3}\n- {kill: 4, at: 0}\n- {kill: x, at: -1}": {
			"2: faults[0].at: is missing; kill needs it",
			"3: faults[1].form: is not a key here; did you mean from?",
			"3: faults[1].at: is missing; kill needs it",
			"4: faults[2].from: is no key of kill, which has at",
			`5: faults[3].kill: there is no rank 4; topology "default" has ranks 0 to 3`,
			`6: faults[4].kill: must be a whole number from 0 to 2147483647, not "x"`,
			"6: faults[4].at: must be a time in ns from 0 to 9e+15, not -1",
		},
		"faults:\n- {kill: 1, slow_rank: 2, at: 1}\n- {slow_rank: 1, factor: 0.5}\n- {slow_rank: 9, factor: .nan}\n- {slow_rank: 0}": {
			"2: faults[0]: has kill and slow_rank; each needs an entry of its own",
			"3: faults[1].factor: must be a number from 1 to 1e+06, not 0.5",
			"4: faults[2].factor: must be a number from 1 to 1e+06, not .nan",
			"5: faults[3].factor: is missing; slow_rank needs it",
		},
		"faults:\n- {drop_link: 1}\n- {drop_link: [1]}\n- {drop_link: [1, 2, 3]}\n- {drop_link: [1, 3]}\n- {drop_link: [7, n0]}\n- {slow_link: [1, 2.5], factor: 2}": {
			"2: faults[0].drop_link: must be a list with at least one entry, not 1",
			"3: faults[1].drop_link: must be the two ends of a link, such as [0, 1]; not 1",
			"4: faults[2].drop_link: must be the two ends of a link, such as [0, 1]; not 3",
			"5: faults[3].drop_link: no link joins SIP 1 and SIP 3; the links of SIP 1 lead to n0.s1.c0, SIP 0, SIP 2",
			`6: faults[4].drop_link[0]: there is no SIP 7; topology "default" has SIPs 0 to 3`,
			`6: faults[4].drop_link[1]: topology "default" has no device "n0"; it has n0.s0.io, for example`,
			"7: faults[5].slow_link[1]: must be the number of a SIP or the name of a device, not 2.5",
		},
		"faults: [{drop_link: [1, 1]}]": {"1: faults[0].drop_link: no link joins SIP 1 and SIP 1; the links of SIP 1 lead to n0.s1.c0, SIP 0, SIP 2"},
	} {
		_, err := torchemu.ParseFaults("f.yaml", []byte(text), topo, 0)
		var list *schema.Error
		if !errors.As(err, &list) {
			t.Errorf("%q: got %v", text, err)
			continue
		}
		var got []string
		for _, p := range list.Problems {
			got = append(got, strings.TrimPrefix(p.String(), "f.yaml:"))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for ranks, want := range map[int]string{1: "has rank 0 only", 2: "the run has ranks 0 to 1"} {
		_, err := torchemu.ParseFaults("f.yaml", []byte("faults: [{kill: 3, at: 1}, {slow_link: [2, 3], factor: 2}]"), topo, ranks)
		if err == nil || !strings.Contains(err.Error(), "faults[0].kill: there is no rank 3; ") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d ranks: got %v", ranks, err)
		}
	}
	if _, err := torchemu.LoadFaults(filepath.Join(t.TempDir(), "none.yaml"), topo, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}
