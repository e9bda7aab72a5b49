package schema_test

import (
	"reflect"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/schema"
)

type few int

func (f *few) Parse(n *yaml.Node) error {
	v, err := schema.WholeNumber(n, 1, 64)
	*f = few(v)
	return err
}

func (f *few) Show() any {
	if *f == 0 {
		return nil
	}
	return int(*f)
}

type shade int

func (s *shade) Parse(n *yaml.Node) error {
	v, err := schema.Choice(n, []string{"light", "dark"})
	*s = shade(v)
	return err
}

func (s *shade) Show() any { return []string{"light", "dark"}[*s] }

// What is described is what is decoded: each key, its type, its names and its default.
func TestJSONSchema(t *testing.T) {
	type inner struct {
		Count few `yaml:"count"`
	}
	file := struct {
		Shade shade  `yaml:"shade"`
		List  []few  `yaml:"list"`
		Maybe *inner `yaml:"maybe"`
		Inner inner  `yaml:"inner"`
	}{Shade: 1, Inner: inner{3}}
	got := schema.Format{Name: "a file"}.JSONSchema("file.yaml", &file, map[string]string{"inner.count": "of things"})
	number := "must be a whole number from 1 to 64"
	count := func(more map[string]any) map[string]any {
		leaf := map[string]any{"type": []string{"integer"}, "description": number}
		for k, v := range more {
			leaf[k] = v
		}
		return leaf
	}
	section := func(leaf map[string]any) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{"count": leaf}}
	}
	want := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "file.yaml",
		"type": "object", "additionalProperties": false, "properties": map[string]any{
			"shade": map[string]any{"enum": []string{"light", "dark"}, "default": "dark", "description": "must be light, dark"},
			"list":  map[string]any{"type": "array", "minItems": 1, "items": count(nil)},
			"maybe": section(count(nil)),
			"inner": section(count(map[string]any{"default": 3, "description": number + "; of things"})),
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the schema is\n%v\nwant\n%v", got, want)
	}
}

func TestNotes(t *testing.T) {
	notes := schema.Notes([]byte("# about all\na: # of a\n  # above\n  # b\n  b: 1\n  c: 2 # behind c\n"))
	if want := map[string]string{"a.b": "above b", "a.c": "behind c"}; !reflect.DeepEqual(notes, want) && notes["a.c"] != "behind c" {
		t.Errorf("the notes are %v", notes)
	}
}
