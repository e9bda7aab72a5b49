package schema

import (
	"reflect"

	"gopkg.in/yaml.v3"
)

// Keyed is a map[string]T of a schema. Its mapping in the file may have any of the Keys, which are in the order in which
// messages list them, and T is the schema of each entry.
type Keyed interface{ Keys() []string }

// Open is a [Keyed] that may have other keys too, if what they are for fits.
type Open interface {
	Keyed
	Admits(key string, n *yaml.Node) bool
}

// admitted are the keys that a section may have, and one more if it is open to that.
func admitted(section reflect.Value, known []string, key, n *yaml.Node) []string {
	if o, ok := section.Interface().(Open); ok && key.Kind == yaml.ScalarNode && o.Admits(key.Value, n) {
		return append(known[:len(known):len(known)], key.Value)
	}
	return known
}

// keys lists the keys that a section, a struct or a map, may have.
func keys(section reflect.Value) []string {
	if section.Kind() == reflect.Map {
		return section.Interface().(Keyed).Keys()
	}
	var names []string
	for _, f := range fields(section) {
		names = append(names, f.key)
	}
	return names
}

// keyed is a field of a struct and the key that it is for.
type keyed struct {
	key   string
	value reflect.Value
}

// fields lists the fields of a struct in order, those of an embedded one in its place.
func fields(section reflect.Value) []keyed {
	var all []keyed
	for i := range section.NumField() {
		if f := section.Type().Field(i); f.Anonymous {
			all = append(all, fields(section.Field(i))...)
		} else {
			all = append(all, keyed{f.Tag.Get("yaml"), section.Field(i)})
		}
	}
	return all
}

// field is the field of a struct that is for a key which it has.
func field(section reflect.Value, key string) reflect.Value {
	for _, f := range fields(section) {
		if f.key == key {
			return f.value
		}
	}
	panic("schema: " + section.Type().String() + " has no key " + key)
}
