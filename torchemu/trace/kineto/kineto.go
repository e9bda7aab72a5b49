// Package kineto writes what a recording has of one rank in the shape in which PyTorch's profiler, whose tracing
// library is Kineto, writes its traces: so that what reads those, such as Perfetto and Holistic Trace Analysis (HTA),
// reads these. The host's calls are "cpu_op" and "cuda_runtime", the device's activities "kernel" and "gpu_memcpy", on
// a row for each stream, tied to the calls by "correlation"; collectives have the names of NCCL's kernels and the
// arguments that PyTorch gives them.
package kineto

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// firstStream is the number that CUPTI gives to the default stream.
const firstStream = 7

// hostPID is the made-up process of rank 0. Those of devices are their numbers.
const hostPID = 100_000

// Options say what is to be written.
type Options struct {
	Rank     int                        `json:"rank"`
	Ranks    int                        `json:"ranks"`   // of the job
	NoHost   bool                       `json:"no_host"` // leave out what the host did
	NoDevice bool                       `json:"no_device"`
	Exact    bool                       `json:"exact"`    // times in picoseconds, as no viewer takes them
	Metadata map[string]json.RawMessage `json:"metadata"` // further members of the file's object
}

// Write writes what a recording has of a rank.
func Write(w io.Writer, rec *trace.Recording, o Options) error {
	out := &writer{w: bufio.NewWriterSize(w, 1<<16), rec: rec, rank: o.Rank, event: object{exact: o.Exact}}
	rows := rec.Rows(o.Rank)
	if err := out.header(rows, o); err != nil {
		return err
	}
	out.names(rows)
	if !o.NoHost {
		out.host(!o.NoDevice)
	}
	if !o.NoDevice {
		out.device(rows, !o.NoHost)
		out.memory()
		out.steps()
	}
	out.line("\n]}\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// writer writes until the first error and remembers it.
type writer struct {
	w     *bufio.Writer
	err   error
	rec   *trace.Recording
	rank  int
	begun bool // an event has been written
	event object
}

func (o *writer) line(text string) {
	if o.err == nil {
		_, o.err = o.w.WriteString(text)
	}
}

// begin begins an event of the trace; end ends it.
func (o *writer) begin(phase, category, name string) *object {
	e := &o.event
	e.text = append(e.text[:0], '\n')
	if o.begun {
		e.text = append(e.text[:0], ",\n"...)
	}
	o.begun = true
	e.open()
	e.str("ph", phase)
	if category != "" {
		e.str("cat", category)
	}
	e.str("name", name)
	return e
}

func (o *writer) end() {
	o.event.close()
	if o.err == nil {
		_, o.err = o.w.Write(o.event.text)
	}
}

// bar begins a bar and its arguments; endBar ends both.
func (o *writer) bar(category, name string, pid, tid int, start, end sim.Time) *object {
	e := o.begin("X", category, name)
	e.num("pid", int64(pid))
	e.num("tid", int64(tid))
	e.span(start, end)
	e.nested("args")
	return e
}

func (o *writer) endBar() {
	o.event.close()
	o.end()
}

// group is an entry of "pg_config".
type group struct {
	Name        string `json:"pg_name"`
	Description string `json:"pg_desc"`
	Backend     string `json:"backend_config"`
	Size        int    `json:"pg_size"`
	Ranks       []int  `json:"ranks"`
}

// header writes all that comes before the events: distributedInfo first, where HTA looks for the rank.
func (o *writer) header(rows []trace.Row, options Options) error {
	groups := groupsOf(rows)
	topo := o.rec.Topology
	members := []struct {
		name  string
		value any
	}{
		{"schemaVersion", 1},
		{"distributedInfo", map[string]any{
			"backend": "nccl", "rank": o.rank, "world_size": options.Ranks, "pg_count": len(groups), "pg_config": groups,
			"nccl_version": "torchemu",
		}},
		{"deviceProperties", []map[string]any{{
			"id": o.rank, "name": "AHBM SIP of " + topo.Name,
			"totalGlobalMem": topo.Memory().Capacity * int64(topo.CubesPerSIP()), "numSms": topo.CubesPerSIP() * topo.PEsPerCube(),
		}}},
		{"displayTimeUnit", "ns"},
		{"baseTimeNanoseconds", 0},
		{"traceName", fmt.Sprintf("rank %d of %d on %s", o.rank, options.Ranks, topo.Name)},
		{"left_out", o.rec.LeftOut},
	}
	o.line("{")
	for _, m := range members {
		if err := o.member(m.name, m.value); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(options.Metadata) {
		if err := o.member(name, options.Metadata[name]); err != nil {
			return err
		}
	}
	o.line("\n" + `"traceEvents": [`)
	return nil
}

func (o *writer) member(name string, value any) error {
	text, err := json.MarshalIndent(map[string]any{name: value}, "", " ")
	if err != nil {
		return err
	}
	o.line(strings.TrimSuffix(strings.TrimPrefix(string(text), "{"), "\n}") + ",")
	return nil
}

func sortedKeys(m map[string]json.RawMessage) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// groupsOf lists the process groups of a rank's activities.
func groupsOf(rows []trace.Row) []group {
	list := []group{}
	for _, row := range rows {
		for _, a := range row.Activities {
			if a.Group == nil || slices.ContainsFunc(list, func(g group) bool { return g.Name == fmt.Sprint(a.Group.ID) }) {
				continue
			}
			list = append(list, group{
				fmt.Sprint(a.Group.ID), a.Group.Name, "cuda:nccl", len(a.Group.Ranks), a.Group.Ranks,
			})
		}
	}
	slices.SortFunc(list, func(a, b group) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// names writes what viewers call processes and rows.
func (o *writer) names(rows []trace.Row) {
	pid := hostPID + o.rank
	sip := o.rec.Topology.Device(o.rec.Topology.IO(o.rank))
	o.process(pid, "python", fmt.Sprintf("rank %d, host", o.rank), 0)
	o.process(o.rank, "python", fmt.Sprintf("rank %d, %s", o.rank, strings.TrimSuffix(sip.Name(), ".io")), 1)
	o.thread(pid, pid, "program", 0)
	for i, row := range rows {
		name := row.Track.Name
		switch row.Track.Kind {
		case trace.GroupTrack:
			name = "collectives of " + name
		case trace.MessageTrack:
			name = fmt.Sprintf("messages of %s, %d", name, row.Lane+1)
		}
		o.thread(o.rank, firstStream+i, name, firstStream+i)
	}
}

func (o *writer) process(pid int, name, labels string, order int) {
	o.meta("process_name", pid, 0).str("name", name)
	o.endBar()
	o.meta("process_labels", pid, 0).str("labels", labels)
	o.endBar()
	o.meta("process_sort_index", pid, 0).num("sort_index", int64(order))
	o.endBar()
}

func (o *writer) thread(pid, tid int, name string, order int) {
	o.meta("thread_name", pid, tid).str("name", name)
	o.endBar()
	o.meta("thread_sort_index", pid, tid).num("sort_index", int64(order))
	o.endBar()
}

func (o *writer) meta(name string, pid, tid int) *object {
	e := o.begin("M", "", name)
	e.time("ts", 0)
	e.num("pid", int64(pid))
	e.num("tid", int64(tid))
	e.nested("args")
	return e
}
