package schema

import (
	"reflect"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// JSONSchema describes a format for editors, as JSON Schema: the keys are those of the tree by which files are decoded,
// and what a value must be is what its leaf says of one that is wrong. What into holds, a pointer to the root, are the
// defaults; notes are comments on keys, by path.
func (f Format) JSONSchema(title string, into any, notes map[string]string) map[string]any {
	d := describer{notes}
	root := d.describe(reflect.ValueOf(into).Elem(), "", true)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = title
	return root
}

// describer goes through a tree. What of it is set has defaults; what a pointer, a list or a free key would lead to has
// none.
type describer struct{ notes map[string]string }

func (d describer) describe(v reflect.Value, path string, set bool) map[string]any {
	if _, leaf := v.Addr().Interface().(Value); v.Kind() == reflect.Pointer && !leaf {
		return d.pointed(v, path, set)
	}
	described := d.described(v, path, set)
	if note := d.notes[path]; note != "" {
		must, _ := described["description"].(string)
		described["description"] = strings.TrimPrefix(must+"; "+note, "; ")
	}
	return described
}

func (d describer) described(v reflect.Value, path string, set bool) map[string]any {
	if leaf, ok := v.Addr().Interface().(Value); ok {
		return describeLeaf(leaf, set)
	}
	switch v.Kind() {
	case reflect.Slice:
		item := reflect.New(v.Type().Elem()).Elem()
		return map[string]any{"type": "array", "minItems": 1, "items": d.describe(item, path+"[]", false)}
	case reflect.Map:
		return d.describeMap(v, path)
	}
	properties := map[string]any{}
	for _, f := range fields(v) {
		properties[f.key] = d.describe(f.value, join(path, f.key), set)
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

func (d describer) pointed(v reflect.Value, path string, set bool) map[string]any {
	if v.IsNil() {
		return d.describe(reflect.New(v.Type().Elem()).Elem(), path, false)
	}
	return d.describe(v.Elem(), path, set)
}

func (d describer) describeMap(v reflect.Value, path string) map[string]any {
	entry := func(key string) map[string]any {
		return d.describe(reflect.New(v.Type().Elem()).Elem(), join(path, key), false)
	}
	properties := map[string]any{}
	for _, key := range keys(v) {
		properties[key] = entry(key)
	}
	section := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if _, open := v.Interface().(Open); open {
		section["additionalProperties"] = entry("NAME")
	}
	return section
}

// probes are values of each type of JSON's: a leaf that takes one of them takes values of its type.
var probes = []struct {
	kind   string
	values []string
}{
	{"integer", []string{"1", "2", "64"}},
	{"number", []string{"1.5", "0.5"}},
	{"string", []string{"some", "ring", "a.py:f"}},
	{"boolean", []string{"true"}},
}

// list is how a leaf says that it must be one of some names.
var list = regexp.MustCompile(`^must be (\S+(?:, \S+)+)$`)

func describeLeaf(leaf Value, set bool) map[string]any {
	described := map[string]any{}
	if preset := leaf.Show(); set && preset != nil && preset != "" {
		described["default"] = preset
	}
	fresh := reflect.New(reflect.TypeOf(leaf).Elem())
	must := requirement(fresh.Interface().(Value))
	if must != "" {
		described["description"] = must
	}
	if names := namesIn(must, fresh); len(names) > 0 {
		described["enum"] = names
	} else if kinds := taken(fresh); len(kinds) > 0 && must != "" {
		described["type"] = kinds
	}
	return described
}

// requirement is what a leaf says that it must be, given what no leaf can be.
func requirement(leaf Value) string {
	err := leaf.Parse(node("{}"))
	if err == nil {
		return ""
	}
	must, _, _ := strings.Cut(err.Error(), " not a mapping")
	return strings.TrimRight(must, ",; ")
}

// namesIn are the names of a list, where the leaf takes all of them.
func namesIn(must string, fresh reflect.Value) []string {
	found := list.FindStringSubmatch(must)
	if found == nil {
		return nil
	}
	names := strings.Split(found[1], ", ")
	for _, name := range names {
		if fresh.Interface().(Value).Parse(node(name)) != nil {
			return nil
		}
	}
	return names
}

func taken(fresh reflect.Value) []string {
	var kinds []string
	for _, p := range probes {
		for _, value := range p.values {
			if fresh.Interface().(Value).Parse(node(value)) == nil {
				kinds = append(kinds, p.kind)
				break
			}
		}
	}
	if len(kinds) > 1 && kinds[0] == "integer" && kinds[1] == "number" {
		kinds = kinds[1:]
	}
	return kinds
}

func node(text string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		panic("schema: " + err.Error()) // constants, and names
	}
	return doc.Content[0]
}

// Notes are the comments on a file's keys, by the paths of these: at the end of a line, or else above it.
func Notes(data []byte) map[string]string {
	notes := map[string]string{}
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) == nil && len(doc.Content) > 0 {
		collect(doc.Content[0], "", notes)
	}
	return notes
}

func collect(n *yaml.Node, path string, notes map[string]string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		comments := []string{key.LineComment, value.LineComment}
		if path != "" { // above a section stands what the file is about
			comments = append([]string{key.HeadComment}, comments...)
		}
		for _, comment := range comments {
			if comment != "" {
				notes[at] = plain(comment)
			}
		}
		collect(value, at, notes)
	}
}

// plain is the last paragraph of a comment, without its marks and line breaks.
func plain(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	comment = paragraphs[len(paragraphs)-1]
	var words []string
	for _, line := range strings.Split(comment, "\n") {
		words = append(words, strings.Fields(strings.TrimPrefix(line, "#"))...)
	}
	return strings.Join(words, " ")
}
