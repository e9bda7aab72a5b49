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
	at := 0
	if !b.alone() {
		at = b.step(OpLocate, Parameters{Part: o.Part}, at)
	}
	rows := b.do(OpLookup, at, table)
	if !b.alone() {
		rows = b.do(OpMask, rows, at)
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
	return b.done([]Value{rows}, at)
}

func (o *EmbeddingPasses) backward() *Plan {
	b := newPlan("vocabulary-parallel embedding, backward", o.Ranks, "grad", "places")
	const at = 1
	grad := 0
	if o.ReduceScatterEmbeddings {
		if !b.alone() {
			grad = gatherFirst(nil)(b, grad)
		}
		grad = b.do(OpSwap, grad)
	}
	if !b.alone() {
		grad = b.do(OpMask, grad, at)
	}
	return b.done([]Value{b.step(OpTableGrad, Parameters{Part: o.Part}, at, grad)})
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
	shifted := b.do(OpSub, logits, b.do(OpColumn, top))
	at := b.step(OpLocate, Parameters{Part: o.Part}, target)
	predicted := b.do(OpPick, shifted, at)
	b.reduce("sum", predicted)
	exponentials := b.do(OpExp, shifted)
	total := b.do(OpSumLast, exponentials)
	b.reduce("sum", total)
	logTotal := b.do(OpLog, total)
	softmax := b.do(OpDiv, exponentials, b.do(OpColumn, total))
	loss := b.do(OpSub, logTotal, predicted)
	if spread := o.spread(); spread > 0 {
		mean := b.do(OpSub, b.do(OpMeanLast, shifted), logTotal) // of the log probabilities
		sharp, flat := b.scale(loss, 1-spread), b.scale(mean, spread)
		loss = b.do(OpSub, sharp, flat)
	}
	return b.done([]Value{loss}, softmax, at)
}

func (b *builder) scale(x Value, by float64) Value { return b.step(OpScale, Parameters{Number: by}, x) }

// reduce reduces a value of the plan's own over the ranks, if there are others.
func (b *builder) reduce(how string, x Value) {
	if !b.alone() {
		b.into(OpAllReduce, Parameters{Reduce: how}, x)
	}
}

func (o *LossPasses) backward() *Plan {
	b := newPlan("vocabulary-parallel cross entropy, backward", o.Ranks, "grad", "softmax", "places")
	const grad, softmax, at = 0, 1, 2
	slope := b.do(OpCopy, softmax)
	b.into(OpAddAt, Parameters{Number: o.spread() - 1}, slope, at)
	if spread := o.spread(); spread > 0 {
		b.into(OpShiftInto, Parameters{Number: spread / float64(o.Part)}, slope)
	}
	b.into(OpMulInto, Parameters{}, slope, b.do(OpColumn, grad))
	if o.DType != o.wide() {
		slope = b.step(OpCast, Parameters{DType: o.DType}, slope)
	}
	return b.done([]Value{slope})
}
