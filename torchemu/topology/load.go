package topology

import (
	"embed"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/torchemu/torchemu/torchemu/schema"
)

//go:embed presets/*.yaml
var presets embed.FS

const presetDir = "presets/"

var format = schema.Format{Name: "a topology", Needs: pathSIPs}

// Presets lists the names of the topologies that ship with the program, in alphabetical order.
func Presets() []string {
	entries, _ := presets.ReadDir("presets") // embedded: cannot fail
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Load reads a topology: a preset by its name, or a file by its path, which contains a separator or ends in .yaml or
// .yml. A *[schema.Error] lists everything that is wrong in the file.
func Load(nameOrFile string) (*Topology, error) {
	if !isPath(nameOrFile) {
		return loadPreset(nameOrFile)
	}
	data, err := schema.Read(nameOrFile)
	if err != nil {
		return nil, fmt.Errorf("topology file: %w", err)
	}
	return Parse(nameOrFile, data)
}

// LoadFor is Load for so many ranks, each on a SIP of its own: a topology that has not as many gets more, on more nodes if
// it has several. 0 ranks: as many as there are SIPs.
func LoadFor(nameOrFile string, ranks int) (*Topology, error) {
	t, err := Load(nameOrFile)
	if err != nil || ranks <= t.SIPs() {
		return t, err
	}
	if t.Nodes() == 1 {
		return t.Resized(1, ranks)
	}
	perNode := t.SIPs() / t.Nodes()
	return t.Resized((ranks+perNode-1)/perNode, perNode)
}

func isPath(s string) bool {
	return strings.ContainsAny(s, "/"+string(filepath.Separator)) ||
		strings.HasSuffix(s, ".yaml") || strings.HasSuffix(s, ".yml")
}

func loadPreset(name string) (*Topology, error) {
	data, err := presets.ReadFile(presetDir + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("there is no topology preset %s; the presets are %s (the path of a file contains a %c "+
			"or ends in .yaml or .yml)", schema.Quote(name), strings.Join(Presets(), ", "), filepath.Separator)
	}
	return Parse(name+".yaml", data)
}

// Parse reads a topology from the text of a file, whose name is for the messages, and is the topology's when the text
// gives none. Keys that the text leaves out have their value from the preset "default". A *[schema.Error] lists
// everything that is wrong.
func Parse(file string, data []byte) (*Topology, error) {
	c := defaults()
	c.Name, c.Description = text(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))), ""
	document := format.Decode(file, data, &c)
	checker{document, &c}.check()
	if err := document.Err(); err != nil {
		return nil, err
	}
	return newTopology(c), nil
}

// defaults is the preset "default", the one place of every default.
func defaults() config {
	data, _ := presets.ReadFile(presetDir + "default.yaml")
	var c config
	if err := format.Decode("default.yaml", data, &c).Err(); err != nil {
		panic("topology: " + err.Error())
	}
	return c
}

// JSONSchema describes topology files, for editors; defaults and their comments are those of presets/default.yaml.
func JSONSchema() map[string]any {
	data, _ := presets.ReadFile(presetDir + "default.yaml")
	c := defaults()
	return format.JSONSchema("topology.yaml", &c, schema.Notes(data))
}
