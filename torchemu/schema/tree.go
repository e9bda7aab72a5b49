package schema

import "reflect"

// Tree is what root, a pointer to a schema's struct, holds, in the file's own keys: maps, []any, and what the values
// [Value.Show]. What is not set is not in it. The caller owns it.
func Tree(root any) map[string]any { return section(reflect.ValueOf(root).Elem()) }

func section(v reflect.Value) map[string]any {
	tree := map[string]any{}
	for _, f := range fields(v) {
		if shown := show(f.value); shown != nil {
			tree[f.key] = shown
		}
	}
	return tree
}

// show is nil for what is not set.
func show(v reflect.Value) any {
	if leaf, ok := v.Addr().Interface().(Value); ok {
		return leaf.Show()
	}
	switch v.Kind() {
	case reflect.Slice:
		return items(v)
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return show(v.Elem())
	case reflect.Map:
		return entries(v)
	default:
		return section(v)
	}
}

// items is nil for an empty list, which no file can have.
func items(v reflect.Value) any {
	var list []any
	for i := range v.Len() {
		list = append(list, show(v.Index(i)))
	}
	if list == nil {
		return nil
	}
	return list
}

func entries(v reflect.Value) map[string]any {
	tree := map[string]any{}
	for _, key := range v.MapKeys() {
		entry := reflect.New(v.Type().Elem()).Elem() // what is in a map has no address
		entry.Set(v.MapIndex(key))
		tree[key.String()] = show(entry)
	}
	return tree
}
