package pybind

import (
	"encoding/json"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// OpenWorld builds a World from a topology (a preset's name or a file) and a ccl.yaml ("" for the built-in one) and
// returns its handle. The World belongs to the calling thread.
func OpenWorld(topologyName, cclFile string) (handle int64, err error) {
	defer guard(&err)
	collectSeldom()
	topo, err := topology.Load(topologyName)
	if err != nil {
		return 0, err
	}
	config, err := ccl.LoadConfig(cclFile)
	if err != nil {
		return 0, err
	}
	w := &world{
		World: torchemu.NewWorld(topo), config: config, thread: unix.Gettid(),
		calls: map[string]distributed.Operation{}, launches: map[int]*launches{},
	}
	if err := w.furnish(); err != nil {
		return 0, err
	}
	return register(w), nil
}

// collectSeldom has Go's garbage collector run when the heap is five times what was in use, not twice, unless GOGC says
// otherwise: what is on the heap is small beside the tensors, which are not.
func collectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// ResizeWorld gives an idle World another topology with as many SIPs or more. Its ranks, streams and tensors stay; groups
// that are made from now on are on the new fabric.
func ResizeWorld(handle int64, topologyName string) (err error) {
	defer guard(&err)
	w, err := worldOf(handle)
	if err != nil {
		return err
	}
	topo, err := topology.Load(topologyName)
	if err != nil {
		return err
	}
	if err := w.Resize(topo); err != nil {
		return raise("RuntimeError", "%v", err)
	}
	return w.furnish()
}

// furnish makes what serves the World's present topology.
func (w *world) furnish() (err error) {
	settings := w.config.Resolve(w.Topology.SIPs())
	options := distributed.Options{
		Algorithm: settings.Algorithm, AccumulateF32: settings.AccumulateF32, Chosen: settings.Others(),
		Kernels: kernelsOf(settings),
	}
	if options.Kernels[collective.AllReduce] != "" {
		options.Algorithm = ccl.Auto
	}
	if w.backend, err = distributed.NewBackend(w.World, options); err != nil {
		return err
	}
	w.about, err = describe(w.Topology, w.config, settings)
	return err
}

// kernelsOf are the kernels that run collectives.
func kernelsOf(s ccl.Resolved) map[collective.Kind]string {
	names := map[collective.Kind]string{}
	for c := range collective.NumKinds {
		if k := s.Kernel(c); k.Name != "" {
			names[c] = k.Name
		}
	}
	return names
}

// kernelPlaces says for each collective that a kernel runs its name, file and function.
func kernelPlaces(s ccl.Resolved) map[string][]string {
	places := map[string][]string{}
	for c := range collective.NumKinds {
		if k := s.Kernel(c); k.Name != "" {
			places[c.String()] = []string{k.Name, k.File, k.Function}
		}
	}
	return places
}

func describe(t *topology.Topology, c *ccl.Config, s ccl.Resolved) (string, error) {
	text, err := json.Marshal(map[string]any{
		"topology": t.Name, "spec": t.Spec(), "ccl": c.Map(), "sips": t.SIPs(),
		"cubes_per_sip": t.CubesPerSIP(), "pes_per_cube": t.PEsPerCube(),
		"algorithm": s.Algorithm, "world_size": s.WorldSize, "n_elem": s.NElem,
		"kernels": kernelPlaces(s),
	})
	return string(text), err
}

// DescribeWorld returns JSON: the topology's name and spec, ccl.yaml as a mapping and as resolved for this topology.
func DescribeWorld(handle int64) (about string, err error) {
	defer guard(&err)
	w, err := worldOf(handle)
	if err != nil {
		return "", err
	}
	return w.about, nil
}

// CloseWorld frees a World. Its tensors, groups and works can no longer be used. Closing twice does nothing.
func CloseWorld(handle int64) (err error) {
	defer guard(&err)
	if lookup(handle) == nil {
		return nil
	}
	if _, err := worldOf(handle); err != nil {
		return err
	}
	closeOwner(handle)
	return nil
}

// Presets returns the names of the built-in topologies as a JSON list.
func Presets() (names string, err error) {
	defer guard(&err)
	text, err := json.Marshal(topology.Presets())
	return string(text), err
}

// HostTime is the host clock of a rank, in simulated picoseconds.
func HostTime(handle int64, rank int) (ps int64, err error) {
	defer guard(&err)
	w, err := worldOf(handle)
	if err != nil {
		return 0, err
	}
	r, err := w.Rank(rank)
	if err != nil {
		return 0, err
	}
	return int64(r.Now()), nil
}

// completed is one line of the log as Python sees it; times in picoseconds, bandwidths in bytes per second.
type completed struct {
	Collective string  `json:"collective"`
	Algorithm  string  `json:"algorithm"`
	Ranks      int     `json:"ranks"`
	Bytes      int64   `json:"bytes"`
	Start      int64   `json:"start"`
	End        int64   `json:"end"`
	AlgBW      float64 `json:"algbw"`
	BusBW      float64 `json:"busbw"`
}

// Collectives returns the collectives that have completed so far, from number first on, as JSON.
func Collectives(handle int64, first int) (list string, err error) {
	defer guard(&err)
	w, err := worldOf(handle)
	if err != nil {
		return "", err
	}
	lines := []completed{}
	for _, r := range w.backend.Log[min(max(first, 0), len(w.backend.Log)):] {
		lines = append(lines, completed{
			r.Name, r.Algorithm, r.Ranks, r.Bytes, int64(r.Start), int64(r.End), r.AlgBW(), r.BusBW(),
		})
	}
	text, err := json.Marshal(lines)
	return string(text), err
}
