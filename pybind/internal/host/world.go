package host

import (
	"encoding/json"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// World is an open World with what its groups share.
type World struct {
	*torchemu.World
	Backend *distributed.Backend
	About   string // the World in words, as JSON

	config *ccl.Config
	thread uintptr

	launches map[int]*launches // by rank
	kernelKinds
	returned []int64 // tensors of memory that Python owns; see Returned

	symmetric map[*tensor.Storage]part    // storages of symmetric memory
	recorders []*multiprocessing.Recorder // of the spawns
	exploring *multiprocessing.Attempt    // nil: nobody explores
	late      error                       // races that hosts are yet to be told of
}

// OpenWorld builds a World, which belongs to the calling thread, and returns its handle.
func OpenWorld(t *topology.Topology, c *ccl.Config) (handle int64, err error) {
	collectSeldom()
	w := &World{
		World: torchemu.NewWorld(t), config: c, thread: callingThread(),
		launches: map[int]*launches{}, symmetric: map[*tensor.Storage]part{},
	}
	if err := w.furnish(); err != nil {
		return 0, err
	}
	return Register(w), nil
}

// MoveTo gives an idle World another topology with as many SIPs or more.
func (w *World) MoveTo(t *topology.Topology) error {
	if err := w.Resize(t); err != nil {
		return Raise("RuntimeError", "%v", err)
	}
	return w.furnish()
}

// WorldOf finds an open World and checks that this is its thread.
func WorldOf(handle int64) (*World, error) {
	w, err := openWorld(handle)
	if err != nil {
		return nil, err
	}
	return w, w.checkThread()
}

// Adopt makes an open World the calling thread's.
func Adopt(handle int64) error {
	w, err := openWorld(handle)
	if err == nil {
		w.thread = callingThread()
	}
	return err
}

func openWorld(handle int64) (*World, error) {
	w, ok := Lookup(handle).(*World)
	if !ok {
		return nil, Raise("RuntimeError", "the World is closed: its tensors and process groups can no longer be used")
	}
	return w, nil
}

func (w *World) checkThread() error {
	if callingThread() != w.thread {
		return Raise("RuntimeError", "a World belongs to the thread that opened it; this is another thread. "+
			"Ranks are cooperative: use torch.multiprocessing.spawn, not threads")
	}
	return nil
}

// RankOf finds a rank of an open World.
func RankOf(world int64, rank int) (*World, *torchemu.Rank, error) {
	w, err := WorldOf(world)
	if err != nil {
		return nil, nil, err
	}
	r, err := w.Rank(rank)
	return w, r, err
}

// furnish makes what serves the World's present topology.
func (w *World) furnish() (err error) {
	settings := w.config.Resolve(w.Topology.SIPs())
	options := distributed.Options{
		Algorithm: settings.Algorithm, AccumulateF32: settings.AccumulateF32, Chosen: settings.Others(),
		Library: settings.Library,
		Kernels: kernelsOf(settings),
	}
	if options.Kernels[collective.AllReduce] != "" {
		options.Algorithm = ccl.Auto
	}
	if w.Backend, err = distributed.NewBackend(w.World, options); err != nil {
		return err
	}
	w.About, err = describe(w.Topology, w.config, settings)
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

// kernelPlaces says for each collective that a kernel runs its name, file and function, and where it is named.
func kernelPlaces(s ccl.Resolved) map[string][]string {
	places := map[string][]string{}
	for c := range collective.NumKinds {
		if k := s.Kernel(c); k.Name != "" {
			places[c.String()] = []string{k.Name, k.File, k.Function, k.Place}
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

// Log returns the collectives that have completed so far, from number first on, as JSON.
func (w *World) Log(first int) (string, error) {
	lines := []completed{}
	for _, r := range w.Backend.Log[min(max(first, 0), len(w.Backend.Log)):] {
		lines = append(lines, completed{
			r.Name, r.Algorithm, r.Ranks, r.Bytes, int64(r.Start), int64(r.End), r.AlgBW(), r.BusBW(),
		})
	}
	text, err := json.Marshal(lines)
	return string(text), err
}
