package ccl

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/schema"
)

//go:embed ccl.yaml
var builtinConfig []byte

// Config is a ccl.yaml: settings that hold by default, the algorithms of collectives, and settings of algorithms.
type Config struct {
	file  configFile
	place string // of the file
}

// Kernel is a device program that is to be the algorithm of a collective: a function in a file of Python. The zero Kernel
// is none.
type Kernel struct {
	Name, File, Function string
	Place                string // where the configuration names it: file:line
}

// Resolved is what a Config comes to for one system.
type Resolved struct {
	Algorithm     string // an all_reduce algorithm's name, or Auto
	WorldSize     int
	NElem         int    // elements a rank, for benches that ask
	AccumulateF32 bool   // partial sums stay float32 between the steps of a reduction
	Library       string // that chooses where nothing else does; "" is the topology's, NoLibrary none

	chosen  [collective.NumKinds]string // by collective; "" where nothing is chosen
	kernels [collective.NumKinds]Kernel
}

// Kernel is the device program that is to run a collective; the zero Kernel where an algorithm does.
func (r Resolved) Kernel(c collective.Kind) Kernel { return r.kernels[c] }

// For is the algorithm of a collective, or Auto: what is chosen for it, or else the namesake of the all_reduce
// algorithm if there is one.
func (r Resolved) For(c collective.Kind) string {
	if c < collective.NumKinds && r.chosen[c] != "" {
		return r.chosen[c]
	}
	if _, err := Lookup(c, r.Algorithm); err != nil {
		return Auto
	}
	return r.Algorithm
}

// Others are the algorithms, or Auto, of all collectives but all_reduce and those that a kernel runs.
func (r Resolved) Others() map[collective.Kind]string {
	others := map[collective.Kind]string{}
	for c := range collective.NumKinds {
		if c != collective.AllReduce && r.kernels[c].Name == "" {
			others[c] = r.For(c)
		}
	}
	return others
}

// LoadConfig reads a ccl.yaml; the one that is built in when file is empty. A *[schema.Error] lists everything that is
// wrong in the file.
func LoadConfig(file string) (*Config, error) {
	if file == "" {
		return builtin(), nil
	}
	data, err := schema.Read(file)
	if err != nil {
		return nil, fmt.Errorf("ccl config: %w", err)
	}
	return ParseConfig(file, data)
}

// ParseConfig reads a ccl.yaml from the text of a file, whose name is for the messages. What the text leaves out is as in
// the built-in one. A *[schema.Error] lists everything that is wrong.
func ParseConfig(file string, data []byte) (*Config, error) {
	c := builtin()
	if err := c.read(file, data); err != nil {
		return nil, err
	}
	return c, nil
}

// builtin is the one place of every default.
func builtin() *Config {
	c := &Config{}
	if err := c.read("ccl.yaml", builtinConfig); err != nil {
		panic("ccl: " + err.Error())
	}
	return c
}

func (c *Config) read(file string, data []byte) error {
	d := configFormat.Decode(file, data, &c.file)
	kernels := c.file.Algorithms.kernels()
	c.file.Algorithms.check(d)
	c.file.Collectives.check(d, kernels)
	if d.Has("defaults.algorithm") {
		c.file.Defaults.Algorithm.check(d, "defaults.algorithm", append(choices(collective.AllReduce), kernels...))
	}
	c.place = file
	return d.Err()
}

// Resolve gives each setting the value in the algorithm's own entry, or else in the defaults; the world size is
// otherwise the number of SIPs.
func (c *Config) Resolve(sips int) Resolved {
	d := c.file.Defaults
	r := Resolved{Algorithm: d.Algorithm.name, WorldSize: sips}
	if c.file.Library != nil {
		r.Library = string(*c.file.Library)
	}
	d.overwrite(&r)
	c.file.Algorithms[r.Algorithm].overwrite(&r)
	for k := range collective.NumKinds {
		r.chosen[k] = c.file.Collectives[k.String()].name
		r.kernels[k] = c.kernel(r.chosen[k])
	}
	r.kernels[collective.AllReduce] = c.kernel(r.Algorithm)
	return r
}

// kernel is the kernel of an algorithm's name; its file is relative to the configuration's.
func (c *Config) kernel(name string) Kernel {
	k := c.file.Algorithms[name].Kernel
	if k == nil {
		return Kernel{}
	}
	file := k.file
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(c.place), file)
	}
	return Kernel{name, file, k.function, fmt.Sprintf("%s:%d", c.place, k.line)}
}

// Map is the Config as a mapping of the file's shape, fit for JSON, with the built-in values filled in.
func (c *Config) Map() map[string]any { return schema.Tree(&c.file) }

var configFormat = schema.Format{Name: "a ccl.yaml"}

// ConfigJSONSchema describes a ccl.yaml, for editors; defaults and their comments are those of the built-in one.
func ConfigJSONSchema() map[string]any {
	described := configFormat.JSONSchema("ccl.yaml", &builtin().file, schema.Notes(builtinConfig))
	sections := described["properties"].(map[string]any)
	named := func(section, key string, of collective.Kind) {
		sections[section].(map[string]any)["properties"].(map[string]any)[key].(map[string]any)["anyOf"] = []any{
			map[string]any{"enum": choices(of)}, map[string]any{"pattern": ownName.String()},
		}
	}
	named("defaults", "algorithm", collective.AllReduce)
	for k := range collective.NumKinds {
		if slices.Contains(choicePerCollective{}.Keys(), k.String()) {
			named("collectives", k.String(), k)
		}
	}
	return described
}
