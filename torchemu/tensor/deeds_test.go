package tensor_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// TestRunsAreTheElements compares the stretches of random views with the places of their elements, one by one.
func TestRunsAreTheElements(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		whole, err := tensor.New(dtype.F32, 4, 5, 6)
		if err != nil {
			t.Fatal(err)
		}
		l := tensor.Layout{Offset: rng.IntN(3), Shape: []int{1 + rng.IntN(4), 1 + rng.IntN(3), 1 + rng.IntN(3)}, Strides: []int{30, 6, 1 + rng.IntN(2)}}
		if rng.IntN(2) == 0 {
			l.Shape[0], l.Shape[2], l.Strides[0], l.Strides[2] = l.Shape[2], l.Shape[0], l.Strides[2], l.Strides[0]
		}
		view, err := tensor.Over(whole.Storage(), dtype.F32, l)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []int
		for i := range l.Shape[0] {
			for j := range l.Shape[1] {
				for k := range l.Shape[2] {
					want = append(want, 4*(l.Offset+i*l.Strides[0]+j*l.Strides[1]+k*l.Strides[2]))
				}
			}
		}
		for lo, hi := range view.Runs {
			for at := lo; at < hi; at += 4 {
				got = append(got, at)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %+v has its elements at %v, want %v", seed, l, got, want)
		}
	}
}

// naive is a history of deeds, none of which it forgets.
type naive []struct {
	*tensor.Deed
	lo, hi int
	access tensor.Access
}

// clashes says whether a deed of some bytes is in no order with an earlier one of the same rank.
func (n naive) clashes(d *tensor.Deed, lo, hi int, a tensor.Access) bool {
	for _, o := range n {
		if o.Rank == d.Rank && o.Deed != d && lo < o.hi && o.lo < hi && (a == tensor.Write || o.access == tensor.Write) &&
			!d.Known.Knows(o.At) && !o.Known.Knows(d.At) {
			return true
		}
	}
	return false
}

// TestTouchAgainstAFullHistory: what a storage has forgotten of random deeds of three streams made no difference, up to
// the first pair that nothing orders.
func TestTouchAgainstAFullHistory(t *testing.T) {
	races, clean := 0, 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var lanes order.Lanes
		lines := []*order.Line{lanes.NewLine(), lanes.NewLine(), lanes.NewLine()}
		whole, err := tensor.New(dtype.U8, 32)
		if err != nil {
			t.Fatal(err)
		}
		var all naive
		raced := false
		for range 3 + rng.IntN(25) {
			line := lines[rng.IntN(3)]
			if rng.IntN(8) > 0 {
				line.Learn(lines[rng.IntN(3)].Here())
				line.Learn(lines[rng.IntN(3)].Here())
			}
			d := &tensor.Deed{Name: "deed", Rank: rng.IntN(2), At: line.Advance(), Known: line.Here().Clock(), End: line.Here()}
			lo := rng.IntN(31)
			hi, a := lo+1+rng.IntN(32-lo), tensor.Access(rng.IntN(3) == 0)
			want := all.clashes(d, lo, hi, a)
			if got := whole.Storage().TouchBytes(lo, hi, a, d); (got != nil) != want {
				t.Fatalf("seed %d: %v, want a report: %v", seed, got, want)
			}
			all = append(all, struct {
				*tensor.Deed
				lo, hi int
				access tensor.Access
			}{d, lo, hi, a})
			if raced = want; raced {
				break
			}
		}
		if raced {
			races++
		} else {
			clean++
		}
	}
	if races < 100 || clean < 100 {
		t.Errorf("%d histories with a race and %d without are too few to tell", races, clean)
	}
}

// TestPartsOfAProgram: an operation comes after what a program had done by then, where that is known once all is known that
// was before the operation.
func TestPartsOfAProgram(t *testing.T) {
	for _, heard := range []bool{false, true} {
		var lanes order.Lanes
		program, host := lanes.NewLine(), lanes.NewLine()
		buffer, err := tensor.New(dtype.U8, 8)
		if err != nil {
			t.Fatal(err)
		}
		var late error
		begin := program.Here()
		parts := &tensor.Parts{Among: t, Report: func(err error) { late = err }}
		store := &tensor.Deed{Name: "store", At: order.Moment{Lane: lanes.New(), Tick: 1}, Known: begin.Clock(), Begin: begin, Parts: parts}
		told := program.Advance()
		parts.Over.Set(told)
		if err := buffer.Storage().TouchPart(0, 8, tensor.Write, store, program.Here().Clock()); err != nil {
			t.Fatal(err)
		}
		signal := order.NewPoint(nil)
		host.Learn(signal)
		at, here := host.Advance(), host.Here()
		read := &tensor.Deed{Name: "read", At: at, Known: here.Clock(), Begin: here, End: here}
		if err := buffer.Touch(tensor.Read, read); err != nil {
			t.Fatalf("heard %v: reported before it is known: %v", heard, err)
		}
		if heard {
			signal.Tell(program.Here().Clock())
		}
		signal.Seal()
		if (late == nil) != heard {
			t.Errorf("heard %v: reported %v", heard, late)
		}
	}
}

// TestTouchesThatAreExpected: what a program is yet to do is compared with all that was issued before it, also where something
// later makes up for that.
func TestTouchesThatAreExpected(t *testing.T) {
	for _, expected := range []bool{false, true} {
		var lanes order.Lanes
		buffer, err := tensor.New(dtype.U8, 8)
		if err != nil {
			t.Fatal(err)
		}
		if expected {
			defer buffer.Storage().Expect()()
		}
		cur, side := lanes.NewLine(), lanes.NewLine()
		program := &tensor.Deed{At: side.Advance(), Known: side.Here().Clock(), Begin: side.Here()}
		for _, learns := range []bool{false, true} {
			if learns {
				cur.Learn(side.Here())
			}
			at := cur.Advance()
			if err := buffer.Touch(tensor.Write, &tensor.Deed{At: at, Known: cur.Here().Clock(), Begin: cur.Here()}); err != nil {
				t.Fatal(err)
			}
		}
		if err := buffer.Touch(tensor.Read, program); (err != nil) != expected {
			t.Errorf("expected %v: reported %v", expected, err)
		}
	}
}
