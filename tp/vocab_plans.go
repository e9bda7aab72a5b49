package tp

// EmbeddingPasses is what decides the steps of a [VocabParallelEmbedding].
type EmbeddingPasses struct {
	Ranks                   int  `json:"ranks"`
	Part                    int  `json:"part"` // rows that a rank has
	ReduceScatterEmbeddings bool `json:"reduce_scatter_embeddings"`
}

// Plans returns the plans of the layer: of tokens and the table to rows; and of their gradient, and where the tokens
// were, to the table's.
func (o EmbeddingPasses) Plans() Plans { return Plans{o.forward(), o.backward()} }

func (o *EmbeddingPasses) forward() *Plan {
	b := newPlan("vocabulary-parallel embedding", o.Ranks, "tokens", "weight")
	const table = 1
	saved := []Value{0}
	if !b.alone() {
		others, at := b.locate(0, o.Part)
		saved = []Value{at, others}
	}
	rows := b.do(OpLookup, saved[0], table)
	if !b.alone() {
		found := rows
		rows = b.do(OpMask, found, saved[1])
		b.drop(found)
	}
	switch {
	case o.ReduceScatterEmbeddings:
		rows = b.do(OpContiguous, b.do(OpSwap, rows))
		if !b.alone() {
			rows = reduceScatterFirst(nil)(b, rows)
		}
	case !b.alone():
		rows = reduceInto(b, rows)
	}
	b.returns("output", rows)
	return b.done(saved...)
}

func (o *EmbeddingPasses) backward() *Plan {
	b := newPlan("vocabulary-parallel embedding, backward", o.Ranks, "grad", "places")
	if !b.alone() {
		b = newPlan(b.Name, o.Ranks, "grad", "places", "others")
	}
	const at, others = 1, 2
	grad := 0
	if o.ReduceScatterEmbeddings {
		if !b.alone() {
			grad = gatherFirst(nil)(b, grad)
		}
		grad = b.do(OpSwap, grad)
	}
	if !b.alone() {
		grad = b.do(OpMask, grad, others)
		b.drop(0, others)
	}
	b.returns("weight", b.step(OpTableGrad, Parameters{Part: o.Part}, at, grad))
	return b.done()
}

// LossPasses is what decides the steps of [VocabParallelCrossEntropy].
type LossPasses struct {
	Ranks          int     `json:"ranks"`
	Part           int     `json:"part"`  // tokens of the vocabulary that a rank has
	DType          string  `json:"dtype"` // of the logits
	LabelSmoothing float64 `json:"label_smoothing"`
}

// spread is how much of the probability is spread over the rank's part of the vocabulary.
func (o *LossPasses) spread() float64 {
	if o.LabelSmoothing == 0 {
		return 0
	}
	return o.LabelSmoothing * float64(o.Part) / float64(o.Part-1)
}

// Plans returns the plans of the loss: of logits and targets to the loss of each token; and of the gradient of that, the
// softmax and where the targets were, to the logits'.
func (o LossPasses) Plans() Plans { return Plans{o.forward(), o.backward()} }

// wide is the dtype that a loss is computed in.
func (o *LossPasses) wide() string {
	if o.DType == "float64" {
		return o.DType
	}
	return "float32"
}

func (o *LossPasses) forward() *Plan {
	b := newPlan("vocabulary-parallel cross entropy", o.Ranks, "logits", "target")
	const target = 1
	logits := 0
	if o.DType != o.wide() {
		logits = b.step(OpCast, Parameters{DType: o.wide()}, logits)
	}
	top := b.do(OpMaxLast, logits)
	b.reduce("max", top)
	column := b.do(OpColumn, top)
	shifted := b.do(OpSub, logits, column)
	b.drop(top, column)
	others, at := b.locate(target, o.Part)
	predicted := b.do(OpPick, shifted, others, b.do(OpEnumerate, at), at)
	b.reduce("sum", predicted)
	exponentials := b.do(OpExp, shifted)
	total := b.do(OpSumLast, exponentials)
	b.reduce("sum", total)
	logTotal := b.do(OpLog, total)
	softmax := b.do(OpDiv, exponentials, b.do(OpColumn, total))
	loss := b.do(OpSub, logTotal, predicted)
	if spread := o.spread(); spread > 0 {
		probable := b.do(OpMeanLast, shifted)
		mean := b.do(OpSub, probable, logTotal) // of the log probabilities
		b.drop(probable)
		sharp, flat := b.scale(loss, 1-spread), b.scale(mean, spread)
		loss = b.do(OpSub, sharp, flat)
	}
	b.returns("output", loss)
	return b.done(softmax, others, at)
}

func (b *builder) scale(x Value, by float64) Value { return b.step(OpScale, Parameters{Number: by}, x) }

// reduce reduces a value of the plan's own over the ranks, if there are others.
func (b *builder) reduce(how string, x Value) {
	if !b.alone() {
		b.into(OpAllReduce, Parameters{Reduce: how}, x)
	}
}

func (o *LossPasses) backward() *Plan {
	b := newPlan("vocabulary-parallel cross entropy, backward", o.Ranks, "grad", "softmax", "others", "places")
	const grad, softmax, others, at = 0, 1, 2, 3
	slope := b.do(OpCopy, softmax)
	b.into(OpAddAt, Parameters{Number: o.spread() - 1}, slope, others, at)
	if spread := o.spread(); spread > 0 {
		b.into(OpShiftInto, Parameters{Number: spread / float64(o.Part)}, slope)
	}
	b.into(OpMulInto, Parameters{}, slope, b.do(OpColumn, grad))
	if o.DType != o.wide() {
		slope = b.step(OpCast, Parameters{DType: o.DType}, slope)
	}
	b.returns("logits", slope)
	return b.done()
}
