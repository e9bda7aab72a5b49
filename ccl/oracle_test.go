package ccl_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// The oracle executes a Schedule as its documentation reads: every rank has memory of its own for each chunk, every step
// of every round is carried out element by element. A value is raw bits of the dtype, or of a float32 while partial sums
// are wide.
type oracle struct {
	schedule *ccl.Schedule
	values   ccl.Values
	wide     bool
	inputs   []memory // by rank
	ranks    []memory
}

// memory is the elements of each chunk; nil where there is nothing.
type memory [][]uint64

// interpret returns the bytes that each rank ends with; nil where it ends with nothing.
func interpret(s *ccl.Schedule, v ccl.Values) [][]byte {
	o := &oracle{schedule: s, values: v}
	o.wide = (v.AccumulateF32 || aSwitchReduces(s)) && v.DType.IsFloat() && v.DType.Size() < 4
	for r := range s.World {
		o.inputs = append(o.inputs, o.load(r))
		o.ranks = append(o.ranks, slices.Clone(o.inputs[r]))
	}
	for k, lo := range s.Rounds {
		hi := len(s.Steps)
		if k+1 < len(s.Rounds) {
			hi = int(s.Rounds[k+1])
		}
		o.round(s.Steps[lo:hi])
	}
	results := make([][]byte, s.World)
	for r := range results {
		results[r] = o.result(r)
	}
	return results
}

// blocks lists the blocks that rank r starts with, in the order of its input.
func (o *oracle) blocks(r int) (list []int) {
	s := o.schedule
	switch s.Collective {
	case collective.AllGather, collective.Gather:
		return []int{r}
	case collective.Broadcast, collective.Scatter:
		if r != s.Root {
			return nil
		}
	case collective.AllToAll:
		for dst := range s.World {
			list = append(list, (dst-r+s.World)%s.World)
		}
		return list
	}
	for b := range s.Blocks {
		list = append(list, b)
	}
	return list
}

// resultBlocks lists those that rank r ends with, in the order of its result.
func (o *oracle) resultBlocks(r int) (list []int) {
	s := o.schedule
	switch s.Collective {
	case collective.ReduceScatter, collective.Scatter:
		return []int{r}
	case collective.Reduce, collective.Gather:
		if r != s.Root {
			return nil
		}
	case collective.AllToAll:
		for src := range s.World {
			list = append(list, (r-src+s.World)%s.World)
		}
		return list
	}
	for b := range s.Blocks {
		list = append(list, b)
	}
	return list
}

// blockSizes lists how many elements the blocks have that rank r starts with, in the order of its input.
func (o *oracle) blockSizes(r int) (list []int) {
	s, sizes := o.schedule, o.values.Sizes
	switch {
	case sizes != nil && s.Collective == collective.AllToAll:
		return sizes[r*s.World : (r+1)*s.World]
	case sizes != nil:
		for _, b := range o.blocks(r) {
			list = append(list, sizes[b])
		}
		return list
	}
	return nearlyEqual(len(o.values.Inputs[r])/o.values.DType.Size(), len(o.blocks(r)))
}

// nearlyEqual deals n things out to k, one at a time.
func nearlyEqual(n, k int) []int {
	list := make([]int, k)
	for i := range n * min(k, 1) {
		list[i%k]++
	}
	return list
}

// load puts rank r's input where its blocks are.
func (o *oracle) load(r int) memory {
	in, size, sub := o.values.Inputs[r], o.values.DType.Size(), o.schedule.Sub
	m := make(memory, o.schedule.Chunks())
	sizes := o.blockSizes(r)
	for i, block := range o.blocks(r) {
		for k, n := range nearlyEqual(sizes[i], sub) {
			chunk := make([]uint64, n)
			for i := range chunk {
				chunk[i] = o.widen(getBits(in, size))
				in = in[size:]
			}
			m[block*sub+k] = chunk
		}
	}
	return m
}

func (o *oracle) round(steps []ccl.Step) {
	var messages [][][]uint64
	for _, step := range steps {
		from := o.ranks
		if step.FromInput {
			from = o.inputs
		}
		var sent [][]uint64
		for place := step.Lo; place < step.Hi; place++ {
			c := o.schedule.Chunk(place)
			if step.Kind == ccl.ReduceInSwitch {
				sent = append(sent, o.reduceAll(o.schedule.Groups[step.Group], c))
				continue
			}
			sent = append(sent, from[step.Src][c])
		}
		messages = append(messages, sent)
	}
	for i, step := range steps {
		for k, arriving := range messages[i] {
			receivers := []int32{step.Dst}
			if step.Kind == ccl.Multicast {
				receivers = o.schedule.Groups[step.Group]
			}
			for _, r := range receivers {
				dst := &o.ranks[r][o.schedule.Chunk(step.Lo+int32(k))]
				made := slices.Clone(arriving)
				for e := range made {
					if step.Kind == ccl.Reduce {
						made[e] = o.combine(arriving[e], (*dst)[e])
					}
				}
				*dst = made
			}
		}
	}
}

// reduceAll reduces the inputs of a chunk in the order of ranks.
func (o *oracle) reduceAll(members []int32, chunk int) []uint64 {
	all := slices.Clone(o.inputs[members[0]][chunk])
	for _, m := range members[1:] {
		for e, x := range o.inputs[m][chunk] {
			all[e] = o.combine(all[e], x)
		}
	}
	return all
}

// aSwitchReduces says whether one does, which keeps narrow floats in float32.
func aSwitchReduces(s *ccl.Schedule) bool {
	return slices.ContainsFunc(s.Steps, func(step ccl.Step) bool { return step.Kind == ccl.ReduceInSwitch })
}

func (o *oracle) result(r int) []byte {
	blocks, size := o.resultBlocks(r), o.values.DType.Size()
	if blocks == nil {
		return nil
	}
	out := []byte{}
	for _, block := range blocks {
		for _, chunk := range o.ranks[r][block*o.schedule.Sub : (block+1)*o.schedule.Sub] {
			for _, x := range chunk {
				out = append(out, make([]byte, size)...)
				putBits(out[len(out)-size:], size, o.finish(x))
			}
		}
	}
	return out
}

func (o *oracle) widen(x uint64) uint64 {
	if o.wide {
		return uint64(math.Float32bits(decode(o.values.DType, x)))
	}
	return x
}

func (o *oracle) combine(x, y uint64) uint64 {
	if o.wide {
		return combineBits(o.values.Op, dtype.F32, x, y)
	}
	return combineBits(o.values.Op, o.values.DType, x, y)
}

func (o *oracle) finish(x uint64) uint64 {
	d := o.values.DType
	average := o.values.Op == tensor.Avg && reduces(o.schedule.Collective)
	if o.wide {
		f := math.Float32frombits(uint32(x))
		if average {
			f /= float32(o.schedule.World)
		}
		return encode(d, f)
	}
	if average {
		return divideBits(d, x, o.schedule.World)
	}
	return x
}

func reduces(c collective.Kind) bool {
	return c == collective.AllReduce || c == collective.ReduceScatter || c == collective.Reduce
}

func combineBits(op tensor.ReduceOp, d dtype.DType, x, y uint64) uint64 {
	switch {
	case d == dtype.Bool:
		return combineBool(op, x, y)
	case d == dtype.F64:
		return math.Float64bits(combineFloat(op, math.Float64frombits(x), math.Float64frombits(y)))
	case d.IsFloat():
		return encode(d, combineFloat(op, decode(d, x), decode(d, y)))
	case d.IsSigned():
		return combineInt(op, signed(d, x), signed(d, y)) & mask(d)
	}
	return combineInt(op, x, y) & mask(d)
}

func combineFloat[T float32 | float64](op tensor.ReduceOp, x, y T) T {
	switch op {
	case tensor.Sum, tensor.Avg:
		return x + y
	case tensor.Prod:
		return x * y
	case tensor.Min:
		return min(x, y)
	case tensor.Max:
		return max(x, y)
	}
	panic("no such operation on floats")
}

func combineInt[T int64 | uint64](op tensor.ReduceOp, x, y T) uint64 {
	switch op {
	case tensor.Sum, tensor.Avg:
		return uint64(x + y)
	case tensor.Prod:
		return uint64(x * y)
	case tensor.Min:
		return uint64(min(x, y))
	case tensor.Max:
		return uint64(max(x, y))
	case tensor.BAnd:
		return uint64(x & y)
	case tensor.BOr:
		return uint64(x | y)
	case tensor.BXor:
		return uint64(x ^ y)
	}
	panic("no such operation on integers")
}

func combineBool(op tensor.ReduceOp, x, y uint64) uint64 {
	switch op {
	case tensor.Sum, tensor.Max, tensor.BOr:
		return x | y
	case tensor.Prod, tensor.Min, tensor.BAnd:
		return x & y
	case tensor.BXor:
		return x ^ y
	}
	panic("no such operation on bool")
}

func divideBits(d dtype.DType, x uint64, world int) uint64 {
	switch {
	case d == dtype.F64:
		return math.Float64bits(math.Float64frombits(x) / float64(world))
	case d.IsFloat():
		return encode(d, decode(d, x)/float32(world))
	case d.IsSigned():
		return uint64(signed(d, x)/int64(world)) & mask(d)
	}
	return x / uint64(world)
}

func decode(d dtype.DType, x uint64) float32 {
	switch d {
	case dtype.F32:
		return math.Float32frombits(uint32(x))
	case dtype.F16:
		return dtype.F16ToF32(uint16(x))
	case dtype.BF16:
		return dtype.BF16ToF32(uint16(x))
	case dtype.F8E4M3:
		return dtype.F8E4M3ToF32(uint8(x))
	}
	return dtype.F8E5M2ToF32(uint8(x))
}

func encode(d dtype.DType, f float32) uint64 {
	switch d {
	case dtype.F32:
		return uint64(math.Float32bits(f))
	case dtype.F16:
		return uint64(dtype.F32ToF16(f))
	case dtype.BF16:
		return uint64(dtype.F32ToBF16(f))
	case dtype.F8E4M3:
		return uint64(dtype.F32ToF8E4M3(f))
	}
	return uint64(dtype.F32ToF8E5M2(f))
}

func isNaN(d dtype.DType, x uint64) bool {
	if d == dtype.F64 {
		return math.IsNaN(math.Float64frombits(x))
	}
	return d.IsFloat() && decode(d, x) != decode(d, x)
}

func mask(d dtype.DType) uint64 { return ^uint64(0) >> (64 - 8*d.Size()) }

func signed(d dtype.DType, x uint64) int64 {
	unused := 64 - 8*d.Size()
	return int64(x<<unused) >> unused
}

func getBits(b []byte, size int) uint64 {
	var word [8]byte
	copy(word[:], b[:size])
	return binary.LittleEndian.Uint64(word[:])
}

func putBits(b []byte, size int, x uint64) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], x)
	copy(b[:size], word[:])
}

// randomInputs returns inputs whose sums need rounding.
func randomInputs(rng *rand.Rand, d dtype.DType, world, elems int) [][]byte {
	inputs := make([][]byte, world)
	for r := range inputs {
		inputs[r] = randomInput(rng, d, elems)
	}
	return inputs
}

// randomInput returns floats of both signs over a few powers of two, or integers of any bits. It begins at an odd address.
func randomInput(rng *rand.Rand, d dtype.DType, elems int) []byte {
	in := make([]byte, elems*d.Size()+1)[1:]
	for i := range elems {
		putBits(in[i*d.Size():], d.Size(), randomBits(rng, d))
	}
	return in
}

func randomBits(rng *rand.Rand, d dtype.DType) uint64 {
	f := rng.NormFloat64() * float64(int(1)<<rng.IntN(6))
	switch {
	case d == dtype.Bool:
		return uint64(rng.IntN(2))
	case d == dtype.F64:
		return math.Float64bits(f)
	case d.IsFloat():
		return encode(d, float32(f))
	}
	return rng.Uint64() & mask(d)
}
