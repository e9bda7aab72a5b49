package topology

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// kernelsConfig is what kernels take beside their bytes and operations, as measured; see [Kernels]. Nothing in it has a
// default from presets/default.yaml.
type kernelsConfig struct {
	Launch    span            `yaml:"launch"`
	Vector    span            `yaml:"vector_launch"`
	Tile      span            `yaml:"tile"`
	SmallTile factor          `yaml:"small_tile"`
	Split     span            `yaml:"split"`
	Sustained sustainedConfig `yaml:"sustained"`
	Unaligned shapesConfig    `yaml:"unaligned"`

	Collective share `yaml:"collective"`

	Convolution *convolutionConfig `yaml:"convolution"`
	Attention   *attentionConfig   `yaml:"attention"`
	Recurrent   *recurrentConfig   `yaml:"recurrent"`
	BatchNorm   *batchNormConfig   `yaml:"batch_norm"`

	Operations operationsConfig `yaml:"operations"`
}

// operationsConfig is [Kernels.Operation], by names of PyTorch's operations, and by how others go through memory.
type operationsConfig map[string]each

// each is how many operations a kernel takes for one that is counted.
type each float64

func (e *each) Parse(n *yaml.Node) error { return number(n, (*float64)(e), "a number", 0, 1e6) }
func (e *each) Show() any                { return float64(*e) }

// Ways of the vector units' kernels: those that are not vectorized, because they broadcast, cast to something wider or skip
// memory; copies that exchange dimensions; those of rows that fit the registers of a few threads; and normalization by
// statistics that are given, of images channel by channel, and of such with the channels last; those that go through a
// dimension step by step, in caches or in memory; those whose threads share a row, in stages; and those of several kernels
// or passes, of which nanoseconds of an H200 are counted.
const (
	Strided      = "strided"
	Transposed   = "transposed"
	Short        = "short"
	Eval         = "eval"
	Channels     = "channels"
	ChannelsLast = "channels_last"
	Serial       = "serial"
	SerialFar    = "serial_far"
	Shared       = "shared"
	Staged       = "staged"
)

// Ways are those that a topology's operations may tell apart.
var Ways = []string{Strided, Transposed, Short, Eval, Channels, ChannelsLast, Serial, SerialFar, Shared, Staged}

// stepwise are those of which no elements are counted.
var stepwise = []string{Serial, SerialFar, Shared, Staged}

// Keys are the ways by which operations without a name are told apart.
func (operationsConfig) Keys() []string { return []string{Strided, Transposed, Staged} }

// Admits any operation.
func (operationsConfig) Admits(key string, _ *yaml.Node) bool { return key != "" }

type sustainedConfig struct {
	Drop  factor `yaml:"drop"`
	After span   `yaml:"after"`
}

// convolutionConfig is [Convolution].
type convolutionConfig struct {
	Step      count           `yaml:"step"`
	Tile      span            `yaml:"tile"`
	Split     span            `yaml:"split"`
	Weight    factor          `yaml:"weight"`
	Pointwise pointwiseConfig `yaml:"pointwise"`
	Convert   each            `yaml:"convert"`
	Direct    each            `yaml:"direct"`
	Depthwise passesConfig    `yaml:"depthwise"`
	Last      passesConfig    `yaml:"channels_last"`
}

type pointwiseConfig struct {
	Split   span   `yaml:"split"`
	Rounded factor `yaml:"rounded"`
}

type passesConfig struct {
	Forward  each `yaml:"forward"`
	Backward each `yaml:"backward"`
}

// batchNormConfig says that a PE takes a channel whole.
type batchNormConfig struct {
	Plane count `yaml:"plane"`
}

// attentionConfig is [Attention].
type attentionConfig struct {
	Flash     fusedConfig `yaml:"flash"`
	Efficient fusedConfig `yaml:"efficient"`
	Beside    factor      `yaml:"beside"`
}

type fusedConfig struct {
	Depth    count        `yaml:"depth"`
	Forward  blocksConfig `yaml:"forward"`
	Backward blocksConfig `yaml:"backward"`
}

type blocksConfig struct {
	Side    count  `yaml:"side"`
	Tile    span   `yaml:"tile"`
	Score   span   `yaml:"score"`
	Product factor `yaml:"product"`
}

// recurrentConfig is [Recurrent].
type recurrentConfig struct {
	Call struct {
		Forward  span `yaml:"forward"`
		Backward span `yaml:"backward"`
	} `yaml:"call"`
	Short recurrenceConfig `yaml:"16"`
	Long  recurrenceConfig `yaml:"32"`
}

type recurrenceConfig struct {
	Layer     figure      `yaml:"layer"`
	Direction figure      `yaml:"direction"`
	Stepping  stepsConfig `yaml:"stepping"`
	Unaligned stepsConfig `yaml:"unaligned"`
	Small     stepsConfig `yaml:"small"`
	Held      stepsConfig `yaml:"held"`
}

type stepsConfig struct {
	Forward  stepConfig `yaml:"forward"`
	Backward stepConfig `yaml:"backward"`
}

type stepConfig struct {
	Step       span   `yaml:"step"`
	Weights    figure `yaml:"weights"`
	Operations figure `yaml:"operations"`
	States     figure `yaml:"states"`
	Width      count  `yaml:"width"`
}

// figure is a number that a file need not have.
type figure float64

func (f *figure) Parse(n *yaml.Node) error { return number(n, (*float64)(f), "a number", 0, 1e6) }
func (f *figure) Show() any                { return unlessZero(float64(*f)) }

// share is a part of a whole, less than all.
type share float64

func (s *share) Parse(n *yaml.Node) error { return number(n, (*float64)(s), "a share", 0, 0.99) }
func (s *share) Show() any                { return unlessZero(float64(*s)) }

// shapesConfig is factors, by the greatest power of two that divides the rows of a product's operands in memory, and
// one for odd rows of the result alone; without it that is as all odd ones.
type shapesConfig struct {
	Even   factor `yaml:"2"`
	Odd    factor `yaml:"1"`
	Result factor `yaml:"result"`
}

// Kernels is what kernels take beside their bytes and operations. Times are picoseconds.
type Kernels struct {
	Launch       int64   // of every kernel
	VectorLaunch int64   // of those of the vector units; 0: as of every one
	Tile         int64   // of every tile of a product, beside its operations
	SmallTile    float64 // how much slower small tiles are, see network.MatMulCost
	Split        int64   // of a product whose depth is split among PEs
	Drop         float64 // share by which products that go on for long are slower: the power that a chip can sustain
	After        int64   // time in which two thirds of that have come
	Collective   float64 // share of the units' rates that a collective takes from kernels beside it

	Convolution *Convolution // nil: convolutions take their operations at the full rate
	Attention   *Attention   // nil: attention does
	Recurrent   *Recurrent   // nil: LSTM, GRU and RNN are the products and operations that they are made of
	Plane       int          // the least elements that a channel of an image takes to be normalized; 0: PEs share all elements

	operations operationsConfig

	// Factors for 16-bit products of which a row in memory is no multiple of 8 elements long: an even one, an odd one, and
	// an odd one of the result where those of the operands are even.
	Even, Odd, OddResult float64
}

// Convolution is what convolutions take, see network.ConvolutionCost. Times are picoseconds; operations are the vector
// units'.
type Convolution struct {
	Step   int64   // bytes of channels that a tile takes at a time, of each element of a kernel
	Tile   int64   // of every tile, for each byte of an element
	Split  int64   // of a gradient by weights whose depth is split among PEs
	Weight float64 // how much slower gradients by weights are whose operands of float32 are rounded

	PointwiseSplit   int64   // as Split, where kernels have one element
	PointwiseRounded float64 // how much slower products for such kernels are whose operands of float32 are rounded

	Convert float64 // operations for an element of images that are converted
	Direct  float64 // operations for each one of a convolution that is made without the matrix units; 0: none is

	// Operations for each element of a kernel where every channel is a group of its own, of results and of gradients, for
	// images channel by channel and for those with the channels last.
	Depthwise, Last Passes
}

// Attention is what fused attention takes, see network.AttentionCost: of elements of 16 and of 32 bits. Gradients move
// Beside times the bytes of the queries in other kernels.
type Attention struct {
	Flash, Efficient Fused
	Beside           float64
}

// Of is the kernels for elements of a size in bytes.
func (a *Attention) Of(size int) Fused {
	if size == 2 {
		return a.Flash
	}
	return a.Efficient
}

// Fused is the kernels of one kind, with the least depth that they have.
type Fused struct {
	Depth             int
	Forward, Backward Blocks
}

// Blocks is what a PE takes for a tile of so many rows, and for blocks of as many columns. Times are picoseconds.
type Blocks struct {
	Side    int
	Tile    int64   // of every tile
	Score   int64   // of every score
	Product float64 // how much slower products are than at the full rate
}

// Recurrent is what LSTM, GRU and RNN take beside the products of their inputs, see network.RecurrentCost: a call, in
// picoseconds, and steps of elements of 16 and of 32 bits.
type Recurrent struct {
	Forward, Backward int64
	Short, Long       Recurrence
}

// Of is the steps of elements of a size in bytes.
func (r *Recurrent) Of(size int) *Recurrence {
	if size == 2 {
		return &r.Short
	}
	return &r.Long
}

// Recurrence is what steps take in each of the ways in which a library makes them: kernels for every step, for rows that
// start at multiples of 16 bytes and for others; one kernel for all steps of layers that are small, and of those that are
// larger, whose weights PEs hold. A further layer and the second direction take shares of what the first takes.
type Recurrence struct {
	Layer, Direction                 float64
	Stepping, Unaligned, Small, Held Steps
}

// Steps are those of results and those of gradients.
type Steps struct{ Forward, Backward Step }

// Step is what a step takes: picoseconds, and ns for a MB of weights, for 10^9 operations and for 10^3 elements of states,
// in layers of no more than a width; 0: there are none.
type Step struct {
	Step                        int64
	Weights, Operations, States float64
	Width                       int
}

// Passes are operations for results and for gradients.
type Passes struct{ Forward, Backward float64 }

// Kernels is nil in a topology without a kernels section.
func (t *Topology) Kernels() *Kernels { return t.kernels }

// Operation is how many operations of its unit a kernel takes for each that is counted, which is one for an element, and
// what a formula says of a product. name is PyTorch's, in place or not; an entry for the name and the way, with a dot
// between them, goes before one for the name, and that before one for the way. Where no elements are counted, but steps or
// time, one for the name alone says nothing.
func (k *Kernels) Operation(name, way string) float64 {
	if k == nil {
		return 1
	}
	plain := strings.TrimSuffix(name, "_")
	keys := []string{name + "." + way, plain + "." + way, name, plain, way}
	if slices.Contains(stepwise, way) {
		keys = []string{name + "." + way, plain + "." + way, way}
	}
	for _, key := range keys {
		if found, ok := k.operations[key]; ok {
			return float64(found)
		}
	}
	return 1
}

func newKernels(c *kernelsConfig) *Kernels {
	if c == nil {
		return nil
	}
	odd := max(1, float64(c.Unaligned.Odd))
	return &Kernels{
		operations: c.Operations,
		Launch:     c.Launch.picoseconds(), VectorLaunch: c.Vector.picoseconds(), Tile: c.Tile.picoseconds(), SmallTile: float64(c.SmallTile),
		Split: c.Split.picoseconds(), Drop: float64(c.Sustained.Drop), After: c.Sustained.After.picoseconds(),
		Collective: float64(c.Collective), Convolution: newConvolution(c.Convolution),
		Attention: newAttention(c.Attention), Recurrent: newRecurrent(c.Recurrent), Plane: c.BatchNorm.plane(),
		Even: max(1, float64(c.Unaligned.Even)), Odd: odd, OddResult: max(odd, float64(c.Unaligned.Result)),
	}
}

func newConvolution(c *convolutionConfig) *Convolution {
	if c == nil {
		return nil
	}
	return &Convolution{
		Step: max(1, int64(c.Step)), Tile: c.Tile.picoseconds(), Split: c.Split.picoseconds(), Weight: max(1, float64(c.Weight)),
		PointwiseSplit: c.Pointwise.Split.picoseconds(), PointwiseRounded: max(1, float64(c.Pointwise.Rounded)),
		Convert: float64(c.Convert), Direct: float64(c.Direct), Depthwise: newPasses(c.Depthwise), Last: newPasses(c.Last),
	}
}

func newPasses(c passesConfig) Passes { return Passes{float64(c.Forward), float64(c.Backward)} }

func (c *batchNormConfig) plane() int {
	if c == nil {
		return 0
	}
	return max(1, int(c.Plane))
}

func newAttention(c *attentionConfig) *Attention {
	if c == nil {
		return nil
	}
	return &Attention{Flash: c.Flash.kernels(), Efficient: c.Efficient.kernels(), Beside: float64(c.Beside)}
}

func (c *fusedConfig) kernels() Fused {
	return Fused{Depth: max(1, int(c.Depth)), Forward: c.Forward.blocks(), Backward: c.Backward.blocks()}
}

func (c *blocksConfig) blocks() Blocks {
	return Blocks{max(1, int(c.Side)), c.Tile.picoseconds(), c.Score.picoseconds(), float64(c.Product)}
}

func newRecurrent(c *recurrentConfig) *Recurrent {
	if c == nil {
		return nil
	}
	return &Recurrent{c.Call.Forward.picoseconds(), c.Call.Backward.picoseconds(), c.Short.recurrence(), c.Long.recurrence()}
}

func (c *recurrenceConfig) recurrence() Recurrence {
	return Recurrence{
		float64(c.Layer), float64(c.Direction), c.Stepping.steps(), c.Unaligned.steps(), c.Small.steps(), c.Held.steps(),
	}
}

func (c *stepsConfig) steps() Steps { return Steps{c.Forward.step(), c.Backward.step()} }

func (c *stepConfig) step() Step {
	return Step{c.Step.picoseconds(), float64(c.Weights), float64(c.Operations), float64(c.States), int(c.Width)}
}

// WithKernels is the same topology with another kernels section, and other rates of the matrix units in 10^12 operations
// per second of a PE.
func (t *Topology) WithKernels(k *Kernels, f16, f32 float64) *Topology {
	other := *t
	other.kernels = k
	other.config.PE.Matrix.F16, other.config.PE.Matrix.F32 = teraflops(f16), teraflops(f32)
	return &other
}

// Spec is the tree of a kernels section with these figures, in the file's own keys and units.
func (k *Kernels) Spec() map[string]any {
	tree := map[string]any{
		"launch": nano(k.Launch), "tile": nano(k.Tile), "small_tile": k.SmallTile, "split": nano(k.Split),
		"sustained": map[string]any{"drop": k.Drop, "after": nano(k.After)},
		"unaligned": map[string]any{"2": k.Even, "1": k.Odd, "result": k.OddResult}, "collective": k.Collective,
	}
	if k.VectorLaunch != 0 {
		tree["vector_launch"] = nano(k.VectorLaunch)
	}
	if k.Convolution != nil {
		tree["convolution"] = k.Convolution.spec()
	}
	if k.Plane != 0 {
		tree["batch_norm"] = map[string]any{"plane": k.Plane}
	}
	if k.Attention != nil {
		tree["attention"] = map[string]any{
			"flash": k.Attention.Flash.spec(), "efficient": k.Attention.Efficient.spec(), "beside": k.Attention.Beside,
		}
	}
	if k.Recurrent != nil {
		tree["recurrent"] = k.Recurrent.spec()
	}
	if len(k.operations) > 0 {
		tree["operations"] = k.operations
	}
	return tree
}

func (f Fused) spec() map[string]any {
	return map[string]any{"depth": f.Depth, "forward": f.Forward.spec(), "backward": f.Backward.spec()}
}

func (b Blocks) spec() map[string]any {
	return map[string]any{"side": b.Side, "tile": nano(b.Tile), "score": nano(b.Score), "product": b.Product}
}

func (c *Convolution) spec() map[string]any {
	return map[string]any{
		"step": c.Step, "tile": nano(c.Tile), "split": nano(c.Split), "weight": c.Weight,
		"pointwise": map[string]any{"split": nano(c.PointwiseSplit), "rounded": c.PointwiseRounded},
		"convert":   c.Convert, "direct": c.Direct,
		"depthwise":     map[string]any{"forward": c.Depthwise.Forward, "backward": c.Depthwise.Backward},
		"channels_last": map[string]any{"forward": c.Last.Forward, "backward": c.Last.Backward},
	}
}

func (r *Recurrent) spec() map[string]any {
	return map[string]any{
		"call": map[string]any{"forward": nano(r.Forward), "backward": nano(r.Backward)},
		"16":   r.Short.spec(), "32": r.Long.spec(),
	}
}

func (r *Recurrence) spec() map[string]any {
	return map[string]any{
		"layer": r.Layer, "direction": r.Direction, "stepping": r.Stepping.spec(), "unaligned": r.Unaligned.spec(),
		"small": r.Small.spec(), "held": r.Held.spec(),
	}
}

func (s Steps) spec() map[string]any {
	return map[string]any{"forward": s.Forward.spec(), "backward": s.Backward.spec()}
}

func (s Step) spec() map[string]any {
	tree := map[string]any{}
	for key, figure := range map[string]float64{
		"step": nano(s.Step), "weights": s.Weights, "operations": s.Operations, "states": s.States, "width": float64(s.Width),
	} {
		if figure != 0 {
			tree[key] = figure
		}
	}
	return tree
}
