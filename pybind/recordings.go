package pybind

import (
	"errors"
	"os"

	"github.com/torchemu/torchemu/torchemu/trace"
	"github.com/torchemu/torchemu/torchemu/trace/chrome"
)

// StartTrace begins to record the collectives of a World.
func StartTrace(handle int64) (err error) {
	defer guard(&err)
	w, err := worldOf(handle)
	if err != nil {
		return err
	}
	w.trace = w.Record(trace.Steps)
	for rank := range w.Topology.SIPs() {
		w.trace.Open(rank, 0)
	}
	return nil
}

// WriteTrace writes what was recorded since StartTrace to a file, in Chrome's JSON format.
func WriteTrace(handle int64, path string) (err error) {
	defer guard(&err)
	w, err := worldOf(handle)
	if err != nil {
		return err
	}
	if w.trace == nil {
		return raise("RuntimeError", "no trace was started")
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(chrome.Write(file, w.trace), file.Close())
}
