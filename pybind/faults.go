package pybind

import (
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
)

// AddFaults adds what goes wrong with a World, and when, as YAML or JSON: {"faults": [{"kill": 2, "at": 3e6}]}. See
// torchemu.LoadFaults for all kinds. A rank that is killed gets a RankKilledError, where it waits or at its next operation,
// and is then no more a failure of its spawn than one that has ended: see Exit. ranks is how many a program will have; 0 is
// as many as the World holds.
func AddFaults(worldHandle int64, text string, ranks int) (err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return err
	}
	faults, err := torchemu.ParseFaults("faults", []byte(text), w.Topology, ranks)
	if err != nil {
		return err
	}
	return w.Inject(faults...)
}

// LoadFaults is AddFaults for the text of a file.
func LoadFaults(worldHandle int64, file string, ranks int) (err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return err
	}
	faults, err := torchemu.LoadFaults(file, w.Topology, ranks)
	if err != nil {
		return err
	}
	return w.Inject(faults...)
}
