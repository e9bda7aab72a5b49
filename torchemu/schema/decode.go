package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Format is a kind of file.
type Format struct {
	Name string // for messages, with its article: "a topology"

	// Needs is the path of a key that every file must have, so that none can be empty. When it is "", a file may be
	// empty, and so may each section: that is what remains of one when its entries become comments.
	Needs string
}

// Decode reads the text of a file over what into holds, a pointer to the struct that is the root of the schema. The
// file's name is for the messages. Keys that the text leaves out keep their values; lists and the entries of free keys
// are replaced as a whole. What into holds is of use only when the Document has no Err.
func (f Format) Decode(file string, data []byte, into any) *Document {
	d := &Document{format: f, file: file, lines: map[string]int{"": 1}, bad: map[string]bool{}}
	if root := d.root(data); root != nil {
		d.lines[""] = root.Line
		d.mapping(root, "", reflect.ValueOf(into).Elem())
	}
	return d
}

// root returns the one top-level node; nil when there is none, after reporting why if that is a problem.
func (d *Document) root(data []byte) *yaml.Node {
	if len(data) > maxBytes {
		d.Report("", "the file is larger than %d bytes", maxBytes)
		return nil
	}
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		d.empty()
		return nil
	case err != nil:
		d.syntax(err, data)
		return nil
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		d.lines[""] = more.Line
		d.Report("", "a second document starts here; %s is one document", d.format.Name)
	case !errors.Is(err, io.EOF):
		d.syntax(err, data)
	}
	return doc.Content[0]
}

func (d *Document) empty() {
	if needs := d.format.Needs; needs != "" {
		d.Report("", "the file is empty; %s needs at least %s", d.format.Name, needs)
	}
}

// The methods from here on walk the nodes themselves, not through yaml's own decoding, because every problem shall come
// with its line and path, and all of them at once.

// decode dispatches on the kind of the target.
func (d *Document) decode(n *yaml.Node, path string, into reflect.Value) {
	if leaf, ok := into.Addr().Interface().(Value); ok {
		if err := leaf.Parse(n); err != nil {
			d.Report(path, "%v", err)
		}
		return
	}
	switch into.Kind() {
	case reflect.Slice:
		d.list(n, path, into)
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.decode(n, path, into.Elem())
	default:
		d.mapping(n, path, into)
	}
}

func (d *Document) list(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		d.Report(path, "must be a list with at least one entry, not %s", Describe(n))
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

func (d *Document) mapping(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.noMapping(n, path, into)
		return
	}
	known := keys(into)
	for i := 0; i < len(n.Content); i += 2 {
		if key := n.Content[i]; d.enter(key, path, admitted(into, known, key, n.Content[i+1])) {
			d.entry(key.Value, n.Content[i+1], path, into)
		}
	}
}

func (d *Document) noMapping(n *yaml.Node, path string, into reflect.Value) {
	the := "the"
	if d.format.Needs == "" {
		if isNull(n) {
			return
		}
		the = "any of the"
	}
	d.Report(path, "must be a mapping with %s keys %s; not %s", the, strings.Join(keys(into), ", "), Describe(n))
}

// enter notes where a key stands; false after reporting that it must not stand there.
func (d *Document) enter(key *yaml.Node, path string, known []string) bool {
	at, whole := join(path, keyName(key)), join(path, key.Value) // what is shown may be shortened
	switch {
	case key.Kind != yaml.ScalarNode:
		d.add(key.Line, at, "is not a key here; "+listing(known))
	case !slices.Contains(known, key.Value):
		d.add(key.Line, at, "is not a key here; "+suggest(key.Value, known))
	case d.Has(whole):
		d.add(key.Line, at, fmt.Sprintf("is already set on line %d", d.lines[whole]))
	default:
		d.lines[whole] = key.Line
		return true
	}
	return false
}

// entry decodes the value of a known key of a section.
func (d *Document) entry(key string, n *yaml.Node, path string, section reflect.Value) {
	if section.Kind() != reflect.Map {
		d.decode(n, join(path, key), field(section, key))
		return
	}
	element := reflect.New(section.Type().Elem()).Elem()
	d.decode(n, join(path, key), element)
	if section.IsNil() {
		section.Set(reflect.MakeMap(section.Type()))
	}
	section.SetMapIndex(reflect.ValueOf(key), element)
}

var plainKey = regexp.MustCompile(`^\w{1,40}$`)

// keyName is a key as it is shown in a path.
func keyName(key *yaml.Node) string {
	switch {
	case key.Kind != yaml.ScalarNode:
		return Describe(key)
	case plainKey.MatchString(key.Value):
		return key.Value
	}
	return Quote(key.Value)
}
