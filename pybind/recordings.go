package pybind

import (
	"bytes"

	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// StartRecording begins a recording of a level: collective, step or link. It is of no rank yet.
func StartRecording(worldHandle int64, level string) (handle int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	l, err := trace.ParseLevel(level)
	if err != nil {
		return 0, err
	}
	return host.NewRecording(w, l), nil
}

// OpenRecording makes a recording one of what a rank's host does from now on; CloseRecording ends that. Rank -1 is all.
func OpenRecording(handle int64, rank int) (err error) {
	defer host.Guard(&err)
	r, err := host.RecordingOf(handle)
	if err != nil {
		return err
	}
	return r.EachRank(rank, (*trace.Recording).Open)
}

// CloseRecording is the end of what OpenRecording began.
func CloseRecording(handle int64, rank int) (err error) {
	defer host.Guard(&err)
	r, err := host.RecordingOf(handle)
	if err != nil {
		return err
	}
	return r.EachRank(rank, (*trace.Recording).Close)
}

// EndRecording makes sure that nothing is added to a recording any more. Ending twice does nothing.
func EndRecording(handle int64) (err error) {
	defer host.Guard(&err)
	r, err := host.RecordingOf(handle)
	if err == nil {
		r.End()
	}
	return err
}

// Annotate records that a rank's host was in something that its program calls name, from a time in picoseconds until
// now.
func Annotate(worldHandle int64, rank int, name string, from int64) (err error) {
	defer host.Guard(&err)
	_, r, err := host.RankOf(worldHandle, rank)
	if err == nil {
		r.Annotate(name, sim.Time(from))
	}
	return err
}

// UsesMemory records how much of its device's memory a rank's program has in use from now on, in bytes.
func UsesMemory(worldHandle int64, rank int, bytes int64) (err error) {
	defer host.Guard(&err)
	_, r, err := host.RankOf(worldHandle, rank)
	if err == nil {
		r.UsesMemory(bytes)
	}
	return err
}

// WriteRecording writes a recording to a file, compressed when its name ends in .gz. format is chrome or perfetto, which
// are of all ranks, or kineto or chakra, which are of one rank: options say which, as JSON of kineto.Options.
func WriteRecording(handle int64, path, format, options string) (err error) {
	defer host.Guard(&err)
	r, err := host.RecordingOf(handle)
	if err != nil {
		return err
	}
	return r.WriteFile(path, format, options)
}

// ReadRecording returns what WriteRecording writes in format kineto.
func ReadRecording(handle int64, options string) (text string, err error) {
	defer host.Guard(&err)
	r, err := host.RecordingOf(handle)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = r.Write(&b, "kineto", options)
	return b.String(), err
}

// RecordedFabric returns, of a recording that has ended, JSON: its simulated begin and end in picoseconds, the ranks that
// did something, the topology's name and spec, and what the links have carried. Links inside of SIPs that have carried
// nothing are left out. At level link it also has when DMA engines and network cards were busy, and the busiest links'
// use over time.
func RecordedFabric(handle int64) (about string, err error) {
	defer host.Guard(&err)
	r, err := host.RecordingOf(handle)
	if err != nil {
		return "", err
	}
	return r.Fabric()
}
