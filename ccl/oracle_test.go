package ccl_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// The oracle executes a Schedule as its documentation reads: every rank has its own array, every step of every round
// is carried out element by element. A value is raw bits of the dtype, or of a float32 while partial sums are wide.
type oracle struct {
	schedule *ccl.Schedule
	values   ccl.Values
	wide     bool
	elems    int // of the whole vector
	ranks    [][]uint64
	inputs   [][]uint64
}

// interpret returns the bytes that each rank ends with.
func interpret(s *ccl.Schedule, v ccl.Values) [][]byte {
	o := &oracle{schedule: s, values: v, elems: len(v.Inputs[0]) / v.DType.Size()}
	o.wide = v.AccumulateF32 && v.DType.IsFloat() && v.DType.Size() < 4
	if s.Collective == ccl.AllGather {
		o.elems *= s.World
	}
	for r := range s.World {
		o.inputs = append(o.inputs, o.load(r))
		o.ranks = append(o.ranks, append([]uint64(nil), o.inputs[r]...))
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

// load spreads rank r's input over the whole vector.
func (o *oracle) load(r int) []uint64 {
	in, size := o.values.Inputs[r], o.values.DType.Size()
	vector := make([]uint64, o.elems)
	first := 0
	if o.schedule.Collective == ccl.AllGather {
		first = r * len(in) / size
	}
	for i := 0; i < len(in)/size; i++ {
		vector[first+i] = o.widen(getBits(in[i*size:], size))
	}
	return vector
}

func (o *oracle) round(steps []ccl.Step) {
	type message struct {
		at   int
		data []uint64
	}
	var messages []message
	for _, step := range steps {
		lo, _ := o.schedule.Span(int(step.Lo), o.elems)
		_, hi := o.schedule.Span(int(step.Hi)-1, o.elems)
		from := o.ranks
		if step.FromInput {
			from = o.inputs
		}
		messages = append(messages, message{lo, append([]uint64(nil), from[step.Src][lo:hi]...)})
	}
	for i, step := range steps {
		for k, x := range messages[i].data {
			dst := &o.ranks[step.Dst][messages[i].at+k]
			if step.Kind == ccl.Reduce {
				x = o.combine(x, *dst)
			}
			*dst = x
		}
	}
}

func (o *oracle) result(r int) []byte {
	vector := o.ranks[r]
	if o.schedule.Collective == ccl.ReduceScatter {
		block := o.elems / o.schedule.World
		vector = vector[r*block : (r+1)*block]
	}
	size := o.values.DType.Size()
	out := make([]byte, len(vector)*size)
	for i, x := range vector {
		putBits(out[i*size:], size, o.finish(x))
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
	average := o.values.Op == tensor.Avg && o.schedule.Collective != ccl.AllGather
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

// randomInputs returns inputs whose sums need rounding: floats of both signs over a few powers of two, integers of any
// bits. They begin at odd addresses.
func randomInputs(rng *rand.Rand, d dtype.DType, world, elems int) [][]byte {
	inputs := make([][]byte, world)
	for r := range inputs {
		inputs[r] = make([]byte, elems*d.Size()+1)[1:]
		for i := range elems {
			putBits(inputs[r][i*d.Size():], d.Size(), randomBits(rng, d))
		}
	}
	return inputs
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
