package host

import (
	"bufio"
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
	"github.com/torchemu/torchemu/torchemu/trace/usage"
)

// Recording is one in the making or done, and what the links had carried before it.
type Recording struct {
	*trace.Recording
	world   *World
	carried []int64
	began   sim.Time
	ended   sim.Time // trace.Forever while it is in the making
}

// RecordingOf finds a recording whose World is open.
func RecordingOf(handle int64) (*Recording, error) {
	r, err := OwnedBy[*Recording](handle, "recording")
	return r.Object, err
}

// carried is what each link has carried so far.
func (w *World) carried() []int64 {
	list := make([]int64, w.Topology.NumLinks())
	for l := range list {
		list[l] = w.Network.LinkBytes(topology.LinkID(l))
	}
	return list
}

// NewRecording begins a recording, of no rank yet, and returns its handle.
func NewRecording(w *World, level trace.Level) int64 {
	return Own(w, &Recording{Recording: w.Record(level), world: w, carried: w.carried(), began: w.Engine.Now(), ended: trace.Forever})
}

// EachRank does something at the host time of a rank, or of each for rank -1.
func (r *Recording) EachRank(rank int, do func(rec *trace.Recording, rank int, at sim.Time)) error {
	first, last := rank, rank
	if rank == -1 {
		first, last = 0, r.world.Topology.SIPs()-1
	}
	for i := first; i <= last; i++ {
		host, err := r.world.Rank(i)
		if err != nil {
			return err
		}
		do(r.Recording, i, host.Now())
	}
	return nil
}

// End makes sure that nothing is added any more. Ending twice does nothing.
func (r *Recording) End() {
	if r.ended != trace.Forever {
		return
	}
	r.ended = r.world.Engine.Now()
	for l, n := range r.world.carried() {
		r.carried[l] = n - r.carried[l]
	}
	r.world.EndRecording(r.Recording)
}

// WriteFile writes the recording to a file, compressed when its name ends in .gz.
func (r *Recording) WriteFile(path, format, options string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return r.Write(w, format, options) }
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

// Write writes the recording in a format; options are JSON of kineto.Options, for those of one rank.
func (r *Recording) Write(w io.Writer, format, options string) error {
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
			return Raise("ValueError", "there is no rank %d: topology %q has %d SIPs", o.Rank, r.Topology.Name, r.Topology.SIPs())
		}
		if format == "chakra" {
			return chakra.Write(w, r.Recording, o.Rank)
		}
		return kineto.Write(w, r.Recording, o)
	}
	return Raise("ValueError", "%q is no format of a trace: the formats are chakra, chrome, kineto and perfetto", format)
}

// link is a link as RecordedFabric has it; bandwidth in bytes per second.
type link struct {
	Name      string `json:"name"`
	From      string `json:"from"`
	To        string `json:"to"`
	Bandwidth int64  `json:"bandwidth"`
	Bytes     int64  `json:"bytes"`
}

func (r *Recording) links(t *topology.Topology) []link {
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
func (r *Recording) present() []int {
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

// Fabric describes a recording that has ended, as JSON; see RecordedFabric.
func (r *Recording) Fabric() (string, error) {
	if r.ended == trace.Forever {
		return "", Raise("RuntimeError", "the recording has not ended")
	}
	t := r.world.Topology
	about := map[string]any{
		"start": int64(r.began), "end": int64(r.ended), "level": r.Level.String(),
		"left_out": r.LeftOut, "ranks": r.present(), "topology": t.Name, "spec": t.Spec(), "links": r.links(t),
	}
	if r.Level >= trace.Links {
		about["lanes"], about["use"] = usage.Of(r.Recording, r.began, r.ended)
	}
	text, err := json.Marshal(about)
	return string(text), err
}
