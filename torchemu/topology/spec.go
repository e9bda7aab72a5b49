package topology

import "reflect"

// Spec is the tree of the topology file with every default filled in: maps, []any, string, int and float64, in the
// file's own keys and units (GB/s, ns). The caller owns it.
func (t *Topology) Spec() map[string]any {
	return section(reflect.ValueOf(&t.config).Elem())
}

func section(v reflect.Value) map[string]any {
	tree := map[string]any{}
	for i, key := range keys(v.Type()) {
		if shown := show(v.Field(i)); shown != nil {
			tree[key] = shown
		}
	}
	return tree
}

// show is nil for what the file does not have and no default exists for.
func show(v reflect.Value) any {
	if leaf, ok := v.Addr().Interface().(value); ok {
		return leaf.show()
	}
	switch v.Kind() {
	case reflect.Slice:
		list := []any{}
		for i := range v.Len() {
			list = append(list, show(v.Index(i)))
		}
		return list
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return section(v.Elem())
	default:
		return section(v)
	}
}
