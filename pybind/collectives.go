package pybind

import (
	"encoding/json"

	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// CollectiveTable returns the table of collectives as JSON: "kinds", with the rows of [collective.Row], and "calls", with
// those of [collective.Call].
func CollectiveTable() (table string, err error) {
	defer host.Guard(&err)
	text, err := json.Marshal(map[string]any{"kinds": collective.Rows(), "calls": collective.Calls()})
	return string(text), err
}
