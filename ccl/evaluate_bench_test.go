package ccl_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// ringSchedule is the ring all-reduce of world ranks.
func ringSchedule(tb testing.TB, world int) *ccl.Schedule {
	a, err := ccl.Lookup(collective.AllReduce, "ring")
	if err != nil {
		tb.Fatal(err)
	}
	return a.Build(ccl.Layout{World: world}, 0)
}

// storages returns one storage a rank, and their bytes.
func storages(tb testing.TB, world, bytes int) []*tensor.Storage {
	list := make([]*tensor.Storage, world)
	for r := range list {
		s, err := tensor.NewStorage(bytes)
		if err != nil {
			tb.Fatal(err)
		}
		list[r] = s
	}
	return list
}

// refill writes new values, as a program would between two collectives, and returns the bytes.
func refill(list []*tensor.Storage) [][]byte {
	pattern := make([]byte, 4<<10)
	for i := range pattern {
		pattern[i] = byte(i*7) & 0x3f // finite in every float format, and so are sums
	}
	inputs := make([][]byte, len(list))
	for r, s := range list {
		inputs[r] = s.Writable()
		for at := 0; at < len(inputs[r]); {
			at += copy(inputs[r][at:], pattern[r%7*4:])
		}
	}
	return inputs
}

func releaseAll(list []*tensor.Storage) {
	for _, s := range list {
		s.Release()
	}
}

// BenchmarkEvaluate is the data of a ring all-reduce, without its timing.
func BenchmarkEvaluate(b *testing.B) {
	for _, c := range []struct {
		world, bytes int
		d            dtype.DType
		wide         bool
	}{
		{8, 4 << 10, dtype.F32, false},
		{8, 16 << 20, dtype.F32, false},
		{8, 16 << 20, dtype.F16, false},
		{8, 16 << 20, dtype.BF16, false},
		{8, 16 << 20, dtype.F16, true},
		{8, 16 << 20, dtype.F64, false},
		{1024, 1 << 20, dtype.F32, false},
		{1024, 1 << 20, dtype.F16, false},
	} {
		name := fmt.Sprintf("%d×%dKiB/%v", c.world, c.bytes>>10, c.d)
		if c.wide {
			name += "/accumulate=f32"
		}
		b.Run(name, func(b *testing.B) { benchmarkEvaluate(b, c.world, c.bytes, c.d, c.wide) })
	}
}

func benchmarkEvaluate(b *testing.B, world, bytes int, d dtype.DType, wide bool) {
	s := ringSchedule(b, world)
	inputs := storages(b, world, bytes)
	defer releaseAll(inputs)
	v := ccl.Values{Op: tensor.Sum, DType: d, AccumulateF32: wide, Inputs: refill(inputs)}
	releaseAll(evaluate(b, s, v)) // compiles
	var spent time.Duration
	for b.Loop() {
		b.StopTimer()
		v.Inputs = refill(inputs)
		b.StartTimer()
		start := time.Now()
		results := evaluate(b, s, v)
		spent += time.Since(start)
		releaseAll(results)
	}
	b.ReportMetric(spent.Seconds()*1e3/float64(b.N), "ms")
}

func evaluate(tb testing.TB, s *ccl.Schedule, v ccl.Values) []*tensor.Storage {
	results, err := s.Evaluate(v)
	if err != nil {
		tb.Fatal(err)
	}
	return results
}

// BenchmarkCompile is what the first Evaluate of a schedule adds.
func BenchmarkCompile(b *testing.B) {
	v := ccl.Values{Op: tensor.Sum, DType: dtype.U8, Inputs: make([][]byte, 1024)}
	for r := range v.Inputs {
		v.Inputs[r] = make([]byte, 1024)
	}
	for b.Loop() {
		b.StopTimer()
		s := ringSchedule(b, 1024)
		b.StartTimer()
		releaseAll(evaluate(b, s, v))
	}
}
