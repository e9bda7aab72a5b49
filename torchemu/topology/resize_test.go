package topology_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

func TestResized(t *testing.T) {
	for _, c := range []struct {
		preset      string
		nodes, sips int
		w, h        int
		name        string
	}{
		{"sips16", 1, 12, 4, 3, "sips16, resized to 1 node of 12 SIPs"},
		{"sips16", 1, 7, 7, 1, "sips16, resized to 1 node of 7 SIPs"},
		{"default", 2, 1, 0, 0, "default, resized to 2 nodes of 1 SIP"},
		{"h200_8", 1, 64, 0, 0, "h200_8, resized to 1 node of 64 SIPs"},
	} {
		base, err := topology.Load(c.preset)
		if err != nil {
			t.Fatal(err)
		}
		got, err := base.Resized(c.nodes, c.sips)
		if err != nil {
			t.Fatal(err)
		}
		w, h := got.Grid()
		if got.Name != c.name || got.Nodes() != c.nodes || got.SIPs() != c.nodes*c.sips || w != c.w || h != c.h {
			t.Errorf("%s: %q of %d nodes, %d SIPs, %d×%d", c.preset, got.Name, got.Nodes(), got.SIPs(), w, h)
		}
		if (got.Transport() == nil) != (base.Transport() == nil) || got.DMA() != base.DMA() || got.ReduceRate() != base.ReduceRate() {
			t.Errorf("%s: other figures", c.preset)
		}
	}
	base, _ := topology.Load("default")
	if _, err := base.Resized(1, 1<<40); err == nil || !strings.Contains(err.Error(), "topology default does not fit 1 node of 1099511627776 SIPs: system.sips.count: must be") {
		t.Errorf("too many SIPs: %v", err)
	}
}

func TestLoadFor(t *testing.T) {
	for _, c := range []struct {
		name              string
		ranks, nodes, all int
	}{{"default", 0, 1, 4}, {"default", 2, 1, 4}, {"default", 6, 1, 6}, {"nodes2x8", 16, 2, 16}, {"nodes2x8", 17, 3, 24}, {"nodes2x8", 65536, 8192, 65536}} {
		got, err := topology.LoadFor(c.name, c.ranks)
		if err != nil || got.Nodes() != c.nodes || got.SIPs() != c.all {
			t.Errorf("%s for %d ranks: %v, %v", c.name, c.ranks, got, err)
		}
	}
	file := filepath.Join(t.TempDir(), "two.yaml")
	if err := os.WriteFile(file, []byte("system: {sips: {count: 2, connect: ring}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for ranks, sips := range map[int]int{0: 2, 1: 2, 2: 2, 5: 5} {
		if got, err := topology.LoadFor(file, ranks); err != nil || got.SIPs() != sips {
			t.Errorf("a file of 2 SIPs for %d ranks: %v, %v", ranks, got, err)
		}
	}
	if _, err := topology.LoadFor("nowhere", 4); err == nil {
		t.Error("there is no preset nowhere")
	}
}
