package schema

import "reflect"

// Keyed is a map[string]T of a schema. Its mapping in the file may have any of the Keys, which are in the order in which
// messages list them, and T is the schema of each entry.
type Keyed interface{ Keys() []string }

// keys lists the keys that a section may have.
func keys(section reflect.Value) []string {
	if section.Kind() == reflect.Map {
		return section.Interface().(Keyed).Keys()
	}
	var names []string
	for _, f := range fields(section) {
		names = append(names, tag(f))
	}
	return names
}

// field is the field of a struct that a key is for.
func field(section reflect.Value, key string) reflect.Value {
	for _, f := range fields(section) {
		if tag(f) == key {
			return section.FieldByIndex(f.Index)
		}
	}
	panic("schema: " + section.Type().String() + " has no key " + key)
}

// fields lists the fields that have a key, also those of embedded structs.
func fields(section reflect.Value) []reflect.StructField {
	var keyed []reflect.StructField
	for _, f := range reflect.VisibleFields(section.Type()) {
		if tag(f) != "" {
			keyed = append(keyed, f)
		}
	}
	return keyed
}

func tag(f reflect.StructField) string { return f.Tag.Get("yaml") }
