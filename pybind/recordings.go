package pybind

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
	"github.com/torchemu/torchemu/torchemu/trace/chakra"
	"github.com/torchemu/torchemu/torchemu/trace/chrome"
	"github.com/torchemu/torchemu/torchemu/trace/kineto"
	"github.com/torchemu/torchemu/torchemu/trace/perfetto"
)

// recording is one in the making or done, and what the links had carried before it.
type recording struct {
	*trace.Recording
	carried []int64
	began   sim.Time
	ended   sim.Time // trace.Forever while it is in the making
}

func recordingOf(handle int64) (owned[*recording], error) {
	return ownedBy[*recording](handle, "recording")
}

// StartRecording begins a recording of a level: collective, step or link. It is of no rank yet.
func StartRecording(worldHandle int64, level string) (handle int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	l, err := trace.ParseLevel(level)
	if err != nil {
		return 0, err
	}
	r := &recording{Recording: w.Record(l), carried: w.carried(), began: w.Engine.Now(), ended: trace.Forever}
	return register(owned[*recording]{r, w}), nil
}

// carried is what each link has carried so far.
func (w *world) carried() []int64 {
	list := make([]int64, w.Topology.NumLinks())
	for l := range list {
		list[l] = w.Network.LinkBytes(topology.LinkID(l))
	}
	return list
}

// OpenRecording makes a recording one of what a rank's host does from now on; CloseRecording ends that. Rank -1 is all.
func OpenRecording(handle int64, rank int) (err error) {
	defer guard(&err)
	return eachRank(handle, rank, (*trace.Recording).Open)
}

// CloseRecording is the end of what OpenRecording began.
func CloseRecording(handle int64, rank int) (err error) {
	defer guard(&err)
	return eachRank(handle, rank, (*trace.Recording).Close)
}

// eachRank does something at the host time of a rank, or of each.
func eachRank(handle int64, rank int, do func(rec *trace.Recording, rank int, at sim.Time)) error {
	r, err := recordingOf(handle)
	if err != nil {
		return err
	}
	first, last := rank, rank
	if rank == -1 {
		first, last = 0, r.world.Topology.SIPs()-1
	}
	for i := first; i <= last; i++ {
		host, err := r.world.Rank(i)
		if err != nil {
			return err
		}
		do(r.object.Recording, i, host.Now())
	}
	return nil
}

// EndRecording makes sure that nothing is added to a recording any more. Ending twice does nothing.
func EndRecording(handle int64) (err error) {
	defer guard(&err)
	r, err := recordingOf(handle)
	if err != nil || r.object.ended != trace.Forever {
		return err
	}
	r.object.ended = r.world.Engine.Now()
	for l, n := range r.world.carried() {
		r.object.carried[l] = n - r.object.carried[l]
	}
	r.world.EndRecording(r.object.Recording)
	return nil
}

// Annotate records that a rank's host was in something that its program calls name, from a time in picoseconds until
// now.
func Annotate(worldHandle int64, rank int, name string, from int64) (err error) {
	defer guard(&err)
	_, r, err := rankOf(worldHandle, rank)
	if err == nil {
		r.Annotate(name, sim.Time(from))
	}
	return err
}

// UsesMemory records how much of its device's memory a rank's program has in use from now on, in bytes.
func UsesMemory(worldHandle int64, rank int, bytes int64) (err error) {
	defer guard(&err)
	_, r, err := rankOf(worldHandle, rank)
	if err == nil {
		r.UsesMemory(bytes)
	}
	return err
}

// WriteRecording writes a recording to a file, compressed when its name ends in .gz. format is chrome or perfetto, which
// are of all ranks, or kineto or chakra, which are of one rank: options say which, as JSON of kineto.Options.
func WriteRecording(handle int64, path, format, options string) (err error) {
	defer guard(&err)
	r, err := recordingOf(handle)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return r.object.write(w, format, options) }
	if strings.HasSuffix(path, ".gz") {
		err = compressed(file, write)
	} else {
		err = write(file)
	}
	return errors.Join(err, file.Close())
}

// compressed writes through gzip, quickly and without a time, so that equal runs have equal files.
func compressed(file io.Writer, write func(io.Writer) error) error {
	buffer := bufio.NewWriterSize(file, 1<<16)
	z, err := gzip.NewWriterLevel(buffer, gzip.BestSpeed)
	if err != nil {
		return err
	}
	return errors.Join(write(z), z.Close(), buffer.Flush())
}

func (r *recording) write(w io.Writer, format, options string) error {
	switch format {
	case "chrome":
		return chrome.Write(w, r.Recording)
	case "perfetto":
		return perfetto.Write(w, r.Recording)
	case "chakra", "kineto":
		var o kineto.Options
		if err := json.Unmarshal([]byte(options), &o); err != nil {
			return err
		}
		if o.Rank < 0 || o.Rank >= r.Topology.SIPs() {
			return raise("ValueError", "there is no rank %d: topology %q has %d SIPs", o.Rank, r.Topology.Name, r.Topology.SIPs())
		}
		if format == "chakra" {
			return chakra.Write(w, r.Recording, o.Rank)
		}
		return kineto.Write(w, r.Recording, o)
	}
	return raise("ValueError", "%q is no format of a trace: the formats are chakra, chrome, kineto and perfetto", format)
}

// ReadRecording returns what WriteRecording writes in format kineto.
func ReadRecording(handle int64, options string) (text string, err error) {
	defer guard(&err)
	r, err := recordingOf(handle)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = r.object.write(&b, "kineto", options)
	return b.String(), err
}

// link is a link as RecordedFabric has it; bandwidth in bytes per second.
type link struct {
	Name      string `json:"name"`
	From      string `json:"from"`
	To        string `json:"to"`
	Bandwidth int64  `json:"bandwidth"`
	Bytes     int64  `json:"bytes"`
}

// RecordedFabric returns, of a recording that has ended, JSON: its simulated begin and end in picoseconds, the ranks that
// did something, the topology's name and spec, and what the links have carried. Links inside of SIPs that have carried
// nothing are left out.
func RecordedFabric(handle int64) (about string, err error) {
	defer guard(&err)
	r, err := recordingOf(handle)
	if err != nil {
		return "", err
	}
	if r.object.ended == trace.Forever {
		return "", raise("RuntimeError", "the recording has not ended")
	}
	t := r.world.Topology
	text, err := json.Marshal(map[string]any{
		"start": int64(r.object.began), "end": int64(r.object.ended), "level": r.object.Level.String(),
		"left_out": r.object.LeftOut, "ranks": r.object.present(), "topology": t.Name, "spec": t.Spec(), "links": r.object.links(t),
	})
	return string(text), err
}

func (r *recording) links(t *topology.Topology) []link {
	list := []link{}
	for id, bytes := range r.carried {
		l := t.Link(topology.LinkID(id))
		from, to := t.Device(l.From), t.Device(l.To)
		if bytes > 0 || from.SIP != to.SIP {
			list = append(list, link{t.LinkName(l.ID), from.Name(), to.Name(), l.Bandwidth, bytes})
		}
	}
	return list
}

// present lists the ranks that the recording has something of.
func (r *recording) present() []int {
	found := make([]bool, r.Topology.SIPs())
	for i := range r.Activities {
		found[r.Activities[i].Rank] = true
	}
	for i := range r.Spans {
		found[r.Spans[i].Rank] = true
	}
	list := []int{}
	for rank, yes := range found {
		if yes {
			list = append(list, rank)
		}
	}
	return list
}
