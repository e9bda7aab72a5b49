package tp

import "slices"

// builder makes a plan, step by step.
type builder struct{ Plan }

// newPlan starts the plan of a pass that is given values of these names.
func newPlan(name string, ranks int, inputs ...string) *builder {
	return &builder{Plan{Name: name, Group: TensorModelParallel.String(), Ranks: ranks, Inputs: inputs, Values: len(inputs)}}
}

// returns makes a value a result of the plan.
func (b *builder) returns(name string, v Value) {
	b.Outputs = append(b.Outputs, Result{name, v})
}

// done ends the plan, with what it saves for the backward pass.
func (b *builder) done(saved ...Value) *Plan {
	b.Saved = saved
	return &b.Plan
}

// step adds a step that makes a value.
func (b *builder) step(op Op, with Parameters, in ...Value) Value {
	b.Values++
	b.add(op, with, in, []Value{b.Values - 1})
	return b.Values - 1
}

// add adds a step, which waits for what is to be waited for by now.
func (b *builder) add(op Op, with Parameters, in, out []Value) {
	b.Steps = append(b.Steps, Step{Op: op, In: in, Out: out, With: with, After: b.After, Kernels: kernelsOf(op, with)})
	b.After = nil
}

func (b *builder) do(op Op, in ...Value) Value { return b.step(op, Parameters{}, in...) }

// into adds a step that writes into its first operand.
func (b *builder) into(op Op, with Parameters, in ...Value) {
	b.add(op, with, in, in[:1])
}

// locate finds tokens in the rank's part of the vocabulary.
func (b *builder) locate(tokens Value, part int) (others, at Value) {
	others, at = b.Values, b.Values+1
	b.Values += 2
	b.add(OpLocate, Parameters{Part: part}, []Value{tokens}, []Value{others, at})
	return others, at
}

// alone says whether there is nobody to communicate with.
func (b *builder) alone() bool { return b.Ranks == 1 }

// beside lets the collective that was added last run beside what follows, until await is called for it.
func (b *builder) beside() (collective int) {
	b.Steps[len(b.Steps)-1].Beside = true
	return len(b.Steps) - 1
}

// await makes the next step, or the end, wait for a collective; -1 is none.
func (b *builder) await(collective int) {
	if collective >= 0 {
		b.After = append(b.After, collective)
	}
}

// linear is x·weightᵀ, over the last dimension of x; inputGrad and weightGrad make its gradients from that of the
// product.
func (b *builder) linear(x, weight Value) Value {
	return b.step(OpMatMul, Parameters{TransposeRight: true}, x, weight)
}

func (b *builder) inputGrad(grad, weight Value) Value { return b.do(OpMatMul, grad, weight) }

func (b *builder) weightGrad(grad, x Value) Value {
	return b.step(OpMatMul, Parameters{TransposeLeft: true}, b.do(OpRows, grad), b.do(OpRows, x))
}

// drop lets go of values after the step that was added last: where Megatron's functions let go of theirs, so that a rank
// has as much memory in use at every step. What is not dropped remains to the end.
func (b *builder) drop(values ...Value) {
	last := &b.Steps[len(b.Steps)-1]
	last.Drop = append(last.Drop, values...)
}

// isCollective says whether the ranks do it together.
func (o Op) isCollective() bool {
	return slices.Contains([]Op{OpAllReduce, OpAllGather, OpReduceScatter, OpAllToAll}, o)
}

// passes is what decides the plans of a layer.
type passes interface {
	comparable
	Plans() Plans
}

// planned keeps the plans of a layer, which are the same from call to call as a rule.
type planned[P passes] struct {
	by    P
	plans *Plans
}

// of returns the plans for what decides them.
func (k *planned[P]) of(by P) *Plans {
	if k.plans == nil || k.by != by {
		plans := by.Plans()
		k.by, k.plans = by, &plans
	}
	return k.plans
}
