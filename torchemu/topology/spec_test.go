package topology_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/topology"
)

// at looks a path up in a tree; nil when it is not there.
func at(tree any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		m, _ := tree.(map[string]any)
		tree = m[key]
	}
	return tree
}

// leaves flattens a tree to its values by path. Numbers become float64, so that 1 and 1.0 are equal.
func leaves(tree any, path string, into map[string]any) map[string]any {
	switch v := tree.(type) {
	case map[string]any:
		for key, sub := range v {
			leaves(sub, strings.TrimPrefix(path+"."+key, "."), into)
		}
	case map[any]any: // some keys are numbers
		for key, sub := range v {
			leaves(sub, fmt.Sprint(path, ".", key), into)
		}
	case int:
		into[path] = float64(v)
	default:
		into[path] = v
	}
	return into
}

func preset(t *testing.T, name string) (*topology.Topology, map[string]any) {
	t.Helper()
	top, err := topology.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join("presets", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return top, leaves(file, "", map[string]any{})
}

// The defaults have one place: a value that default.yaml forgets would be 0.
func TestDefaultSaysEveryKey(t *testing.T) {
	top, file := preset(t, "default")
	if spec := leaves(top.Spec(), "", map[string]any{}); !reflect.DeepEqual(spec, file) {
		t.Errorf("Spec is\n%v\nthe file\n%v", spec, file)
	}
}

func TestSpecIsTheFileOverTheDefaults(t *testing.T) {
	_, want := preset(t, "default")
	for _, name := range topology.Presets() {
		top, file := preset(t, name)
		spec := leaves(top.Spec(), "", map[string]any{})
		for path, got := range spec {
			value, given := file[path]
			if !given {
				value = want[path]
			}
			if !reflect.DeepEqual(got, value) {
				t.Errorf("%s: %s is %v, want %v", name, path, got, value)
			}
		}
		for path := range file {
			if _, there := spec[path]; !there {
				t.Errorf("%s: Spec has no %s", name, path)
			}
		}
		if name != file["name"] || name != top.Name {
			t.Errorf("preset %s calls itself %v and %s", name, file["name"], top.Name)
		}
	}
}

func TestSpecHasTheNamesThatBenchesRead(t *testing.T) {
	for name, want := range map[string]struct {
		sips, w, h, perCorner int
		corners               []any
	}{
		"default":  {4, 4, 4, 2, []any{"nw", "ne", "sw", "se"}},
		"nodes2x8": {16, 4, 4, 2, []any{"nw", "ne", "sw", "se"}},
	} {
		top, _ := preset(t, name)
		for path, value := range map[string]any{
			"system.sips.count": want.sips, "sip.cube_mesh.w": want.w, "sip.cube_mesh.h": want.h,
			"cube.pe_layout.pe_per_corner": want.perCorner, "cube.pe_layout.corners": want.corners,
		} {
			if got := at(top.Spec(), path); !reflect.DeepEqual(got, value) {
				t.Errorf("%s: %s is %#v, want %#v", name, path, got, value)
			}
		}
	}
}

// JSON is YAML, so a spec that went through JSON is a topology file again, and must be the same one.
func TestSpecRoundTripsThroughJSON(t *testing.T) {
	texts := []string{
		"system: {sips: {count: 12, connect: torus2d, w: 4, h: 3}}\ncube: {pe_layout: {corners: [se]}}",
		"name: \"ü \\\"\\n\"\ndescription: '# not a comment'\nsystem: {sips: {count: 1}}\nhost: {launch_overhead: 0.125}",
	}
	for _, name := range topology.Presets() {
		data, _ := os.ReadFile(filepath.Join("presets", name+".yaml"))
		texts = append(texts, string(data))
	}
	for _, text := range texts {
		first := parse(t, text)
		asJSON, err := json.Marshal(first.Spec())
		if err != nil {
			t.Fatal(err)
		}
		second := parse(t, string(asJSON))
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s\nbecomes\n%v\nand then\n%v", text, first.Spec(), second.Spec())
		}
		var tree map[string]any
		if err := json.Unmarshal(asJSON, &tree); err != nil {
			t.Fatal(err)
		}
		got, want := leaves(tree, "", map[string]any{}), leaves(first.Spec(), "", map[string]any{})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("in JSON\n%v\nnot\n%v", got, want)
		}
	}
}

func TestSpecBelongsToTheCaller(t *testing.T) {
	top, _ := preset(t, "default")
	at(top.Spec(), "system.sips").(map[string]any)["count"] = 99
	at(top.Spec(), "cube.pe_layout.corners").([]any)[0] = "changed"
	count, first := at(top.Spec(), "system.sips.count"), at(top.Spec(), "cube.pe_layout.corners").([]any)[0]
	if count != 4 || first != "nw" {
		t.Errorf("what a caller wrote into a Spec is in the next one")
	}
}
