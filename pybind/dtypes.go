package pybind

import (
	"encoding/json"

	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/dtype"
)

// DTypes returns the element types as a JSON list, each with torch's name, all its names, its size in bytes, whether it
// is a floating-point type, and torch's name of the type of its parts if it is complex, or else its own.
func DTypes() (list string, err error) {
	defer host.Guard(&err)
	type entry struct {
		Name  string   `json:"name"`
		Names []string `json:"names"`
		Size  int      `json:"size"`
		Float bool     `json:"float"`
		Real  string   `json:"real"`
	}
	var all []entry
	for _, d := range dtype.All() {
		all = append(all, entry{d.Name(), d.Names(), d.Size(), d.IsFloat(), d.Real().Name()})
	}
	text, err := json.Marshal(all)
	return string(text), err
}
