package host

import (
	"encoding/json"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// AlgorithmNames is the names of each collective's algorithms that are offered, as JSON: a list for each, in the order of
// the table of collectives.
func AlgorithmNames(offered func(ccl.Algorithm) bool) (string, error) {
	var lists [collective.NumKinds][]string
	for k := range lists {
		for _, a := range ccl.Algorithms(collective.Kind(k)) {
			if offered(a) {
				lists[k] = append(lists[k], a.Name())
			}
		}
	}
	out, err := json.Marshal(lists)
	return string(out), err
}
