package ccl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/topology"
)

// configReader fills a Config from YAML nodes. It walks the nodes itself, not through yaml's own decoding, because every
// problem shall come with its line and path, and all of them at once.
type configReader struct {
	file     string
	config   *Config
	problems []topology.Problem
}

func (r *configReader) report(line int, path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.problems = append(r.problems, topology.Problem{File: r.file, Line: line, Path: path, Text: text})
}

func (r *configReader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &topology.Error{Problems: r.problems}
}

// read takes one document or none: a file of comments changes nothing.
func (r *configReader) read(data []byte) {
	if len(data) > maxConfig {
		r.report(1, "", "the file is larger than %d bytes", maxConfig)
		return
	}
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return
	} else if err != nil {
		r.syntax(err)
		return
	}
	r.document(doc.Content[0])
	if err := decoder.Decode(&more); err == nil {
		r.report(more.Line, "", "a second document starts here; a ccl.yaml is one document")
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err)
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?((did not find expected)?.*)`)

// syntax reports that the text is no YAML. yaml.v3's parser, unlike its scanner, counts lines from 0.
func (r *configReader) syntax(err error) {
	m := yamlLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if m == nil {
		m = []string{"", "", err.Error(), ""}
	}
	line, _ := strconv.Atoi(m[1]) // none is 0
	if m[3] != "" {
		line++
	}
	r.report(max(1, line), "", "not valid YAML: %s", m[2])
}

func (r *configReader) document(root *yaml.Node) {
	r.entries(root, "", []string{"defaults", "algorithms"}, func(key string, n *yaml.Node, path string) {
		if key == "defaults" {
			r.settings(n, path, []string{"algorithm", "world_size", "n_elem", "accumulate"}, r.config.defaults)
			return
		}
		r.entries(n, path, choices(), func(name string, n *yaml.Node, path string) {
			own := settings{}
			r.settings(n, path, []string{"world_size", "n_elem", "accumulate"}, own)
			r.config.algorithms[name] = own
		})
	})
}

// choices are the values of defaults.algorithm.
func choices() []string { return append([]string{Auto}, names(Algorithms(AllReduce))...) }

// entryReader reads the value of a known key, which stands at path.
type entryReader func(key string, n *yaml.Node, path string)

// entries hands on each entry of a mapping whose key is known. Nothing at all is an empty mapping: it is what remains of
// a section when its entries become comments.
func (r *configReader) entries(n *yaml.Node, path string, known []string, each entryReader) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.report(n.Line, path, "must be a mapping with any of the keys %s; not %s", strings.Join(known, ", "), describe(n))
		return
	}
	lines := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		at := keyPath(path, key)
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value):
			r.report(key.Line, at, "is unknown; choose one of %s", strings.Join(known, ", "))
		case lines[key.Value] != 0:
			r.report(key.Line, at, "is already set on line %d", lines[key.Value])
		default:
			lines[key.Value] = key.Line
			each(key.Value, n.Content[i+1], at)
		}
	}
}

func (r *configReader) settings(n *yaml.Node, path string, known []string, into settings) {
	r.entries(n, path, known, func(key string, n *yaml.Node, path string) {
		value, err := settingValues[key](n)
		if err != nil {
			r.report(n.Line, path, "%v", err)
			return
		}
		into[key] = value
	})
}

// settingValues parses the value of each setting.
var settingValues = map[string]func(*yaml.Node) (any, error){
	"algorithm":  func(n *yaml.Node) (any, error) { return oneOf(n, choices()) },
	"accumulate": func(n *yaml.Node) (any, error) { return oneOf(n, []string{"dtype", "f32"}) },
	"world_size": func(n *yaml.Node) (any, error) { return wholeNumber(n, 1, 1<<20) },
	"n_elem":     func(n *yaml.Node) (any, error) { return wholeNumber(n, 0, 1<<30) },
}

func oneOf(n *yaml.Node, names []string) (any, error) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(names, n.Value) {
		return nil, fmt.Errorf("must be one of %s; not %s", strings.Join(names, ", "), describe(n))
	}
	return n.Value, nil
}

// wholeNumber has an upper bound so that products of two cannot overflow.
func wholeNumber(n *yaml.Node, lo, hi int) (any, error) {
	var v int
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&v) != nil || v < lo || v > hi {
		return nil, fmt.Errorf("must be a whole number from %d to %d, not %s", lo, hi, describe(n))
	}
	return v, nil
}

var plainKey = regexp.MustCompile(`^\w{1,40}$`)

// keyPath is the path of a key, which may be anything.
func keyPath(path string, key *yaml.Node) string {
	name := key.Value
	if key.Kind != yaml.ScalarNode {
		name = describe(key)
	} else if !plainKey.MatchString(name) {
		name = quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// describe names what stands in the file.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias (write the value out)"
	case n.ShortTag() == "!!null":
		return "nothing"
	}
	return quote(n.Value)
}

// quote shows untrusted text, shortened.
func quote(s string) string {
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "…"
	}
	return strconv.Quote(s)
}
