package ccl_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/schema"
)

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       ccl.Resolved
	}{
		{"nothing", "", ccl.Resolved{Algorithm: "auto", WorldSize: 5, NElem: 32}},
		{"only comments", "# nothing\n", ccl.Resolved{Algorithm: "auto", WorldSize: 5, NElem: 32}},
		{"empty sections", "defaults:\nalgorithms:\n", ccl.Resolved{Algorithm: "auto", WorldSize: 5, NElem: 32}},
		{
			"defaults over the built-in", "defaults: {algorithm: ring, world_size: 7, n_elem: 0, accumulate: f32}",
			ccl.Resolved{Algorithm: "ring", WorldSize: 7, NElem: 0, AccumulateF32: true},
		},
		{
			"own entry over defaults",
			"defaults: {algorithm: torus_2d, world_size: 7, n_elem: 1, accumulate: f32}\n" +
				"algorithms: {torus_2d: {world_size: 16, n_elem: 2, accumulate: dtype}, ring: {world_size: 3}}",
			ccl.Resolved{Algorithm: "torus_2d", WorldSize: 16, NElem: 2},
		},
		{
			"own entry in part",
			"algorithms: {auto: {n_elem: 9}, ring: {world_size: 3}}",
			ccl.Resolved{Algorithm: "auto", WorldSize: 5, NElem: 9},
		},
		{
			"another algorithm's entry does not count",
			"defaults: {algorithm: one_shot}\nalgorithms: {ring: {world_size: 3, n_elem: 3, accumulate: f32}}",
			ccl.Resolved{Algorithm: "one_shot", WorldSize: 5, NElem: 32},
		},
	} {
		config, err := ccl.ParseConfig("ccl.yaml", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := config.Resolve(5); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestEveryAllReduceCanBeNamed(t *testing.T) {
	for _, a := range ccl.Algorithms(collective.AllReduce) {
		config, err := ccl.ParseConfig("f", []byte("defaults: {algorithm: "+a.Name()+"}\nalgorithms: {"+a.Name()+": {n_elem: 1}}"))
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Resolve(1); got.Algorithm != a.Name() || got.NElem != 1 {
			t.Errorf("%s: got %+v", a.Name(), got)
		}
	}
}

func TestAlgorithmForCollective(t *testing.T) {
	config, err := ccl.ParseConfig("f", []byte("defaults: {algorithm: ring}\ncollectives: {all_to_all: bruck, reduce_scatter: direct, reduce: auto}"))
	if err != nil {
		t.Fatal(err)
	}
	r := config.Resolve(4)
	for c, want := range map[collective.Kind]string{
		collective.AllReduce: "ring", collective.AllGather: "ring", collective.ReduceScatter: "direct", collective.AllToAll: "bruck",
		collective.Broadcast: ccl.Auto, collective.Reduce: ccl.Auto, collective.Gather: ccl.Auto, collective.Scatter: ccl.Auto, 9: ccl.Auto,
	} {
		if got := r.For(c); got != want {
			t.Errorf("%s: got %s, want %s", c, got, want)
		}
	}
	for _, c := range collectives {
		for _, a := range ccl.Algorithms(c) {
			config, err := ccl.ParseConfig("f", fmt.Appendf(nil, "collectives: {%s: %s}", c, a.Name()))
			if c == collective.AllReduce {
				continue // it has a place of its own
			}
			if err != nil || config.Resolve(4).For(c) != a.Name() {
				t.Errorf("%s %s: got %v, %v", c, a.Name(), config, err)
			}
		}
	}
}

const (
	defaultKeys = "algorithm, world_size, n_elem, accumulate"
	ownKeys     = "world_size, n_elem, accumulate, kernel"
)

// allReduceChoices is auto and the algorithms in alphabetical order.
func allReduceChoices() string {
	var names []string
	for _, a := range ccl.Algorithms(collective.AllReduce) {
		names = append(names, a.Name())
	}
	slices.Sort(names)
	return "auto, " + strings.Join(names, ", ")
}

func TestConfigErrors(t *testing.T) {
	someNames := allReduceChoices()
	for name, c := range map[string]struct {
		text string
		want []string // the problems
	}{
		"unknown section": {"default: {}", []string{"f:1: default: is not a key here; did you mean defaults?"}},
		"unknown key": {
			"defaults:\n  worldsize: 4\n",
			[]string{"f:2: defaults.worldsize: is not a key here; did you mean world_size?"},
		},
		"unknown key of an algorithm": {
			"algorithms:\n  ring: {algorithm: ring}\n",
			[]string{"f:2: algorithms.ring.algorithm: is not a key here; the keys are " + ownKeys},
		},
		"unknown algorithm": {
			"defaults: {algorithm: Ring}\nalgorithms: {rings: {}, tree: {}}",
			[]string{
				`f:1: defaults.algorithm: must be ` + someNames + `; not "Ring"; did you mean ring?`,
				"f:2: algorithms.rings: is not a key here; did you mean ring?",
				"f:2: algorithms.tree: is not a key here; the keys are " + someNames,
			},
		},
		"numbers": {
			"defaults:\n  world_size: 0\n  n_elem: -1\nalgorithms:\n  ring: {world_size: 1048577, n_elem: 1.5}\n" +
				"  one_shot: {world_size: '4', n_elem: 99999999999999999999}\n  auto: {world_size: , n_elem: [1]}\n",
			[]string{
				`f:2: defaults.world_size: must be a whole number from 1 to 1048576, not 0`,
				`f:3: defaults.n_elem: must be a whole number from 0 to 1073741824, not -1`,
				`f:5: algorithms.ring.world_size: must be a whole number from 1 to 1048576, not 1048577`,
				`f:5: algorithms.ring.n_elem: must be a whole number from 0 to 1073741824, not 1.5`,
				`f:6: algorithms.one_shot.world_size: must be a whole number from 1 to 1048576, not "4"`,
				`f:6: algorithms.one_shot.n_elem: must be a whole number from 0 to 1073741824, not 99999999999999999999`,
				`f:7: algorithms.auto.world_size: must be a whole number from 1 to 1048576, not nothing`,
				`f:7: algorithms.auto.n_elem: must be a whole number from 0 to 1073741824, not a list`,
			},
		},
		"names": {
			"defaults:\n  algorithm: {}\n  accumulate: f16\n",
			[]string{
				"f:2: defaults.algorithm: must be " + someNames + "; not a mapping",
				`f:3: defaults.accumulate: must be dtype, f32; not "f16"`,
			},
		},
		"wrong kinds": {
			"defaults: 7\nalgorithms:\n  ring: [8]\n",
			[]string{
				`f:1: defaults: must be a mapping with any of the keys ` + defaultKeys + `; not 7`,
				"f:3: algorithms.ring: must be a mapping with any of the keys " + ownKeys + "; not a list",
			},
		},
		"algorithms as a list": {
			"algorithms: [ring]",
			[]string{"f:1: algorithms: must be a mapping with any of the keys " + someNames + "; not a list"},
		},
		"unknown collective": {
			"collectives: {alltoall: direct}", []string{"f:1: collectives.alltoall: is not a key here; did you mean all_to_all?"},
		},
		"algorithms of collectives": {
			"collectives: {scatter: ring, all_reduce: ring, broadcast: [chain]}\n",
			[]string{
				"f:1: collectives.all_reduce: is not chosen here, but as defaults.algorithm",
				"f:1: collectives.broadcast: must be auto, bidirectional_chain, binomial, chain, direct, double_binary_tree, hierarchical, nvls, scatter_bidirectional_ring, scatter_direct, scatter_hierarchical, scatter_recursive, torus_2d; not a list",
				`f:1: collectives.scatter: must be auto, bidirectional_ring, binomial, direct, hierarchical, torus_2d; not "ring"`,
			},
		},
		"almost an algorithm of a collective": {
			"collectives:\n  all_to_all: pairwize\n  reduce:\n",
			[]string{
				`f:2: collectives.all_to_all: must be auto, bruck, direct, pairwise; not "pairwize"; did you mean pairwise?`,
				"f:3: collectives.reduce: must be auto, bidirectional_chain, bidirectional_ring_gather, binomial, chain, direct, direct_gather, double_binary_tree, hierarchical, hierarchical_gather, nvls, recursive_gather, torus_2d; not nothing",
			},
		},
		"not a mapping": {"- ring\n", []string{"f:1: must be a mapping with any of the keys defaults, collectives, algorithms, library; not a list"}},
		"twice": {
			"defaults: {n_elem: 1, n_elem: 2}\ndefaults: {}\n",
			[]string{"f:1: defaults.n_elem: is already set on line 1", "f:2: defaults: is already set on line 1"},
		},
		"alias": {
			"defaults: &d {n_elem: 1}\nalgorithms:\n  ring: *d\n",
			[]string{
				"f:3: algorithms.ring: must be a mapping with any of the keys " + ownKeys + "; not an alias (write the value out)",
			},
		},
		"strange keys": {
			"[a]: 1\n? {b: 1}\n: 2\n\"c\\nd\": 3\n" + strings.Repeat("e", 50) + ": 4\n",
			[]string{
				"f:1: a list: is not a key here; the keys are defaults, collectives, algorithms, library",
				"f:2: a mapping: is not a key here; the keys are defaults, collectives, algorithms, library",
				`f:4: "c\nd": is not a key here; the keys are defaults, collectives, algorithms, library`,
				`f:5: "` + strings.Repeat("e", 40) + `…": is not a key here; the keys are defaults, collectives, algorithms, library`,
			},
		},
		"two documents": {
			"defaults: {}\n---\nalgorithms: {}\n",
			[]string{"f:2: a second document starts here; a ccl.yaml is one document"},
		},
		"not YAML":          {"defaults:\n\tn_elem: 1\n", []string{"f:2: not valid YAML: found character that cannot start any token"}},
		"not YAML, parser":  {"defaults: {n_elem: 1}}\n", []string{"f:1: not valid YAML: did not find expected key"}},
		"not YAML, at last": {"defaults: {}\n--- }\n", []string{"f:2: not valid YAML: did not find expected node content"}},
		"too large":         {strings.Repeat("#", 65537), []string{"f:1: the file is larger than 65536 bytes"}},
	} {
		_, err := ccl.ParseConfig("f", []byte(c.text))
		var list *schema.Error
		if !errors.As(err, &list) {
			t.Errorf("%s: want a schema.Error, got %v", name, err)
			continue
		}
		var got []string
		for _, p := range list.Problems {
			got = append(got, p.String())
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

func TestConfigMap(t *testing.T) {
	config, err := ccl.ParseConfig("f", []byte("defaults: {world_size: 8}\ncollectives: {gather: direct, broadcast: auto}\nalgorithms: {ring: {n_elem: 5}, auto: }"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(config.Map())
	want := `{"algorithms":{"auto":{},"ring":{"n_elem":5}},` +
		`"collectives":{"broadcast":"auto","gather":"direct"},"defaults":{"accumulate":"dtype","algorithm":"auto","n_elem":32,"world_size":8}}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	config.Map()["defaults"].(map[string]any)["n_elem"] = 1
	if got := config.Resolve(1).NElem; got != 32 {
		t.Errorf("a change of the map changes n_elem to %d", got)
	}
}

func TestLoadConfig(t *testing.T) {
	config, err := ccl.LoadConfig("")
	if want := (ccl.Resolved{Algorithm: "auto", WorldSize: 3, NElem: 32}); err != nil || config.Resolve(3) != want {
		t.Errorf("built-in: got %+v, %v, want %+v", config, err, want)
	}
	if _, err := ccl.LoadConfig("no such file"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "ccl config") {
		t.Errorf("no such file: got %v", err)
	}
	if _, err := ccl.LoadConfig(t.TempDir()); err == nil {
		t.Error("a directory: no error")
	}
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("defaults: {n_elem: 4}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if config, err := ccl.LoadConfig(file); err != nil || config.Resolve(2).NElem != 4 {
		t.Errorf("own file: got %+v, %v", config, err)
	}
	if err := os.WriteFile(file, []byte("defaults: 4"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ccl.LoadConfig(file); err == nil || !strings.HasPrefix(err.Error(), file+":1: defaults: ") {
		t.Errorf("own file with a mistake: got %v", err)
	}
}

// FuzzConfig: any text is read or rejected with lines that it has; and what was read, written as JSON (which is YAML)
// and read again, is the same.
func FuzzConfig(f *testing.F) {
	f.Add("")
	f.Add("defaults: {algorithm: ring, world_size: 7, n_elem: 0, accumulate: f32}")
	f.Add("defaults:\nalgorithms: {ring: {world_size: 3}, auto: {n_elem: 1}}\n")
	f.Add("collectives: {scatter: direct, all_reduce: auto}\n")
	f.Add("a: &a [*a]\n<<: *a\n")
	f.Add("defaults: {}\n--- }\n")
	f.Fuzz(func(t *testing.T, text string) {
		config, err := ccl.ParseConfig("f", []byte(text))
		if err != nil {
			checkProblems(t, text, err)
			return
		}
		again, err := json.Marshal(config.Map())
		if err != nil {
			t.Fatal(err)
		}
		same, err := ccl.ParseConfig("f", again)
		if err != nil || !reflect.DeepEqual(same.Map(), config.Map()) || same.Resolve(6) != config.Resolve(6) {
			t.Errorf("%s was read as %v, then as %v, %v", again, config.Map(), same, err)
		}
		if r := config.Resolve(6); r.WorldSize < 1 || r.NElem < 0 || r.Algorithm == "" {
			t.Errorf("resolved as %+v", r)
		}
	})
}

func checkProblems(t *testing.T, text string, err error) {
	t.Helper()
	var list *schema.Error
	if !errors.As(err, &list) || len(list.Problems) == 0 {
		t.Fatalf("want a schema.Error, got %v", err)
	}
	lines := 2 + strings.Count(text, "\n") + strings.Count(text, "\r") // YAML knows both, and the end as a line of its own
	for _, p := range list.Problems {
		if p.Line < 1 || p.Line > lines || p.Text == "" {
			t.Errorf("problem %+v in a text of %d lines", p, lines)
		}
	}
}
