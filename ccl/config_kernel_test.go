package ccl_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/schema"
)

func TestKernelsOfAConfig(t *testing.T) {
	const text = "defaults: {algorithm: mine}\ncollectives: {all_gather: other, reduce_scatter: ring}\n" +
		"algorithms: {mine: {kernel: kernels/a.py:f, n_elem: 7}, other: {kernel: /k/b.py:_g2}, unused: {kernel: c.py:h}}"
	config, err := ccl.ParseConfig(filepath.Join("folder", "ccl.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r := config.Resolve(4)
	place := filepath.Join("folder", "ccl.yaml") + ":3"
	for c, want := range map[collective.Kind]ccl.Kernel{
		collective.AllReduce: {Name: "mine", File: filepath.Join("folder", "kernels", "a.py"), Function: "f", Place: place},
		collective.AllGather: {Name: "other", File: "/k/b.py", Function: "_g2", Place: place}, collective.ReduceScatter: {}, collective.Broadcast: {},
	} {
		if got := r.Kernel(c); got != want {
			t.Errorf("%v: %+v, want %+v", c, got, want)
		}
	}
	if r.Algorithm != "mine" || r.NElem != 7 || r.For(collective.ReduceScatter) != "ring" {
		t.Errorf("got %+v", r)
	}
	shown := config.Map()["algorithms"].(map[string]any)["other"].(map[string]any)["kernel"]
	if shown != "/k/b.py:_g2" {
		t.Errorf("the configuration shows %v", shown)
	}
}

func TestMistakesInKernels(t *testing.T) {
	const place = "must be a Python file and a function in it, such as my_kernels.py:my_ring, not "
	names := allReduceChoices()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no function":         {"algorithms: {a: {kernel: f.py}}", []string{"f:1: algorithms.a.kernel: " + place + `"f.py"`}},
		"no Python":           {"algorithms: {a: {kernel: 'f.c:g'}}", []string{"f:1: algorithms.a.kernel: " + place + `"f.c:g"`}},
		"no identifier":       {"algorithms: {a: {kernel: 'f.py:2'}}", []string{"f:1: algorithms.a.kernel: " + place + `"f.py:2"`}},
		"a list":              {"algorithms: {a: {kernel: [f]}}", []string{"f:1: algorithms.a.kernel: " + place + "a list"}},
		"a built-in name":     {"algorithms: {ring: {kernel: f.py:g}}", []string{"f:1: algorithms.ring.kernel: ring is a built-in algorithm: call the kernel something else"}},
		"not in the defaults": {"defaults: {kernel: f.py:g}", []string{"f:1: defaults.kernel: is not a key here; the keys are " + defaultKeys}},
		"not a kernel's name": {
			"defaults: {algorithm: mina}\nalgorithms: {mine: {kernel: f.py:g}}",
			[]string{`f:1: defaults.algorithm: must be ` + names + `, mine; not "mina"; did you mean mine?`},
		},
		"not for a broadcast": {
			"collectives: {broadcast: mine}\nalgorithms: {mine: {kernel: f.py:g}}",
			[]string{`f:1: collectives.broadcast: must be auto, bidirectional_chain, binomial, chain, direct, double_binary_tree, hierarchical, nvls, scatter_bidirectional_ring, scatter_direct, scatter_hierarchical, scatter_recursive, torus_2d; not "mine"`},
		},
		"without a kernel": {"algorithms: {mine: {n_elem: 3}}", []string{"f:1: algorithms.mine: is not a key here; did you mean ring?"}},
		"a strange name":   {"algorithms: {My-Ring: {kernel: f.py:g}}", []string{`f:1: algorithms."My-Ring": is not a key here; the keys are ` + names}},
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
		if len(got) != len(c.want) || got[0] != c.want[0] {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
