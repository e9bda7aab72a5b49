package kineto_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
	"github.com/torchemu/torchemu/torchemu/trace/kineto"
)

const us = sim.Microsecond

// sample is a recording of rank 1, and of another rank that is to be left out.
func sample(t *testing.T) *trace.Recording {
	t.Helper()
	topo, err := topology.Load("default")
	if err != nil {
		t.Fatal(err)
	}
	g := &trace.Group{ID: 0, Name: "default", Ranks: []int{0, 1, 2, 3}}
	call := &trace.Call{
		Name: "all_gather_into_tensor", Collective: collective.AllGather, Algorithm: "ring", Group: g, Seq: 7, Root: -1,
		Elems: 32, Bytes: 64, Steps: 12,
	}
	reduce := &trace.Call{
		Name: "reduce", Collective: collective.Reduce, Algorithm: "chain", Op: "sum", Group: g, Seq: 8, Root: 2, Elems: 32, Bytes: 64,
	}
	stream := trace.Track{Kind: trace.StreamTrack, Name: "stream 0"}
	group := trace.Track{Kind: trace.GroupTrack, Name: "default"}
	return &trace.Recording{
		Topology: topo,
		Spans: []trace.Span{
			{Rank: 1, Wait: true, Name: "a \"kernel\"\n", Start: 30 * us, End: 40*us + 1},
			{Rank: 1, Name: "step", Start: 0, End: 50 * us},
			{Rank: 0, Name: "other", Start: 0, End: 50 * us},
		},
		Activities: []trace.Activity{
			{Rank: 1, Kind: trace.Kernel, Name: "mm", Track: stream, Number: 1, Called: 0, Issued: 4 * us, Start: 4 * us, End: 9*us + 123456, Bytes: 10, Ops: 20, Unit: "matrix f16"},
			{Rank: 1, Kind: trace.CopyIn, Track: stream, Number: 2, Called: 4 * us, Issued: 8 * us, Start: 10 * us, End: 11 * us, Bytes: 2_000_000},
			{Rank: 1, Kind: trace.Collective, Name: call.Name, Track: group, Number: 3, Called: 8 * us, Issued: 12 * us, Start: 13 * us, End: 20 * us, Bytes: 64, DType: "bf16", Site: "a.py:3 in f", Call: call, In: []int{8}, Out: []int{32}, Group: g, Member: 1, Peer: -1},
			{Rank: 1, Kind: trace.Collective, Name: "reduce", Track: group, Number: 4, Called: 12 * us, Issued: 16 * us, Start: 20 * us, End: 22 * us, DType: "f32", Call: reduce, In: []int{30, 2}, Out: nil, Group: g, Member: 1},
			{Rank: 1, Kind: trace.Receive, Name: "recv from 3", Track: trace.Track{Kind: trace.MessageTrack, Name: "default"}, Number: 5, Called: 16 * us, Issued: 20 * us, Start: 20 * us, End: 21 * us, Bytes: 4, DType: "i64", Out: []int{2}, Group: g, Member: 1, Peer: 3, Tag: 9},
			{Rank: 0, Kind: trace.Kernel, Name: "not mine", Track: stream, Number: 6},
		},
		Steps: []trace.Step{
			{Call: call, Rank: 1, Index: 4, Src: 1, Dst: 2, Reduce: true, Bytes: 16, Start: 13 * us, Arrived: 14 * us, Combine: 14 * us, End: 15 * us},
			{Call: call, Rank: 0, Index: 5, Src: 0, Dst: 1},
		},
	}
}

// document is a file as any reader of JSON sees it.
type document struct {
	DistributedInfo struct {
		Backend   string
		Rank      int
		WorldSize int `json:"world_size"`
		Groups    []struct {
			Name  string `json:"pg_name"`
			Ranks []int
		} `json:"pg_config"`
	}
	DisplayTimeUnit string
	Note            string
	TraceEvents     []event
}

type event struct {
	Ph, Cat, Name string
	PID, TID      int
	ID            int
	TS, Dur       json.Number
	Args          map[string]any
}

func written(t *testing.T, rec *trace.Recording) (document, []byte) {
	t.Helper()
	var b bytes.Buffer
	note := map[string]json.RawMessage{"note": json.RawMessage(`"as said"`)}
	if err := kineto.Write(&b, rec, kineto.Options{Rank: 1, Ranks: 4, Metadata: note}); err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	return d, b.Bytes()
}

func TestHeader(t *testing.T) {
	d, text := written(t, sample(t))
	if got := fmt.Sprintf("%+v %s %s", d.DistributedInfo, d.DisplayTimeUnit, d.Note); got !=
		"{Backend:nccl Rank:1 WorldSize:4 Groups:[{Name:0 Ranks:[0 1 2 3]}]} ns as said" {
		t.Error(got)
	}
	found := regexp.MustCompile(`"rank":\s+(\d+)`).FindSubmatch(text) // as HTA looks for it
	if found == nil || string(found[1]) != "1" {
		t.Errorf("found %q", found)
	}
}

func TestHostAndDevice(t *testing.T) {
	d, _ := written(t, sample(t))
	var got []string
	for _, e := range d.TraceEvents {
		if e.Ph == "X" {
			got = append(got, fmt.Sprintf("%d.%d %s+%s %s %s", e.PID, e.TID, e.TS, e.Dur, e.Cat, e.Name))
		}
	}
	want := []string{
		"100001.100001 0.000+50.000 user_annotation step",
		"100001.100001 0.000+4.000 cpu_op aten::mm",
		"100001.100001 0.000+4.000 cuda_runtime cudaLaunchKernel",
		"100001.100001 4.000+4.000 cpu_op aten::copy_",
		"100001.100001 4.000+4.000 cuda_runtime cudaMemcpyAsync",
		"100001.100001 8.000+4.000 cpu_op c10d::_allgather_base_",
		"100001.100001 8.000+4.000 cpu_op record_param_comms",
		"100001.100001 8.000+4.000 cuda_runtime cudaLaunchKernelExC",
		"100001.100001 12.000+4.000 cpu_op c10d::reduce_",
		"100001.100001 12.000+4.000 cpu_op record_param_comms",
		"100001.100001 12.000+4.000 cuda_runtime cudaLaunchKernelExC",
		"100001.100001 16.000+4.000 cpu_op c10d::recv_",
		"100001.100001 16.000+4.000 cpu_op record_param_comms",
		"100001.100001 16.000+4.000 cuda_runtime cudaLaunchKernelExC",
		"100001.100001 30.000+10.000 cuda_runtime cudaEventSynchronize",
		"1.7 4.000+5.123 kernel mm",
		"1.7 10.000+1.000 gpu_memcpy Memcpy HtoD (Pinned -> Device)",
		"1.8 13.000+7.000 kernel ncclKernel_AllGather_RING",
		"1.8 20.000+2.000 kernel ncclKernel_Reduce_Sum_f32_CHAIN",
		"1.9 20.000+1.000 kernel ncclKernel_SendRecv",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Each activity of the device has the number of one call of the driver, and an arrow from there.
func TestCorrelation(t *testing.T) {
	d, _ := written(t, sample(t))
	host, device, from, to := map[any]int{}, map[any]int{}, map[any]int{}, map[any]int{}
	for _, e := range d.TraceEvents {
		number, ok := e.Args["correlation"]
		switch {
		case ok && e.Cat == "cuda_runtime":
			host[number]++
		case ok:
			device[number]++
			if e.Args["stream"] != float64(e.TID) || e.Args["device"] != float64(1) {
				t.Errorf("%s is on %v of %v", e.Name, e.Args["stream"], e.Args["device"])
			}
		case e.Ph == "s":
			from[float64(e.ID)]++
		case e.Ph == "f":
			to[float64(e.ID)]++
		}
	}
	want := "map[1:1 2:1 3:1 4:1 5:1]"
	for _, got := range []map[any]int{host, device, from, to} {
		if fmt.Sprint(got) != want {
			t.Errorf("numbers %v, want %s", got, want)
		}
	}
}

func TestArguments(t *testing.T) {
	d, _ := written(t, sample(t))
	for name, want := range map[string]string{
		"ncclKernel_AllGather_RING":       "_allgather_base 8 32 4 BFloat16 [] [] 0 default [0, 1, 2, 3] 1 7 <nil> <nil> <nil> 0 1",
		"ncclKernel_Reduce_Sum_f32_CHAIN": "reduce 32 0 4 Float [30, 2] [] 0 default [0, 1, 2, 3] 1 8 <nil> <nil> 2 0 1",
		"ncclKernel_SendRecv":             "recv 0 2 4 Long [] [] 0 default [0, 1, 2, 3] 1 <nil> 3 1 <nil> 0 1",
	} {
		e := only(t, d, name)
		var got []string
		for _, key := range []string{
			"Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "In split size", "Out split size",
			"Process Group Name", "Process Group Description", "Process Group Ranks", "Rank", "Seq", "Src Rank", "Dst Rank", "root",
			"Global rank start", "Global rank stride",
		} {
			got = append(got, fmt.Sprint(e.Args[key]))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %s, want %s", name, strings.Join(got, " "), want)
		}
	}
	var said []string
	for _, e := range d.TraceEvents {
		if e.Name == "record_param_comms" {
			for _, key := range []string{
				"Collective name", "In msg nelems", "Out msg nelems", "Process Group Name", "Group size", "dtype", "Dst Rank",
				"algorithm",
			} {
				said = append(said, fmt.Sprint(e.Args[key]))
			}
		}
	}
	want := "[_allgather_base 8 32 0 4 BFloat16 <nil> <nil> reduce 32 0 0 4 Float <nil> <nil> recv 0 2 0 4 Long 1 <nil>]"
	if got := fmt.Sprint(said); got != want {
		t.Errorf("the host has %s, want %s", got, want)
	}
	if got := only(t, d, "Memcpy HtoD (Pinned -> Device)").Args["memory bandwidth (GB/s)"]; got != 2000.0 {
		t.Errorf("2 MB in 1 us are %v GB/s", got)
	}
	if got := only(t, d, "cudaEventSynchronize").Args["waits for"]; got != "a \"kernel\"\n" {
		t.Errorf("it waits for %q", got)
	}
	if got := only(t, d, "c10d::_allgather_base_").Args["Call site"]; got != "a.py:3 in f" {
		t.Errorf("called at %v", got)
	}
}

func only(t *testing.T, d document, name string) event {
	t.Helper()
	var found []event
	for _, e := range d.TraceEvents {
		if e.Name == name {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d events are called %s", len(found), name)
	}
	return found[0]
}

func TestStepsOfTheRankAreAsynchronousBars(t *testing.T) {
	d, _ := written(t, sample(t))
	var got []string
	for _, e := range d.TraceEvents {
		if e.Cat == "step" {
			got = append(got, fmt.Sprintf("%s %s %d %d %s", e.Ph, e.Name, e.PID, e.ID, e.TS))
		}
	}
	if s := strings.Join(got, ", "); s != "b reduce into 2 1 1 13.000, e reduce into 2 1 1 15.000" {
		t.Error(s)
	}
}

func TestAnEmptyRecordingIsAFile(t *testing.T) {
	d, _ := written(t, &trace.Recording{Topology: sample(t).Topology})
	for _, e := range d.TraceEvents {
		if e.Ph != "M" {
			t.Errorf("%+v", e)
		}
	}
	if len(d.DistributedInfo.Groups) != 0 {
		t.Errorf("%+v", d.DistributedInfo)
	}
}

// A profile of the host alone, or of the device alone, has no arrows between them.
func TestHostOrDeviceAlone(t *testing.T) {
	for _, c := range []struct {
		options kineto.Options
		want    string
	}{
		{kineto.Options{Rank: 1, NoHost: true}, "map[gpu_memcpy:1 kernel:4 step:2]"},
		{kineto.Options{Rank: 1, NoDevice: true}, "map[cpu_op:8 cuda_runtime:6 user_annotation:1]"},
	} {
		var b bytes.Buffer
		if err := kineto.Write(&b, sample(t), c.options); err != nil {
			t.Fatal(err)
		}
		var d document
		if err := json.Unmarshal(b.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, e := range d.TraceEvents {
			if e.Ph != "M" {
				counts[e.Cat]++
			}
		}
		if got := fmt.Sprint(counts); got != c.want {
			t.Errorf("%+v: %s, want %s", c.options, got, c.want)
		}
	}
}

// A stream that waits for a collective's end says so, in PyTorch's words.
func TestWaitsOfStreams(t *testing.T) {
	rec := sample(t)
	stream := rec.Activities[0].Track
	rec.Activities = append(rec.Activities, trace.Activity{
		Rank: 1, Kind: trace.Kernel, Name: "relu", Track: stream, Number: 8, Called: 17 * us, Issued: 18 * us, Start: 22 * us, End: 23 * us,
	})
	d, _ := written(t, rec)
	var got []string
	for _, e := range d.TraceEvents {
		if e.Cat == "cuda_sync" {
			got = append(got, fmt.Sprintf("%s %d.%d %s+%s %v", e.Name, e.PID, e.TID, e.TS, e.Dur, e.Args))
		}
	}
	want := "Stream Wait Event 1.7 18.000+4.000 map[wait_on_correlation:4 wait_on_stream:8 waits for:reduce]"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestMemoryIsACounterOfTheDevice(t *testing.T) {
	rec := sample(t)
	rec.Memory = []trace.MemoryUse{{Rank: 1, From: us, Bytes: 512}, {Rank: 0, From: us, Bytes: 9}, {Rank: 1, From: 2 * us}}
	d, _ := written(t, rec)
	var got []string
	for _, e := range d.TraceEvents {
		if e.Ph == "C" {
			got = append(got, fmt.Sprintf("%s %d %s %v", e.Name, e.PID, e.TS, e.Args))
		}
	}
	want := []string{"memory allocated 1 1.000 map[bytes:512]", "memory allocated 1 2.000 map[bytes:0]"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Perfetto rounds beginnings and lengths to nanoseconds, each for itself, and drops a bar of a row that then reaches
// beyond the end of the one it is in, or into the next one.
func TestBarsAreNestedInWholeNanoseconds(t *testing.T) {
	seed := uint64(20)
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rec := sample(t)
	rec.Spans, rec.Steps = []trace.Span{{Rank: 1, Name: "all", Start: 1, End: 1 * sim.Second}}, nil
	template := rec.Activities[0]
	rec.Activities = nil
	host, device := sim.Time(1), sim.Time(0)
	for i := range 2000 {
		a := template
		a.Number, a.Called = uint64(i+1), host
		host += sim.Time(rng.IntN(3000)) // picoseconds
		a.Issued = host
		a.Start = max(device, host)
		device = a.Start + sim.Time(rng.IntN(3000))
		a.End = device
		rec.Activities = append(rec.Activities, a)
	}
	d, _ := written(t, rec)
	ends := map[int][]int64{} // of the open bars of a row
	for _, e := range d.TraceEvents {
		if e.Ph != "X" {
			continue
		}
		start, end := rounded(t, e.TS), rounded(t, e.TS)+rounded(t, e.Dur)
		open := ends[e.TID]
		for len(open) > 0 && open[len(open)-1] <= start {
			open = open[:len(open)-1]
		}
		if len(open) > 0 && end > open[len(open)-1] {
			t.Fatalf("%s %s+%s ends after what it is in, at %d", e.Name, e.TS, e.Dur, open[len(open)-1])
		}
		ends[e.TID] = append(open, end)
	}
}

// Who reads times in the program gets them exactly.
func TestExactTimes(t *testing.T) {
	var b bytes.Buffer
	if err := kineto.Write(&b, sample(t), kineto.Options{Rank: 1, Ranks: 4, Exact: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ts": 30.000000, "dur": 10.000001`, `"ts": 4.000000, "dur": 5.123456`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

// rounded is a time in nanoseconds, as Perfetto has it.
func rounded(t *testing.T, number json.Number) int64 {
	t.Helper()
	microseconds, ok := new(big.Rat).SetString(number.String())
	if !ok {
		t.Fatalf("%s is no number", number)
	}
	nanoseconds, _ := new(big.Rat).Mul(microseconds, big.NewRat(1000, 1)).Float64()
	return int64(math.Round(nanoseconds))
}

// PyTorch says of the ranks of a group how far they are apart.
func TestStride(t *testing.T) {
	for _, c := range []struct {
		ranks []int
		want  string
	}{
		{[]int{5}, "5 0"}, {[]int{1, 3}, "1 2"}, {[]int{2, 6, 10}, "2 4"}, {[]int{3, 2, 1}, "3 -1"}, {[]int{0, 1, 3}, "0 -1"},
		{[]int{0, 2, 3}, "0 -1"},
	} {
		rec := sample(t)
		for i := range rec.Activities {
			if g := rec.Activities[i].Group; g != nil {
				rec.Activities[i].Group = &trace.Group{ID: g.ID, Name: g.Name, Ranks: c.ranks}
			}
		}
		d, _ := written(t, rec)
		args := only(t, d, "ncclKernel_SendRecv").Args
		if got := fmt.Sprint(args["Global rank start"], " ", args["Global rank stride"]); got != c.want {
			t.Errorf("ranks %v start and go on by %s, want %s", c.ranks, got, c.want)
		}
	}
}
