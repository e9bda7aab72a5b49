package topology

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// decoder fills a config from a file's YAML nodes. It walks the nodes itself, not through yaml's own decoding,
// because every problem shall come with its line and path, and all of them at once.
type decoder struct {
	file     string
	lines    map[string]int // where each path of the file stands; "" is the file's mapping
	problems []Problem
	bad      map[string]bool // paths of problems
}

// decode reads data over what c already holds and returns the decoder, which knows the problems so far.
func decode(file string, data []byte, c *config) *decoder {
	d := &decoder{file: file, lines: map[string]int{"": 1}, bad: map[string]bool{}}
	if root := d.document(data); root != nil {
		d.lines[""] = root.Line
		d.mapping(root, "", reflect.ValueOf(c).Elem())
	}
	return d
}

// document returns the one top-level node; nil after reporting why there is none.
func (d *decoder) document(data []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		d.report("", "the file is empty; a topology needs at least system.sips.count")
		return nil
	}
	if err != nil {
		d.syntax(err, data)
		return nil
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		d.lines[""] = more.Line
		d.report("", "a second document starts here; a topology is one document")
	case !errors.Is(err, io.EOF):
		d.syntax(err, data)
	}
	return doc.Content[0]
}

// report adds a problem at a path. A path that the file does not have stands where its closest ancestor stands.
func (d *decoder) report(path, format string, args ...any) {
	at := path
	for at != "" && d.lines[at] == 0 {
		at = parent(at)
	}
	d.add(d.lines[at], path, fmt.Sprintf(format, args...))
}

func (d *decoder) add(line int, path, text string) {
	d.problems = append(d.problems, Problem{d.file, line, path, text})
	d.bad[path] = true
}

// sound tells whether all paths, and the sections they are in, are free of problems, so that checks across values make
// sense.
func (d *decoder) sound(paths ...string) bool {
	for _, path := range paths {
		for ; path != ""; path = parent(path) {
			if d.bad[path] {
				return false
			}
		}
	}
	return !d.bad[""]
}

// decode dispatches on the kind of the target: leaf, list, optional or plain section.
func (d *decoder) decode(n *yaml.Node, path string, into reflect.Value) {
	if v, ok := into.Addr().Interface().(value); ok {
		if err := v.parse(n); err != nil {
			d.report(path, "%v", err)
		}
		return
	}
	switch into.Kind() {
	case reflect.Slice:
		d.list(n, path, into)
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.mapping(n, path, into.Elem())
	default:
		d.mapping(n, path, into)
	}
}

func (d *decoder) list(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		d.report(path, "must be a list with at least one entry, not %s", describe(n))
		return
	}
	into.SetZero()
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.lines[at] = item.Line
		element := reflect.New(into.Type().Elem()).Elem()
		d.decode(item, at, element)
		into.Set(reflect.Append(into, element))
	}
}

func (d *decoder) mapping(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.report(path, "must be a mapping with the keys %s; not %s", strings.Join(keys(into.Type()), ", "), describe(n))
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		d.entry(n.Content[i], n.Content[i+1], path, into)
	}
}

func (d *decoder) entry(key, n *yaml.Node, path string, into reflect.Value) {
	at := join(path, keyName(key))
	if first := d.lines[at]; first != 0 {
		d.add(key.Line, at, fmt.Sprintf("is already set on line %d", first))
		return
	}
	d.lines[at] = key.Line
	known := keys(into.Type())
	for i, name := range known {
		if key.Kind == yaml.ScalarNode && key.Value == name {
			d.decode(n, at, into.Field(i))
			return
		}
	}
	d.report(at, "is not a key here; %s", suggest(keyName(key), known))
}

// keys lists the keys of a section in the order of its fields.
func keys(section reflect.Type) []string {
	var names []string
	for i := range section.NumField() {
		names = append(names, section.Field(i).Tag.Get("yaml"))
	}
	return names
}

var plainKey = regexp.MustCompile(`^\w{1,40}$`)

// keyName is a key as it is shown in a path.
func keyName(key *yaml.Node) string {
	if key.Kind == yaml.ScalarNode && plainKey.MatchString(key.Value) {
		return key.Value
	}
	return quote(key.Value)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }
