package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// YAML is a topology file with the coefficients that were fitted; the rest is the base's. Each coefficient says how well
// the data determine it.
func (c *Calibration) YAML(name string) (string, error) {
	if len(c.results) == 0 {
		return "", fmt.Errorf("the calibration is not done")
	}
	spec := c.base.Spec()
	delete(spec, "transport")
	if c.fitted != nil {
		spec = c.fitted.Spec()
		delete(spec, "transport")
		spec["kernels"] = rounded(c.fitted.Kernels().Spec())
	} else if c.own {
		delete(spec, "kernels")
	}
	spec["name"] = name
	spec["description"] = fmt.Sprintf("calibrated to %d measurements of %d to %d ranks",
		len(c.cases), Worlds(c.cases)[0], slices.Max(Worlds(c.cases)))
	if c.own {
		spec["system"].(map[string]any)["sips"].(map[string]any)["count"] = slices.Max(Worlds(c.cases))
	}
	head, err := yaml.Marshal(spec)
	if err != nil {
		return "", err
	}
	transport := c.results[0].Transport.Clone()
	transport.Library = c.library
	w := writer{notes: map[string]string{}}
	for _, e := range c.results[0].Fitted {
		w.notes[e.Path] = "assumed: the data do not determine it"
		if e.Determined {
			w.notes[e.Path] = fmt.Sprintf("± %.0f %%", math.Ceil(100*e.Error))
		}
	}
	w.section("transport", "", transport.Spec(), 0)
	return "# Written by torchemu calibrate. Without a note, a figure of the transport is the library's own constant.\n" +
		string(head) + w.text.String(), nil
}

// rounded is a tree with as many digits as mean something.
func rounded(tree map[string]any) map[string]any {
	for k, v := range tree {
		switch v := v.(type) {
		case map[string]any:
			tree[k] = rounded(v)
		case float64:
			tree[k], _ = strconv.ParseFloat(shown(v), 64)
		}
	}
	return tree
}

// writer writes a tree as YAML with notes.
type writer struct {
	text  strings.Builder
	notes map[string]string // by path below transport
}

// order is that of the keys; others follow in alphabetical order.
var order = []string{"library", "channels", "launch", "skew", "protocols", "ll", "ll128", "simple", "start", "hop", "op", "bandwidth"}

func (w *writer) section(key, path string, tree map[string]any, depth int) {
	fmt.Fprintf(&w.text, "%s%s:\n", strings.Repeat("  ", depth), key)
	for _, k := range inOrder(tree) {
		at := strings.TrimPrefix(path+"."+k, ".")
		if sub, ok := tree[k].(map[string]any); ok {
			w.section(k, at, sub, depth+1)
			continue
		}
		fmt.Fprintf(&w.text, "%s%s: %s", strings.Repeat("  ", depth+1), k, shown(tree[k]))
		if note := w.notes[at]; note != "" {
			fmt.Fprintf(&w.text, " # %s", note)
		}
		w.text.WriteByte('\n')
	}
}

func inOrder(tree map[string]any) []string {
	var keys []string
	for _, k := range order {
		if _, ok := tree[k]; ok {
			keys = append(keys, k)
		}
	}
	var rest []string
	for k := range tree {
		if !slices.Contains(order, k) {
			rest = append(rest, k)
		}
	}
	slices.Sort(rest)
	return append(keys, rest...)
}

// shown is a value with as many digits as mean something.
func shown(v any) string {
	f, ok := v.(float64)
	if !ok {
		return fmt.Sprint(v)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 4, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
