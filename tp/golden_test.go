package tp_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/tp"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file instead of comparing with it")

// goldenFile is also what tests/python/test_tp_plans.py compares with: the same plans, run through by Python.
const goldenFile = "../tests/golden/tp_plans.txt"

// form is a layer as both languages can make it.
type form struct {
	Layer  string  `json:"layer"`
	Ranks  int     `json:"ranks"`
	DType  string  `json:"dtype"`
	SP     bool    `json:"sp"`    // sequence parallelism, or ReduceScatterEmbeddings
	Whole  bool    `json:"whole"` // of a column-parallel layer the output, of a row-parallel one the input
	Smooth float64 `json:"smooth"`
}

func forms() []form {
	var list []form
	for _, n := range []int{1, 2, 4} {
		for _, d := range []string{"float32", "bfloat16"} {
			for _, sp := range []bool{false, true}[:min(n, 2)] {
				for _, whole := range []bool{false, true} {
					if sp && whole {
						continue
					}
					list = append(list, form{Layer: "column", Ranks: n, DType: d, SP: sp, Whole: whole}, form{Layer: "row", Ranks: n, DType: d, SP: sp, Whole: whole})
				}
				list = append(list, form{Layer: "embedding", Ranks: n, DType: d, SP: sp})
			}
			list = append(list, form{Layer: "loss", Ranks: n, DType: d}, form{Layer: "loss", Ranks: n, DType: d, Smooth: 0.25})
		}
	}
	return list
}

// patterned is whole numbers from -2 to 2, whose sums and products every dtype holds.
func patterned(step int, shape ...int) array {
	a := zeros(shape...)
	for i := range a.values {
		a.values[i] = float64((step*i+i/5)%5 - 2)
	}
	return a
}

// tokensIn is tokens of a vocabulary.
func tokensIn(shape ...int) array {
	a := zeros(shape...)
	for i := range a.values {
		a.values[i] = float64((7*i + i/3) % vocabulary)
	}
	return a
}

// passesOf runs a layer forward and backward on a rank, and returns what each pass made.
func (f form) passesOf(c *tp.Comm) (forward func() ([]*tensor.Tensor, error), backward func() ([]*tensor.Tensor, error), err error) {
	d, err := dtype.Parse(f.DType)
	if err != nil {
		return nil, nil, err
	}
	switch f.Layer {
	case "column":
		return f.column(c, d)
	case "row":
		return f.row(c, d)
	case "embedding":
		return f.embedding(c, d)
	}
	return f.loss(c, d)
}

// shard is the rank's part of an array, where it is divided.
func shard(c *tp.Comm, a array, dim int, divided bool) array {
	if !divided {
		return a
	}
	return a.part(dim, c.Rank, c.Size())
}

type passFunc = func() ([]*tensor.Tensor, error)

// linearPasses are those of a linear layer.
func linearPasses(l linear, x, dy held) (passFunc, passFunc, error) {
	var out tp.Output
	forward := func() ([]*tensor.Tensor, error) {
		var err error
		out, err = l.Forward(x.Tensor)
		return []*tensor.Tensor{out.Output}, err
	}
	backward := func() ([]*tensor.Tensor, error) {
		g, err := l.Backward(out.Saved, dy.Tensor)
		return []*tensor.Tensor{g.Input, g.Weight, g.Bias}, err
	}
	return forward, backward, nil
}

func (f form) column(c *tp.Comm, d dtype.DType) (passFunc, passFunc, error) {
	l, err := tp.NewColumnParallelLinear(c, columnOptions(d, f.SP, f.Whole, false))
	if err != nil {
		return nil, nil, err
	}
	w, b := patterned(3, outputs, inputs).part(0, c.Rank, f.Ranks), patterned(4, outputs).part(0, c.Rank, f.Ranks)
	if err := set(l.Weight, w); err != nil {
		return nil, nil, err
	}
	if err := set(l.Bias, b); err != nil {
		return nil, nil, err
	}
	x, dy := shard(c, patterned(1, sequence, batch, inputs), 0, f.SP), shard(c, patterned(2, sequence, batch, outputs), 2, !f.Whole)
	return linearPasses(l, x.tensor(d), dy.tensor(d))
}

func (f form) row(c *tp.Comm, d dtype.DType) (passFunc, passFunc, error) {
	l, err := tp.NewRowParallelLinear(c, rowOptions(d, f.SP, !f.Whole, false))
	if err != nil {
		return nil, nil, err
	}
	if err := set(l.Weight, patterned(3, outputs, inputs).part(1, c.Rank, f.Ranks)); err != nil {
		return nil, nil, err
	}
	if err := set(l.Bias, patterned(4, outputs)); err != nil {
		return nil, nil, err
	}
	x, dy := shard(c, patterned(1, sequence, batch, inputs), 2, !f.Whole), shard(c, patterned(2, sequence, batch, outputs), 0, f.SP)
	return linearPasses(l, x.tensor(d), dy.tensor(d))
}

func (f form) embedding(c *tp.Comm, d dtype.DType) (passFunc, passFunc, error) {
	l, err := tp.NewVocabParallelEmbedding(c, tp.EmbeddingOptions{
		NumEmbeddings: vocabulary, EmbeddingDim: hidden, DType: d, ReduceScatterEmbeddings: f.SP,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := set(l.Weight, patterned(3, vocabulary, hidden).part(0, c.Rank, f.Ranks)); err != nil {
		return nil, nil, err
	}
	dy := patterned(2, batch, sequence, hidden)
	if f.SP {
		dy = patterned(2, sequence, batch, hidden).part(0, c.Rank, f.Ranks)
	}
	tokens, grad := tokensIn(batch, sequence).tensor(dtype.I64), dy.tensor(d)
	var saved *tp.SavedTokens
	return func() (made []*tensor.Tensor, err error) {
			y, s, err := l.Forward(tokens.Tensor)
			saved = s
			return []*tensor.Tensor{y}, err
		}, func() ([]*tensor.Tensor, error) {
			g, err := l.Backward(saved, grad.Tensor)
			return []*tensor.Tensor{g}, err
		}, nil
}

func (f form) loss(c *tp.Comm, d dtype.DType) (passFunc, passFunc, error) {
	logits := patterned(3, sequence, batch, vocabulary).part(2, c.Rank, f.Ranks).tensor(d)
	target, grad := tokensIn(sequence, batch).tensor(dtype.I64), patterned(1, sequence, batch).tensor(dtype.F32)
	var saved *tp.CrossEntropy
	return func() ([]*tensor.Tensor, error) {
			y, s, err := tp.VocabParallelCrossEntropy(c, logits.Tensor, target.Tensor, f.Smooth)
			saved = s
			return []*tensor.Tensor{y}, err
		}, func() ([]*tensor.Tensor, error) {
			g, err := saved.Backward(grad.Tensor)
			return []*tensor.Tensor{g}, err
		}, nil
}

// run is what a rank's passes make, and how long they take.
func (f form) run(p *multiprocessing.Process, c *tp.Comm) (string, error) {
	forward, backward, err := f.passesOf(c)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("rank %d:", p.ID)
	for _, pass := range []passFunc{forward, backward} {
		start := p.Now()
		made, err := pass()
		if err != nil {
			return "", err
		}
		if err := c.Wait(made...); err != nil {
			return "", err
		}
		line += fmt.Sprintf(" %d ps", int64(p.Now()-start))
		for _, t := range made {
			line += " " + f.shown(t)
		}
	}
	return line, nil
}

// shown is a checksum of the elements of a tensor. Losses are not whole numbers, and round where exponentials do, which
// is not the same everywhere: of them it is the sum, in few digits.
func (f form) shown(t *tensor.Tensor) string {
	if f.Layer != "loss" {
		return fmt.Sprintf("%08x", crc32.ChecksumIEEE(t.Gather()))
	}
	sum := 0.0
	for _, x := range (held{t}).array().values {
		sum += max(x, -x)
	}
	return fmt.Sprintf("%.3g", sum)
}

// What plans make and how long they take. Launches take no time here, so that times are those of the kernels and the
// collectives alone.
func TestGoldenPlans(t *testing.T) {
	var text strings.Builder
	for _, f := range forms() {
		head, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s\n", head)
		lines := make([]string, f.Ranks)
		c := newClusterOn(t, load(t, fmt.Sprintf("{sips: {count: %d}}\nhost: {launch_overhead: 0}", f.Ranks)), distributed.Options{})
		err = c.spawn(t, func(p *multiprocessing.Process, comm *tp.Comm) error {
			var err error
			lines[p.ID], err = f.run(p, comm)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", head, err)
		}
		fmt.Fprintf(&text, "    %s\n", strings.Join(lines, "\n    "))
	}
	compareGolden(t, text.String())
}

func compareGolden(t *testing.T, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(goldenFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatalf("%v; go test -run %s -rewrite writes it", err, t.Name())
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s\ngo test -run %s -rewrite accepts it", got, want, t.Name())
	}
}
