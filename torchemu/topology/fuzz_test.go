package topology_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/schema"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// FuzzParse: any text is either a topology whose last corners can be reached, or an Error with positions in it.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("presets/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no presets", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{
		"", "a", "[", "{", "? ", "&a [*a]", "<<: *a", "%YAML 1.1\n---\n", "\xff\xfe", "system: !!binary x",
		"system: {sips: {count: !!int x}}", "system: {sips: {count: 3, connect: torus2d, w: 3, h: 1}}",
		"&a a: &b {*a : *b}", "name: !!str [1]", "name: |\n  x\nsystem: {sips: {count: !!float 1}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		top, err := topology.Parse("fuzz.yaml", data)
		if err != nil {
			checkPositions(t, err, strings.Count(strings.ReplaceAll(string(data), "\r", "\n"), "\n")+2)
			return
		}
		s, c, p := top.SIPs()-1, top.CubesPerSIP()-1, top.PEsPerCube()-1
		if route := top.Route(top.PE(0, c, 0), top.PE(s, c, p)); len(route) < 2 {
			t.Errorf("route %v", route)
		}
		for _, id := range []int{0, top.NumLinks() / 2, top.NumLinks() - 1} {
			if l := top.Link(topology.LinkID(id)); l.Bandwidth <= 0 || l.Latency < 0 || top.LinkName(l.ID) == "" {
				t.Errorf("link %+v", l)
			}
		}
	})
}

func checkPositions(t *testing.T, err error, lines int) {
	var list *schema.Error
	if !errors.As(err, &list) || len(list.Problems) == 0 {
		t.Fatalf("not a list of problems: %v", err)
	}
	for _, p := range list.Problems {
		if p.File != "fuzz.yaml" || p.Line < 1 || p.Line > lines || p.Text == "" {
			t.Errorf("problem %+v in a text of %d lines", p, lines)
		}
	}
}
