package tp

// Value is the number of a value in a [Plan]: what it is given, or what a step makes.
type Value = int

// Plan is one pass of a layer, forward or backward, as pure data: the steps that a rank takes, which of them may run at
// once, and what they cost. Like a [ccl.Schedule] it knows no tensors: the same options make the same plan, which serves
// every shape, every rank of the group, and whoever executes it: [Comm] for Go's tensors, a front end for its own.
//
// A rank issues the steps in their order. Local operations run on its stream, one after another; a collective that is
// Beside runs beside them until a step that waits for it.
type Plan struct {
	Name  string `json:"name"`
	Group string `json:"group"` // which group the collectives are among: the part it plays, as of [GroupKind.String]
	Ranks int    `json:"ranks"` // in the group

	Inputs  []string `json:"inputs"` // what the values 0, 1, … are
	Values  int      `json:"values"`
	Steps   []Step   `json:"steps"`
	After   []int    `json:"after,omitempty"` // collectives that the stream waits for in the end
	Outputs []Result `json:"outputs"`
	Saved   []Value  `json:"saved,omitempty"` // what the backward plan is given after the gradient
}

// Result is a value that a plan returns: the output, or the gradient of an input of the forward plan, whose name it has.
type Result struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
}

// Step is one operation on a rank's values.
type Step struct {
	Op   Op         `json:"op"`
	In   []Value    `json:"in"`
	Out  []Value    `json:"out"` // one of In where the step writes into it
	With Parameters `json:"with"`

	// Beside says of a collective that the stream does not wait for it at once, but before the steps that have it in
	// After.
	Beside bool  `json:"beside,omitempty"`
	After  []int `json:"after,omitempty"` // collectives, by their place in Steps

	Kernels []Kernel `json:"kernels,omitempty"` // that a device runs for a local operation, one after another
	Drop    []Value  `json:"drop,omitempty"`    // that nobody has any more after the step; the others remain to the end
}

// Op is what a step does.
type Op string

// The local operations. Views cost nothing; operations that say so leave out the copy where they can.
const (
	OpContiguous Op = "contiguous" // x in row-major order: itself if it is
	OpCopy       Op = "copy"       // a copy of x in row-major order
	OpRows       Op = "rows"       // x as a matrix of rows, which are its last dimension: a view if there is one
	OpPart       Op = "part"       // a view of the rank's part of dimension Dim of x
	OpJoin       Op = "join"       // the ranks' parts, one below the other in x, side by side along the last dimension
	OpStack      Op = "stack"      // the inverse: parts that are side by side, one below the other
	OpSwap       Op = "swap"       // a view of x with its first two dimensions exchanged
	OpColumn     Op = "column"     // a view of x with a last dimension of 1
	OpCast       Op = "cast"       // x as DType: itself if it is
	OpMatMul     Op = "matmul"     // a·b, of a as rows; either transposed
	OpSumRows    Op = "sum_rows"   // the sum over all dimensions of x but the last
	OpAdd        Op = "add"        // a + b; this and the next broadcast
	OpSub        Op = "sub"        // a - b
	OpDiv        Op = "div"        // a / b
	OpExp        Op = "exp"
	OpLog        Op = "log"
	OpMaxLast    Op = "max_last" // of the last dimension, which the result does not have; so the next
	OpSumLast    Op = "sum_last"
	OpMeanLast   Op = "mean_last"
	OpScale      Op = "scale"      // Number · x
	OpShiftInto  Op = "shift_"     // x becomes x - Number
	OpMulInto    Op = "mul_"       // a becomes a · b, which broadcasts
	OpLocate     Op = "locate"     // of tokens: which are others', and where the rank's are in its part, of Part tokens, of the vocabulary
	OpLookup     Op = "lookup"     // (places, table): the table's row of each place
	OpMask       Op = "mask"       // (x, others): zeros in the rows that are others'
	OpTableGrad  Op = "table_grad" // (places, x): the sums of the rows of x at the places, as a table of Part rows
	OpEnumerate  Op = "enumerate"  // (places): 0, 1, … for each
	OpPick       Op = "pick"       // (x, others, numbers, places): the element of each row at its place; 0 where it is another's
	OpAddAt      Op = "add_at"     // (x, others, places): Number is added to these elements in x
)

// The collectives, along the first dimension. The operands of those that return another tensor are in row-major order.
const (
	OpAllReduce     Op = "all_reduce"     // into the operand
	OpAllGather     Op = "all_gather"     // of Sizes, if these differ
	OpReduceScatter Op = "reduce_scatter" // into parts of Sizes, if these differ
	OpAllToAll      Op = "all_to_all"     // of parts of InSizes into parts of Sizes, if these differ
)

// Parameters are what a step is to know besides its operands. Each operation says which it looks at.
type Parameters struct {
	Dim            int     `json:"dim,omitempty"` // 0 or -1
	TransposeLeft  bool    `json:"transpose_left,omitempty"`
	TransposeRight bool    `json:"transpose_right,omitempty"`
	DType          string  `json:"dtype,omitempty"`
	Number         float64 `json:"number,omitempty"`
	Part           int     `json:"part,omitempty"`
	Reduce         string  `json:"reduce,omitempty"` // "sum" or "max"
	Sizes          []int   `json:"sizes,omitempty"`
	InSizes        []int   `json:"in_sizes,omitempty"`
}

// Plans are the two passes of a layer. The backward plan is given the gradient of the output, then what the forward plan
// saved; nil where gradients have no way back.
type Plans struct {
	Forward  *Plan `json:"forward"`
	Backward *Plan `json:"backward"`
}
