package tp

// ColumnPasses is what decides the steps of a [ColumnParallelLinear].
type ColumnPasses struct {
	Ranks              int  `json:"ranks"`
	GatherOutput       bool `json:"gather_output"`
	SequenceParallel   bool `json:"sequence_parallel"`
	ExplicitExpertComm bool `json:"explicit_expert_comm"`
	DisableGradReduce  bool `json:"disable_grad_reduce"`

	// The dtypes of the parameters, and of the output where that is another.
	DType       string `json:"dtype"`
	OutputDType string `json:"output_dtype"`

	Bias bool `json:"bias"` // the layer adds one

	// Which gradients are wanted, besides the input's.
	WeightGrad bool `json:"weight_grad"`
	BiasGrad   bool `json:"bias_grad"`
}

// Plans returns the plans of the layer: of input, weight and bias to the output; and of the gradient of that, input and
// weight to those of the input, and the weight and the bias as far as they are wanted. A layer whose weight has no
// gradient does not save its input.
func (o ColumnPasses) Plans() Plans {
	if !o.WeightGrad {
		return Plans{o.forward(), o.frozenBackward()}
	}
	return Plans{o.forward(), o.backward()}
}

// divided says whether the layer joins the parts of a sequence and divides it again.
func (o *ColumnPasses) divided() bool {
	return o.SequenceParallel && !o.ExplicitExpertComm && o.Ranks > 1
}

// reduced says whether the layer adds the ranks' shares of the gradient of the input up.
func (o *ColumnPasses) reduced() bool {
	return o.Ranks > 1 && !o.SequenceParallel && !o.ExplicitExpertComm && !o.DisableGradReduce
}

func (o *ColumnPasses) forward() *Plan {
	b := newPlan("column-parallel linear", o.Ranks, withBias(o.Bias, "input", "weight")...)
	const x, weight, bias = 0, 1, 2
	whole := x
	if o.divided() {
		whole = gatherFirst(nil)(b, x)
	}
	product := b.linear(whole, weight)
	y := product
	if o.Bias {
		y = b.do(OpAdd, product, bias)
		b.drop(product)
	}
	if whole != x {
		b.drop(whole)
	}
	if o.OutputDType != "" {
		y = b.step(OpCast, Parameters{DType: o.OutputDType}, y)
	}
	if o.GatherOutput && !b.alone() {
		y = gatherLast(b, y)
	}
	b.returns("output", y)
	if !o.WeightGrad {
		return b.done(weight)
	}
	return b.done(x, weight)
}

// withBias lists the inputs of a forward pass.
func withBias(bias bool, names ...string) []string {
	if bias {
		names = append(names, "bias")
	}
	return names
}

// ownGrad is the rank's part of the gradient of the output.
func (o *ColumnPasses) ownGrad(b *builder, grad Value) Value {
	if o.GatherOutput && !b.alone() {
		grad = splitLast(b, grad)
	}
	if o.OutputDType != "" {
		grad = b.step(OpCast, Parameters{DType: o.DType}, grad)
	}
	return grad
}

// backward reduces the gradient of the input while it computes that of the weight; with sequence parallelism it joins
// the input once more while it computes that of the input.
func (o *ColumnPasses) backward() *Plan {
	b := newPlan("column-parallel linear, backward", o.Ranks, "grad", "input", "weight")
	const x, weight = 1, 2
	grad := o.ownGrad(b, 0)
	whole, joining := x, -1
	if o.divided() {
		whole = gatherFirst(nil)(b, x)
		joining = b.beside()
	}
	inputGrad := b.inputGrad(grad, weight)
	b.await(joining)
	reducing := -1
	switch {
	case o.divided():
		product := inputGrad
		inputGrad = b.step(OpReduceScatter, Parameters{}, product)
		reducing = b.beside()
		b.drop(product)
	case o.reduced():
		inputGrad = reduceInto(b, inputGrad)
		reducing = b.beside()
	}
	b.returns("input", inputGrad)
	b.returns("weight", b.weightGrad(grad, whole))
	if o.BiasGrad {
		b.returns("bias", b.do(OpSumRows, b.do(OpRows, grad)))
	}
	b.await(reducing)
	return b.done()
}

// frozenBackward has nothing to compute beside the reduction.
func (o *ColumnPasses) frozenBackward() *Plan {
	b := newPlan("column-parallel linear, frozen, backward", o.Ranks, "grad", "weight")
	const weight = 1
	grad := o.ownGrad(b, 0)
	inputGrad := b.inputGrad(grad, weight)
	if o.reduced() {
		inputGrad = reduceInto(b, inputGrad)
	}
	if o.BiasGrad {
		b.returns("bias", b.do(OpSumRows, b.do(OpRows, grad)))
	}
	if o.divided() {
		inputGrad = reduceScatterFirst(nil)(b, inputGrad)
	}
	b.returns("input", inputGrad)
	return b.done()
}

// RowPasses is what decides the steps of a [RowParallelLinear].
type RowPasses struct {
	Ranks              int  `json:"ranks"`
	InputIsParallel    bool `json:"input_is_parallel"`
	SequenceParallel   bool `json:"sequence_parallel"`
	ExplicitExpertComm bool `json:"explicit_expert_comm"`

	Bias bool `json:"bias"` // the layer adds one

	// Which gradients are wanted. Without the first two there is that of the bias alone.
	InputGrad  bool `json:"input_grad"`
	WeightGrad bool `json:"weight_grad"`
	BiasGrad   bool `json:"bias_grad"`
}

// Plans returns the plans of the layer, as [ColumnPasses.Plans] does: but the gradient of the input is left out, too,
// where it is not wanted.
func (o RowPasses) Plans() Plans { return Plans{o.forward(), o.backward()} }

func (o *RowPasses) forward() *Plan {
	b := newPlan("row-parallel linear", o.Ranks, withBias(o.Bias, "input", "weight")...)
	const weight, bias = 1, 2
	x := 0
	if !o.InputIsParallel && !b.alone() {
		x = splitLast(b, x)
	}
	product := b.linear(x, weight)
	y := o.reduce(b, product)
	if y != product {
		b.drop(product)
	}
	if o.Bias {
		y = b.do(OpAdd, y, bias)
	}
	b.returns("output", y)
	if !o.WeightGrad {
		return b.done(weight)
	}
	return b.done(x, weight)
}

// reduce brings the ranks' outputs together.
func (o *RowPasses) reduce(b *builder, y Value) Value {
	switch {
	case b.alone() || o.ExplicitExpertComm:
		return y
	case o.SequenceParallel:
		return b.step(OpReduceScatter, Parameters{}, y)
	}
	return reduceInto(b, y)
}

func (o *RowPasses) backward() *Plan {
	inputs := []string{"grad", "input", "weight"}
	if !o.WeightGrad {
		inputs = []string{"grad", "weight"}
	}
	b := newPlan("row-parallel linear, backward", o.Ranks, inputs...)
	grad, weight := 0, len(inputs)-1
	if o.BiasGrad {
		b.returns("bias", b.do(OpSumRows, grad))
	}
	if !o.InputGrad && !o.WeightGrad {
		return b.done()
	}
	if o.SequenceParallel && !o.ExplicitExpertComm && !b.alone() {
		grad = gatherFirst(nil)(b, grad)
	}
	inputGrad := b.inputGrad(grad, weight)
	if o.WeightGrad {
		b.returns("weight", b.weightGrad(grad, 1))
	}
	if o.InputGrad {
		if !o.InputIsParallel && !b.alone() {
			inputGrad = gatherLast(b, inputGrad)
		}
		b.returns("input", inputGrad)
	}
	return b.done()
}
