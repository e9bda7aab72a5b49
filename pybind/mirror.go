package pybind

import (
	"encoding/json"
	"errors"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/pybind/internal/host"
)

// Mirror lets ranks stand for others that do the same: by rank, the one that stands for it; see
// distributed.Backend.Mirror. It is to be called before anything is issued.
func Mirror(worldHandle int64, ofAt int64, of int) (err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return err
	}
	ranks, err := host.Ints(ofAt, of)
	if err != nil {
		return err
	}
	if err := w.Backend.Mirror(ranks); err != nil {
		return host.Raise("ValueError", "%v", err)
	}
	return nil
}

// Asymmetry is why ranks do not stand for others, as JSON: the text, and the ranks between which a message would go that
// is not each one's; "" as long as they do.
func Asymmetry(worldHandle int64) (about string, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil || w.Backend.Asymmetry() == nil {
		return "", err
	}
	var found *distributed.AsymmetryError
	errors.As(w.Backend.Asymmetry(), &found)
	text, err := json.Marshal(map[string]any{"text": found.Error(), "peers": found.Peers})
	return string(text), err
}
