package tensor_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

var indexed = []int{3, -1, 0, 3, 1, 3, -1}

func TestRows(t *testing.T) {
	for _, d := range floatTypes {
		table := made(t, d, []int{4, 3}, func(i int) float64 { return float64(i + 1) })
		expectNumbers(t, must(tensor.Rows(table, indexed)), []int{7, 3}, func(i int) float64 {
			if at := indexed[i/3]; at >= 0 {
				return round(d, float64(at*3+i%3+1))
			}
			return 0
		})
	}
	none := must(tensor.Rows(must(tensor.New(dtype.F32, 0, 3)), []int{-1, -1}))
	expectNumbers(t, none, []int{2, 3}, func(int) float64 { return 0 })
}

// Against Rows as a matrix: what it maps, AddRows maps with the transpose.
func TestAddRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, d := range floatTypes {
		x := noise(t, rng, d, len(indexed), 2)
		v := values(t, x)
		expectNumbers(t, must(tensor.AddRows(5, indexed, x)), []int{5, 2}, func(i int) float64 {
			sum := 0.0
			for k, at := range indexed {
				if at == i/2 {
					sum = round(max(d, dtype.F32), sum+v[2*k+i%2])
				}
			}
			return round(d, sum)
		})
	}
}

func TestAddRowsAccumulatesInFloat32(t *testing.T) {
	ones := made(t, dtype.BF16, []int{1000, 1}, func(int) float64 { return 1 })
	expectNumbers(t, must(tensor.AddRows(1, make([]int, 1000), ones)), []int{1, 1}, func(int) float64 { return 1000 })
}

func TestPickAndAddAt(t *testing.T) {
	for _, d := range floatTypes {
		x := made(t, d, []int{7, 4}, func(i int) float64 { return float64(i / 2) })
		expectNumbers(t, must(tensor.Pick(x, indexed)), []int{7}, func(i int) float64 {
			if indexed[i] < 0 {
				return 0
			}
			return round(d, float64((4*i+indexed[i])/2))
		})
		if err := tensor.AddAt(x, indexed, -0.5); err != nil {
			t.Fatal(err)
		}
		expectNumbers(t, x, []int{7, 4}, func(i int) float64 {
			if indexed[i/4] == i%4 {
				return round(d, round(d, float64(i/2))-0.5)
			}
			return round(d, float64(i/2))
		})
	}
}

func TestAddAtAView(t *testing.T) {
	x := made(t, dtype.F64, []int{2, 3}, func(i int) float64 { return float64(i) })
	turned, err := x.Transpose(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := tensor.AddAt(turned, []int{1, -1, 0}, 10); err != nil {
		t.Fatal(err)
	}
	expectNumbers(t, x, []int{2, 3}, func(i int) float64 { return []float64{0, 1, 12, 13, 4, 5}[i] })
}

func TestInts(t *testing.T) {
	for _, d := range []dtype.DType{dtype.I64, dtype.I32, dtype.U8, dtype.I8} {
		x := made(t, d, []int{2, 2}, func(i int) float64 { return float64(3 * i) })
		if got, err := tensor.Ints(x); err != nil || fmt.Sprint(got) != "[0 3 6 9]" {
			t.Errorf("%v: %v, %v", d, got, err)
		}
	}
}
