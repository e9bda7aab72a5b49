package tests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostFiles is how many files somebody has to touch for a kind of collective, in Go and in Python, besides tests.
const mostFiles = 6

// edit is what somebody writes into a file, behind the line that ends with a text; or a file of their own.
type edit struct{ file, behind, text string }

// toy reads the edits that add a kind of collective which there is not.
func toy(t *testing.T) []edit {
	t.Helper()
	var edits []edit
	for _, part := range strings.Split(read(t, "toy_kind.txt"), "\n== ")[1:] {
		head, text, _ := strings.Cut(part, "\n")
		file, behind, _ := strings.Cut(head, ": ")
		edits = append(edits, edit{file, behind, strings.TrimSuffix(text, "\n") + "\n"})
	}
	return edits
}

// With these edits the toy conforms, meets, has bits and times, and names in every trace: nothing else knows the kinds.
// What Python makes of it, and that these are all edits that Python needs, tests/python/c10d/test_toy_kind.py shows.
func TestAKindOfCollectiveTouchesFewFiles(t *testing.T) {
	edits := toy(t)
	touched := map[string]bool{}
	for _, e := range edits {
		touched[e.file] = true
	}
	if len(touched) > mostFiles || len(edits) == 0 {
		t.Errorf("a kind touches %d files, which should be 1 to %d", len(touched), mostFiles)
	}
	inGo := slices.DeleteFunc(edits, func(e edit) bool { return !strings.HasSuffix(e.file, ".go") })
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	write(t, overlay, overlaid(t, append(inGo, edit{file: "distributed/toy_test.go", text: toyTest})))
	command := exec.Command("go", "test", "-vet=off", "-overlay", overlay, "-run", "Toy", "./distributed")
	command.Dir = ".."
	if said, err := command.CombinedOutput(); err != nil || !strings.HasPrefix(string(said), "ok") {
		t.Errorf("%v\n%s", err, said)
	}
}

// overlaid applies edits to copies of the files, and is what go's -overlay reads.
func overlaid(t *testing.T, edits []edit) string {
	t.Helper()
	folder, contents, files := t.TempDir(), map[string]string{}, map[string]string{}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		if e.behind == "" {
			contents[e.file] = e.text
			continue
		}
		if _, begun := contents[e.file]; !begun {
			contents[e.file] = read(t, filepath.Join(root, e.file))
		}
		before, after, found := strings.Cut(contents[e.file], e.behind+"\n")
		if !found {
			t.Fatalf("%s has no line that ends with %q", e.file, e.behind)
		}
		contents[e.file] = before + e.behind + "\n" + e.text + after
	}
	for file, text := range contents {
		copied := filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
		write(t, copied, text)
		files[filepath.Join(root, file)] = copied
	}
	text, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// toyTest is how the toy's author tests it.
const toyTest = `package distributed_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/ccltest"
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/trace"
	"github.com/torchemu/torchemu/torchemu/trace/chakra"
	"github.com/torchemu/torchemu/torchemu/trace/kineto"
)

func TestToyConforms(t *testing.T) {
	for _, a := range ccl.Algorithms(collective.StarReduce) {
		ccltest.Check(t, a)
	}
}

func TestToyIsInTheConfiguration(t *testing.T) {
	c, err := ccl.ParseConfig("f", []byte("collectives: {star_reduce: direct}"))
	if err != nil || c.Resolve(4).For(collective.StarReduce) != "direct" {
		t.Errorf("got %v", err)
	}
	if _, err := ccl.ParseConfig("f", []byte("collectives: {star_reduce: ring}")); err == nil {
		t.Error("there is no ring of it")
	}
}

func starReduce(x *tensor.Tensor, root int) distributed.Operation {
	list := []*tensor.Tensor{x}
	return distributed.Operation{
		Name: "star_reduce", Collective: collective.StarReduce, Reduce: tensor.Sum, Root: root, Out: list, In: list,
	}
}

func TestToyRuns(t *testing.T) {
	c := newCluster(t, "sips8", distributed.Options{})
	rec := c.Record(trace.Collectives)
	for rank := range 8 {
		rec.Open(rank, 0)
	}
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(5, p.ID)
		w, err := c.group.Do(me(p), starReduce(x, 3))
		if err != nil {
			return err
		}
		if err := p.Wait(w.Event); err != nil {
			return err
		}
		if w.Duration() <= 0 {
			return fmt.Errorf("it took %v", w.Duration())
		}
		return expect(x, func(i int) int { return 8*i + 28 })
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Log[0]; r.BusBW() != r.AlgBW()*2*7/8 {
		t.Errorf("the bus bandwidth is %v of %v", r.BusBW(), r.AlgBW())
	}
	if took, err := c.group.Estimate(0, starReduce(ramp(5, 0), 3)); err != nil || took <= 0 {
		t.Errorf("it is estimated to take %v, %v", took, err)
	}
	c.EndRecording(rec)
	var events, nodes bytes.Buffer
	if err := kineto.Write(&events, rec, kineto.Options{Rank: 1}); err != nil {
		t.Fatal(err)
	}
	if err := chakra.Write(&nodes, rec, 1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"c10d::star_", "ncclKernel_Star_Sum_f32_DIRECT"} {
		if !strings.Contains(events.String(), name) {
			t.Errorf("Kineto's file has no %s", name)
		}
	}
	if number := "comm_type\x48\x4d"; !strings.Contains(nodes.String(), number) {
		t.Errorf("Chakra's file has no number 77 in %q", nodes.String())
	}
}

func TestToyDisagrees(t *testing.T) {
	c := newCluster(t, "sips8", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		w, err := c.group.Do(me(p), starReduce(ramp(5, 0), p.ID/7))
		if err != nil {
			return err
		}
		return p.Wait(w.Event)
	})
	if err == nil || !strings.Contains(err.Error(), "root 0") || !strings.Contains(err.Error(), "root 1") {
		t.Errorf("got %v", err)
	}
}
`
