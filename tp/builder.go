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
	b.findDrops()
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

// findDrops notes after which steps values are no longer needed. Those that a collective reads, and puts its result
// elsewhere, are left out: it may be at work long after the step.
func (b *builder) findDrops() {
	kept := slices.Clone(b.Saved)
	for _, o := range b.Outputs {
		kept = append(kept, o.Value)
	}
	for i := range b.Inputs {
		kept = append(kept, i)
	}
	for i := len(b.Steps) - 1; i >= 0; i-- {
		s := &b.Steps[i]
		for _, v := range append(slices.Clone(s.In), s.Out...) {
			if slices.Contains(kept, v) {
				continue
			}
			kept = append(kept, v)
			if !s.Op.isCollective() {
				s.Drop = append(s.Drop, v)
			}
		}
	}
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
