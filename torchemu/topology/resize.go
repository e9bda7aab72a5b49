package topology

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/torchemu/torchemu/torchemu/schema"
)

// severalNodes is the preset whose network joins the nodes where a topology has none.
const severalNodes = "nodes2x8"

// Resized is the same system with another number of nodes, and of SIPs in each. A torus becomes as near to square as it
// can. A *[schema.Error] says what does not fit.
func (t *Topology) Resized(nodes, sipsPerNode int) (*Topology, error) {
	spec := t.Spec()
	spec["name"] = fmt.Sprintf("%s, resized to %s of %s", t.Name, counted(nodes, "node"), counted(sipsPerNode, "SIP"))
	system := spec["system"].(map[string]any)
	sips := system["sips"].(map[string]any)
	system["nodes"].(map[string]any)["count"] = nodes
	sips["count"] = nodes * sipsPerNode
	if sips["connect"] == connects[torus2D] {
		h := side(sipsPerNode)
		sips["h"], sips["w"] = h, sipsPerNode/max(1, h)
	}
	if _, joined := system["network"]; nodes > 1 && !joined {
		other, err := Load(severalNodes)
		if err != nil {
			return nil, err
		}
		system["network"] = other.Spec()["system"].(map[string]any)["network"]
	}
	text, err := json.Marshal(spec) // JSON is YAML
	if err != nil {
		return nil, err
	}
	resized, err := Parse(fmt.Sprintf("topology %s does not fit %s of %s", t.Name, counted(nodes, "node"), counted(sipsPerNode, "SIP")), text)
	return resized, withoutLines(err)
}

// withoutLines makes problems of a file that nobody has written name no line of it.
func withoutLines(err error) error {
	var wrong *schema.Error
	if errors.As(err, &wrong) {
		for i := range wrong.Problems {
			wrong.Problems[i].Line = 0
		}
	}
	return err
}

// side is the shorter side of the rectangle of so many that is nearest to a square.
func side(n int) int {
	for h := int(math.Sqrt(float64(n))); h > 1; h-- {
		if n%h == 0 {
			return h
		}
	}
	return 1
}

// counted is a number and what it counts.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
