package tp_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/tp"
)

// megatron is what the mappings of the test table are called by Megatron, in the same order.
var megatron = []struct {
	name    string
	reduces bool // the gradient, too
}{
	{"copy_to_tensor_model_parallel_region", false},
	{"reduce_from_tensor_model_parallel_region", false},
	{"scatter_to_tensor_model_parallel_region", false},
	{"gather_from_tensor_model_parallel_region", false},
	{"scatter_to_sequence_parallel_region", false},
	{"gather_from_sequence_parallel_region", true},
	{"gather_from_sequence_parallel_region", false},
	{"reduce_scatter_to_sequence_parallel_region", false},
	{"all_gather_last_dim_from_tensor_parallel_region", false},
	{"reduce_scatter_last_dim_to_tensor_parallel_region", false},
	{"all_to_all", false},
	{"all_to_all_sp2hp", false},
	{"all_to_all_hp2sp", false},
}

// described is a plan of every kind, in many forms: names and options of tp.Describe.
func described() map[string][]string {
	forms := map[string][]string{}
	add := func(name, format string, args ...any) {
		forms[name] = append(forms[name], fmt.Sprintf(format, args...))
	}
	for _, n := range []int{1, 2, 4} {
		for mode := range 256 {
			on := func(i int) bool { return mode>>i&1 != 0 }
			add("ColumnParallelLinear", `{"ranks": %d, "gather_output": %v, "sequence_parallel": %v, "explicit_expert_comm": %v,
				"disable_grad_reduce": %v, "bias": %v, "bias_grad": %v, "weight_grad": %v, "dtype": "float32", "output_dtype": %q}`,
				n, on(0), on(1), on(2), on(3), on(4), on(5) && on(4), on(6), []string{"", "float64"}[mode>>7])
			add("RowParallelLinear", `{"ranks": %d, "input_is_parallel": %v, "sequence_parallel": %v, "explicit_expert_comm": %v,
				"bias": %v, "bias_grad": %v, "weight_grad": %v, "input_grad": %v}`,
				n, on(0) || on(1), on(1), on(2), on(4), on(5) && on(4), on(6), on(7))
		}
		for _, scatter := range []bool{false, true} {
			add("VocabParallelEmbedding", `{"ranks": %d, "part": 3, "reduce_scatter_embeddings": %v}`, n, scatter)
		}
		for _, d := range []string{"bfloat16", "float32", "float64"} {
			for _, a := range []float64{0, 0.1} {
				add("vocab_parallel_cross_entropy", `{"ranks": %d, "part": 6, "dtype": %q, "label_smoothing": %v}`, n, d, a)
			}
		}
		for _, m := range megatron {
			add(m.name, `{"ranks": %d, "tensor_parallel_output_grad": %v}`, n, m.reduces)
		}
	}
	return forms
}

// eachPlan calls a test for every plan of every form.
func eachPlan(t *testing.T, check func(t *testing.T, what string, plans tp.Plans)) {
	t.Helper()
	for name, forms := range described() {
		for _, options := range forms {
			plans, err := tp.Describe(name, []byte(options))
			if err != nil {
				t.Fatalf("%s %s: %v", name, options, err)
			}
			check(t, name+" "+options, plans)
		}
	}
}

// A plan is the same for the same options, and all of it survives being written and read.
func TestPlansArePureData(t *testing.T) {
	onlyData(t, reflect.TypeFor[tp.Plans]())
	for name, forms := range described() {
		for _, options := range forms {
			first, err1 := tp.Describe(name, []byte(options))
			again, err2 := tp.Describe(name, []byte(options))
			text, err3 := json.Marshal(first)
			if err1 != nil || err2 != nil || err3 != nil || !reflect.DeepEqual(first, again) {
				t.Fatalf("%s %s: %v, %v, %v, or two plans differ", name, options, err1, err2, err3)
			}
			var read tp.Plans
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			if text2, err := json.Marshal(read); err != nil || string(text2) != string(text) {
				t.Errorf("%s %s: %s became %s (%v)", name, options, text, text2, err)
			}
		}
	}
}

// onlyData verifies that a type is made of numbers, texts, and lists of such.
func onlyData(t *testing.T, of reflect.Type) {
	t.Helper()
	switch of.Kind() {
	case reflect.Bool, reflect.Int, reflect.Float64, reflect.String:
	case reflect.Slice, reflect.Pointer:
		onlyData(t, of.Elem())
	case reflect.Struct:
		for i := range of.NumField() {
			onlyData(t, of.Field(i).Type)
		}
	default:
		t.Errorf("a plan has a %v", of)
	}
}

// Steps read what there is, wait for collectives before they read their results, and for each once.
func TestPlansAreInOrder(t *testing.T) {
	eachPlan(t, func(t *testing.T, what string, plans tp.Plans) {
		for _, p := range []*tp.Plan{plans.Forward, plans.Backward} {
			if err := checkOrder(p); err != nil {
				t.Errorf("%s: %s: %v", what, p.Name, err)
			}
		}
		if given, saved := len(plans.Backward.Inputs), len(plans.Forward.Saved); given != 1+saved {
			t.Errorf("%s: the backward plan is given %d values, the forward plan saves %d", what, given, saved)
		}
		for _, o := range plans.Backward.Outputs {
			if !slices.Contains(plans.Forward.Inputs, o.Name) {
				t.Errorf("%s: there is no %s to have a gradient", what, o.Name)
			}
		}
	})
}

// checkOrder runs through a plan without values.
func checkOrder(p *tp.Plan) error {
	there := make([]bool, p.Values)
	pending := map[int]tp.Value{} // results of collectives that nobody has waited for
	for i := range p.Inputs {
		there[i] = true
	}
	wait := func(at string, after []int) error {
		for _, c := range after {
			if _, ok := pending[c]; !ok {
				return fmt.Errorf("%s waits for step %d, which does not run beside it", at, c)
			}
			delete(pending, c)
		}
		return nil
	}
	read := func(at string, values []tp.Value) error {
		for _, v := range values {
			if !there[v] {
				return fmt.Errorf("%s reads value %d, which is not there", at, v)
			}
			for c, result := range pending {
				if result == v {
					return fmt.Errorf("%s reads the result of step %d without waiting", at, c)
				}
			}
		}
		return nil
	}
	for i, s := range p.Steps {
		at := fmt.Sprintf("step %d (%s)", i, s.Op)
		if err := wait(at, s.After); err != nil {
			return err
		}
		if err := read(at, s.In); err != nil {
			return err
		}
		for _, v := range s.Out {
			there[v] = true
			if s.Beside {
				pending[i] = v
			}
		}
		if err := read(at, s.Drop); err != nil {
			return err
		}
		for _, v := range s.Drop {
			there[v] = false
		}
	}
	if err := wait("the end", p.After); err != nil {
		return err
	}
	if len(pending) > 0 {
		return fmt.Errorf("nobody waits for %v", pending)
	}
	for _, o := range p.Outputs {
		if err := read("the end", []tp.Value{o.Value}); err != nil {
			return err
		}
	}
	return read("the end", p.Saved)
}

// overlap lists what runs beside each collective of a plan.
func overlap(p *tp.Plan) []string {
	var list []string
	for i, s := range p.Steps {
		if !s.Beside {
			continue
		}
		line := string(s.Op) + ":"
		for _, other := range p.Steps[i+1:] {
			if slices.Contains(other.After, i) {
				break
			}
			for _, k := range other.Kernels {
				line += " " + k.Name
			}
		}
		list = append(list, line)
	}
	return list
}

// What may run at once: in the backward pass of a column-parallel layer the reduction of the input's gradient beside the
// product that makes the weight's; with sequence parallelism the input is joined again beside the first product. (A
// clone is of operands that are not in row-major order only.)
func TestPlansSayWhatRunsAtOnce(t *testing.T) {
	for _, k := range []struct {
		passes tp.ColumnPasses
		want   []string
	}{
		{tp.ColumnPasses{Ranks: 2, WeightGrad: true, BiasGrad: true}, []string{"all_reduce: clone clone matmul clone sum"}},
		{tp.ColumnPasses{Ranks: 2, WeightGrad: true, SequenceParallel: true}, []string{"all_gather: linear", "reduce_scatter: clone clone matmul"}},
		{tp.ColumnPasses{Ranks: 2, WeightGrad: true, DisableGradReduce: true}, nil},
		{tp.ColumnPasses{Ranks: 2, SequenceParallel: true}, nil},
		{tp.ColumnPasses{Ranks: 1, WeightGrad: true, SequenceParallel: true}, nil},
	} {
		if got := overlap(k.passes.Plans().Backward); !slices.Equal(got, k.want) {
			t.Errorf("%+v: %q, want %q", k.passes, got, k.want)
		}
		if got := overlap(k.passes.Plans().Forward); got != nil {
			t.Errorf("%+v: forward, %q runs beside something", k.passes, got)
		}
	}
}

func TestPlansThatCannotBeDescribed(t *testing.T) {
	for _, k := range []struct{ name, options, want string }{
		{"DiagonalParallelLinear", `{}`, `there are no plans of "DiagonalParallelLinear"`},
		{"ColumnParallelLinear", `{"ranks": 0}`, "a plan of 0 ranks"},
		{"RowParallelLinear", `{}`, "a plan of 0 ranks"},
		{"VocabParallelEmbedding", `{"ranks": -1}`, "a plan of -1 ranks"},
		{"all_to_all", `{}`, "a plan of 0 ranks"},
		{"ColumnParallelLinear", `{"ranks": 2, "rank": 1}`, "unknown field"},
		{"ColumnParallelLinear", `{"ranks": 2, "dtype": "float32", "output_dtype": "float33"}`, "float33"},
		{"RowParallelLinear", `ranks`, "invalid character"},
		{"vocab_parallel_cross_entropy", `{"ranks": 2, "part": 0}`, "empty vocabulary"},
		{"vocab_parallel_cross_entropy", `{"ranks": 2, "part": 1, "label_smoothing": 0.5}`, "one token of the vocabulary"},
		{"vocab_parallel_cross_entropy", `{"ranks": 2, "part": 4, "label_smoothing": 1}`, "less than 1"},
	} {
		_, err := tp.Describe(k.name, []byte(k.options))
		complains(t, err, k.want)
	}
}
