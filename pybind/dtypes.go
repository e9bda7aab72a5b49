package pybind

import (
	"encoding/json"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// DTypes returns the element types as a JSON list, each with torch's name, all its names, its size in bytes and
// whether it is a floating-point type.
func DTypes() (list string, err error) {
	defer guard(&err)
	type entry struct {
		Name  string   `json:"name"`
		Names []string `json:"names"`
		Size  int      `json:"size"`
		Float bool     `json:"float"`
	}
	var all []entry
	for _, d := range dtype.All() {
		all = append(all, entry{d.Name(), d.Names(), d.Size(), d.IsFloat()})
	}
	text, err := json.Marshal(all)
	return string(text), err
}
