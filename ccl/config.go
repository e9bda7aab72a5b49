package ccl

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"os"
)

//go:embed ccl.yaml
var builtinConfig []byte

// maxConfig is far more bytes than any ccl.yaml needs; it bounds what a wrong path can make us read.
const maxConfig = 64 << 10

// Config is a ccl.yaml: settings that hold by default, and settings of single algorithms.
type Config struct {
	defaults   settings
	algorithms map[string]settings
}

// settings holds a string or an int for each key that is set; settingValues knows the keys.
type settings map[string]any

// Resolved is what a Config comes to for one system.
type Resolved struct {
	Algorithm     string // an all_reduce algorithm's name, or Auto
	WorldSize     int
	NElem         int  // elements a rank, for benches that ask
	AccumulateF32 bool // partial sums stay float32 between the steps of a reduction
}

// LoadConfig reads a ccl.yaml; the one that is built in when file is empty. A *[topology.Error] lists everything that is
// wrong in the file.
func LoadConfig(file string) (*Config, error) {
	if file == "" {
		return builtin(), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("ccl config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("ccl config: %w", err)
	}
	return ParseConfig(file, data)
}

// ParseConfig reads a ccl.yaml from the text of a file, whose name is for the messages. What the text leaves out is as in
// the built-in one. A *[topology.Error] lists everything that is wrong.
func ParseConfig(file string, data []byte) (*Config, error) {
	r := configReader{file: file, config: builtin()}
	r.read(data)
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.config, nil
}

// builtin is the one place of every default.
func builtin() *Config {
	r := configReader{file: "ccl.yaml", config: &Config{defaults: settings{}, algorithms: map[string]settings{}}}
	r.read(builtinConfig)
	if err := r.err(); err != nil {
		panic("ccl: " + err.Error())
	}
	return r.config
}

// Resolve gives each setting the value in the algorithm's own entry, or else in the defaults; the world size is
// otherwise the number of SIPs.
func (c *Config) Resolve(sips int) Resolved {
	in := maps.Clone(c.defaults)
	if _, ok := in["world_size"]; !ok {
		in["world_size"] = sips
	}
	algorithm := in["algorithm"].(string)
	maps.Copy(in, c.algorithms[algorithm])
	return Resolved{
		Algorithm:     algorithm,
		WorldSize:     in["world_size"].(int),
		NElem:         in["n_elem"].(int),
		AccumulateF32: in["accumulate"] == "f32",
	}
}

// Map is the Config as a mapping of the file's shape, fit for JSON, with the built-in values filled in.
func (c *Config) Map() map[string]any {
	algorithms := map[string]any{}
	for name, s := range c.algorithms {
		algorithms[name] = map[string]any(maps.Clone(s))
	}
	return map[string]any{"defaults": map[string]any(maps.Clone(c.defaults)), "algorithms": algorithms}
}
