package tp_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/tp"
)

// copies gives every rank the same; shards a part each.
func copies(a array, n int) byRank { return slices.Repeat(byRank{a}, n) }

func shards(a array, dim, n int, divided bool) byRank {
	if !divided {
		return copies(a, n)
	}
	return cut(a, dim, n)
}

// bothPasses runs through both plans of a layer.
func bothPasses(p tp.Plans, inputs []byRank, dy byRank) (y byRank, grads map[string]byRank) {
	outputs, saved := evaluate(p.Forward, inputs...)
	return outputs[0], back(p, dy, saved)
}

// back is the gradients that the backward plan makes of that of the output, by name.
func back(p tp.Plans, dy byRank, saved []byRank) map[string]byRank {
	grads := map[string]byRank{}
	made, _ := evaluate(p.Backward, append([]byRank{dy}, saved...)...)
	for i, o := range p.Backward.Outputs {
		grads[o.Name] = made[i]
	}
	return grads
}

// alike verifies what every rank has.
func alike(t *testing.T, what string, got, want byRank) {
	t.Helper()
	for r := range want {
		expect(t, fmt.Sprintf("%s of rank %d", what, r), got[r], want[r], within(1e-12))
	}
}

// The plans of a column-parallel layer make what the undivided layer does.
func TestColumnPlans(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 21))
	for _, n := range degrees {
		data := randomLayer(func(shape ...int) array { return noise(rng, dtype.F64, shape...) })
		want := newLinearOracle(data.x, data.w, data.b, data.dy)
		for mode := range 8 {
			sp, gather, frozen := mode&1 != 0, mode&2 != 0, mode&4 != 0
			o := tp.ColumnPasses{Ranks: n, SequenceParallel: sp, GatherOutput: gather, Bias: true, WeightGrad: !frozen, BiasGrad: true}
			inputs := []byRank{shards(data.x, 0, n, sp), cut(data.w, 0, n), cut(data.b, 0, n)}
			y, grads := bothPasses(o.Plans(), inputs, shards(data.dy, 2, n, !gather))
			what := fmt.Sprintf("tp %d, %+v: ", n, o)
			alike(t, what+"output", y, shards(want.y, 2, n, !gather))
			alike(t, what+"gradient of the input", grads["input"], shards(want.dx, 0, n, sp))
			alike(t, what+"gradient of the bias", grads["bias"], cut(want.db, 0, n))
			if !frozen {
				alike(t, what+"gradient of the weight", grads["weight"], cut(want.dw, 0, n))
			}
		}
	}
}

// Those of a row-parallel layer, too. With sequence parallelism a rank has the bias's gradient of its tokens.
func TestRowPlans(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 22))
	for _, n := range degrees {
		data := randomLayer(func(shape ...int) array { return noise(rng, dtype.F64, shape...) })
		want := newLinearOracle(data.x, data.w, data.b, data.dy)
		for mode := range 8 {
			sp, parallel, frozen := mode&1 != 0, mode&3 != 0, mode&4 != 0
			o := tp.RowPasses{Ranks: n, SequenceParallel: sp, InputIsParallel: parallel, Bias: true, InputGrad: true, WeightGrad: !frozen, BiasGrad: true}
			inputs := []byRank{shards(data.x, 2, n, parallel), cut(data.w, 1, n), copies(data.b, n)}
			y, grads := bothPasses(o.Plans(), inputs, shards(data.dy, 0, n, sp))
			what := fmt.Sprintf("tp %d, %+v: ", n, o)
			alike(t, what+"output", y, shards(want.y, 0, n, sp))
			alike(t, what+"gradient of the input", grads["input"], shards(want.dx, 2, n, parallel))
			if !frozen {
				alike(t, what+"gradient of the weight", grads["weight"], cut(want.dw, 1, n))
			}
			bias := grads["bias"]
			if sp {
				bias = everywhere(total)(bias)
			}
			alike(t, what+"gradient of the bias", bias, copies(want.db, n))
		}
	}
}

func TestEmbeddingPlans(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 23))
	shape := []int{batch, sequence}
	for _, n := range degrees {
		for _, scatter := range []bool{false, true} {
			list, tokens := tokensOf(rng, shape...)
			table := noise(rng, dtype.F64, vocabulary, hidden)
			want := lookedUp(table, list, shape, scatter)
			dy := noise(rng, dtype.F64, want.shape...)
			dw, _ := tableGrad(dy, list, shape, scatter)
			o := tp.EmbeddingPasses{Ranks: n, Part: vocabulary / n, ReduceScatterEmbeddings: scatter}
			y, grads := bothPasses(o.Plans(), []byRank{copies(tokens, n), cut(table, 0, n)}, shards(dy, 0, n, scatter))
			what := fmt.Sprintf("tp %d, %+v: ", n, o)
			alike(t, what+"rows", y, shards(want, 0, n, scatter))
			alike(t, what+"gradient", grads["weight"], cut(dw, 0, n))
		}
	}
}

func TestLossPlans(t *testing.T) {
	rng := rand.New(rand.NewPCG(24, 24))
	for _, n := range degrees {
		for _, smoothing := range []float64{0, 0.1, 0.75} {
			logits, dloss := noise(rng, dtype.F64, 5, 3, vocabulary), noise(rng, dtype.F64, 5, 3)
			list, target := tokensOf(rng, 5, 3)
			part := vocabulary / n
			spread := smoothing * float64(part) / float64(part-1)
			o := tp.LossPasses{Ranks: n, Part: part, DType: "bfloat16", LabelSmoothing: smoothing}
			y, grads := bothPasses(o.Plans(), []byRank{cut(logits, 2, n), copies(target, n)}, copies(dloss, n))
			for r := range n {
				loss, grad := crossEntropyOracle(logits, list, spread, dloss.values, r*part, (r+1)*part)
				what := fmt.Sprintf("tp %d, smoothing %v, rank %d: ", n, smoothing, r)
				expect(t, what+"loss", y[r], loss, within(1e-12))
				expect(t, what+"gradient", grads["logits"][r], grad.part(2, r, n), within(1e-12))
			}
		}
	}
}

// Mappings have the plans that they are described by, and these do what they mean.
func TestMappingPlans(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 25))
	for i, m := range mappings {
		for _, n := range degrees {
			options := fmt.Sprintf(`{"ranks": %d, "tensor_parallel_output_grad": %v}`, n, megatron[i].reduces)
			plans, err := tp.Describe(megatron[i].name, []byte(options))
			if err != nil {
				t.Fatal(err)
			}
			xs, dys := make(byRank, n), make(byRank, n)
			for r := range n {
				xs[r], dys[r] = noise(rng, dtype.F64, m.shape(n)...), noise(rng, dtype.F64, m.gradShape(n)...)
			}
			y, grads := bothPasses(plans, []byRank{xs}, dys)
			alike(t, fmt.Sprintf("%s, tp %d: forward", m.name, n), y, m.forward(xs))
			alike(t, fmt.Sprintf("%s, tp %d: backward", m.name, n), grads["input"], m.backward(dys))
		}
	}
}

// Gradients are those of finite differences, of all layers of a small model at once: tokens are looked up, go through a
// column- and a row-parallel layer with a square between them, and to logits, of which the loss is taken.
func TestPlansAgreeWithFiniteDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(26, 26))
	for _, n := range []int{1, 2, 4} {
		for _, sp := range []bool{false, true} {
			m := newPlannedModel(rng, n, sp)
			grads := m.gradients()
			for i, w := range m.weights {
				for range 5 {
					at := rng.IntN(len(w.values))
					const h = 1e-5
					old := w.values[at]
					w.values[at] = old + h
					above := m.loss()
					w.values[at] = old - h
					slope := (above - m.loss()) / (2 * h)
					w.values[at] = old
					if got := grads[i].values[at]; got < slope-1e-7 || got > slope+1e-7 {
						t.Errorf("tp %d, sp %v: the gradient of element %d of weight %d is %v, but the slope is %v", n, sp, at, i, got, slope)
					}
				}
			}
		}
	}
}

// plannedModel is a model whose layers are plans.
type plannedModel struct {
	n                     int
	weights               [4]array
	tokens, target, dloss array
	embed, up, down, head tp.Plans
	sp                    bool
}

func newPlannedModel(rng *rand.Rand, n int, sp bool) *plannedModel {
	_, tokens := tokensOf(rng, 4, 3)
	_, target := tokensOf(rng, 4, 3)
	m := &plannedModel{n: n, sp: sp, tokens: tokens, target: target, dloss: noise(rng, dtype.F64, 4, 3)}
	m.weights = [4]array{
		noise(rng, dtype.F64, vocabulary, hidden), noise(rng, dtype.F64, inner, hidden),
		noise(rng, dtype.F64, hidden, inner), noise(rng, dtype.F64, vocabulary, hidden),
	}
	if sp {
		m.tokens = turned(tokens)
	}
	m.embed = tp.EmbeddingPasses{Ranks: n, Part: vocabulary / n, ReduceScatterEmbeddings: sp}.Plans()
	m.up = tp.ColumnPasses{Ranks: n, SequenceParallel: sp, WeightGrad: true}.Plans()
	m.down = tp.RowPasses{Ranks: n, InputIsParallel: true, SequenceParallel: sp, InputGrad: true, WeightGrad: true}.Plans()
	m.head = tp.LossPasses{Ranks: n, Part: vocabulary / n, DType: "float64"}.Plans()
	return m
}

// run goes forward and returns the losses, and what goes back.
func (m *plannedModel) run() (loss array, grads func() [4]byRank) {
	rows, s0 := evaluate(m.embed.Forward, copies(m.tokens, m.n), cut(m.weights[0], 0, m.n))
	wide, s1 := evaluate(m.up.Forward, rows[0], cut(m.weights[1], 0, m.n))
	square := make(byRank, m.n)
	for r, a := range wide[0] {
		square[r] = elementwise(func(a, b float64) float64 { return a * b })(tp.Parameters{}, rank{}, []array{a, a})
	}
	narrow, s2 := evaluate(m.down.Forward, square, cut(m.weights[2], 1, m.n))
	logits, s3 := evaluate(m.up.Forward, narrow[0], cut(m.weights[3], 0, m.n))
	losses, s4 := evaluate(m.head.Forward, logits[0], copies(m.target, m.n))
	return losses[0][0], func() [4]byRank {
		dlogits := back(m.head, copies(m.dloss, m.n), s4)["logits"]
		head := back(m.up, dlogits, s3)
		down := back(m.down, head["input"], s2)
		slope := make(byRank, m.n)
		for r, a := range wide[0] {
			slope[r] = elementwise(func(a, b float64) float64 { return 2 * a * b })(tp.Parameters{}, rank{}, []array{a, down["input"][r]})
		}
		up := back(m.up, slope, s1)
		table := back(m.embed, up["input"], s0)
		return [4]byRank{table["weight"], up["weight"], down["weight"], head["weight"]}
	}
}

// loss is what the gradients are of.
func (m *plannedModel) loss() float64 {
	losses, _ := m.run()
	sum := 0.0
	for i, x := range losses.values {
		sum += x * m.dloss.values[i]
	}
	return sum
}

// gradients are those of the whole weights.
func (m *plannedModel) gradients() [4]array {
	_, grads := m.run()
	parts := grads()
	return [4]array{joined(0, parts[0]...), joined(0, parts[1]...), joined(1, parts[2]...), joined(0, parts[3]...)}
}
