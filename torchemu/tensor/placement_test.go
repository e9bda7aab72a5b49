package tensor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

var modes = []tensor.Mode{tensor.Replicate, tensor.ColumnWise, tensor.RowWise}

// owners lists, for every element of a tensor numbered from 0, the shards that hold it, and checks the views' order.
func owners(t *testing.T, n int, shards []tensor.Shard) [][]int {
	t.Helper()
	all := make([][]int, n)
	for s, shard := range shards {
		last := -1
		for _, index := range indices(shard.View.Shape()) {
			i := int(shard.View.At(index...))
			if i <= last {
				t.Fatalf("shard %d: element %d after %d", s, i, last)
			}
			all[i], last = append(all[i], s), i
		}
	}
	return all
}

// Every small shape on every small device: an element is in exactly as many shards as the replicating levels say,
// each shard is where it should be, and the parts of a dimension differ by at most one, the longer first.
func TestShardsCoverTheTensor(t *testing.T) {
	for _, shape := range [][]int{{0}, {1}, {5}, {8}, {1, 1}, {3, 5}, {4, 4}, {7, 2}, {2, 0}, {2, 3, 5}} {
		x := wide(t, shape)
		for _, cube := range modes {
			for _, pe := range modes {
				for cubes := 1; cubes <= 4; cubes++ {
					for pes := 1; pes <= 8; pes++ {
						p := tensor.Placement{Cube: cube, PE: pe, NumCubes: cubes, NumPEs: pes}
						shards, err := p.Shards(x, 4, 8)
						if err != nil {
							t.Fatal(err)
						}
						checkShards(t, p, x, shards)
					}
				}
			}
		}
	}
}

// wide is a tensor whose element i is the number i.
func wide(t *testing.T, shape []int) *tensor.Tensor {
	t.Helper()
	x := numbered(t, dtype.I16, shape)
	if x.Numel() > 100 {
		t.Fatal("numbers would repeat")
	}
	return x
}

func checkShards(t *testing.T, p tensor.Placement, x *tensor.Tensor, shards []tensor.Shard) {
	t.Helper()
	if len(shards) != p.NumCubes*p.NumPEs {
		t.Fatalf("%+v: %d shards", p, len(shards))
	}
	copies := 1
	if p.Cube == tensor.Replicate {
		copies *= p.NumCubes
	}
	if p.PE == tensor.Replicate {
		copies *= p.NumPEs
	}
	for i, held := range owners(t, x.Numel(), shards) {
		if len(held) != copies {
			t.Fatalf("%+v of shape %v: element %d is in the shards %v, want %d of them", p, x.Shape(), i, held, copies)
		}
	}
	for s, shard := range shards {
		if shard.Cube != s/p.NumPEs || shard.PE != s%p.NumPEs || shard.View.Storage() != x.Storage() {
			t.Fatalf("%+v: shard %d is on cube %d, PE %d", p, s, shard.Cube, shard.PE)
		}
		if want := shardShape(p, x.Shape(), shard.Cube, shard.PE); !slices.Equal(shard.View.Shape(), want) {
			t.Fatalf("%+v: shard %d of shape %v has shape %v, want %v", p, s, x.Shape(), shard.View.Shape(), want)
		}
	}
}

func shardShape(p tensor.Placement, shape []int, cube, pe int) []int {
	shape = slices.Clone(shape)
	for _, level := range []struct {
		mode     tensor.Mode
		parts, i int
	}{{p.Cube, p.NumCubes, cube}, {p.PE, p.NumPEs, pe}} {
		d := map[tensor.Mode]int{tensor.Replicate: -1, tensor.ColumnWise: len(shape) - 1, tensor.RowWise: 0}[level.mode]
		if d >= 0 { // the i-th of so many: one more element than the last parts as long as the remainder lasts
			shape[d] = (shape[d] + level.parts - 1 - level.i) / level.parts
		}
	}
	return shape
}

func TestShardsBlockByBlock(t *testing.T) {
	x := wide(t, []int{4, 6})
	shards, err := tensor.Placement{Cube: tensor.ColumnWise, PE: tensor.RowWise}.Shards(x, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range [][]int{{0, 1, 6, 7}, {12, 13, 18, 19}, {2, 3, 8, 9}, {14, 15, 20, 21}, {4, 5, 10, 11}, {16, 17, 22, 23}} {
		var got []int
		for _, index := range indices(shards[s].View.Shape()) {
			got = append(got, int(shards[s].View.At(index...)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("shard %d holds %v, want %v", s, got, want)
		}
	}
}

func TestSevenOfEightPEs(t *testing.T) {
	x := wide(t, []int{1, 100})
	shards, err := tensor.Placement{PE: tensor.ColumnWise, NumCubes: 1, NumPEs: 7}.Shards(x, 16, 8)
	if err != nil || len(shards) != 7 {
		t.Fatalf("%d shards, %v", len(shards), err)
	}
	for s, want := range []int{15, 15, 14, 14, 14, 14, 14} {
		if got := shards[s].View.Numel(); got != want || shards[s].PE != s {
			t.Errorf("shard %d on PE %d has %d elements, want %d", s, shards[s].PE, got, want)
		}
	}
}

func TestZeroMeansAll(t *testing.T) {
	shards, err := tensor.Placement{Cube: tensor.RowWise}.Shards(wide(t, []int{16}), 16, 8)
	if err != nil || len(shards) != 128 {
		t.Errorf("%d shards, %v; want 128", len(shards), err)
	}
}

func TestPlacementErrorsNameTheNumbers(t *testing.T) {
	matrix, scalar := wide(t, []int{2, 2}), wide(t, nil)
	for _, c := range []struct {
		p     tensor.Placement
		x     *tensor.Tensor
		names []string
	}{
		{tensor.Placement{NumCubes: 17}, matrix, []string{"num_cubes", "17", "16"}},
		{tensor.Placement{NumCubes: -1}, matrix, []string{"num_cubes", "-1", "16"}},
		{tensor.Placement{NumPEs: 9}, matrix, []string{"num_pes", "9", "8"}},
		{tensor.Placement{NumPEs: -3}, matrix, []string{"num_pes", "-3", "8"}},
		{tensor.Placement{Cube: tensor.ColumnWise}, scalar, []string{"column_wise", "replicate"}},
		{tensor.Placement{PE: tensor.RowWise}, scalar, []string{"row_wise", "replicate"}},
		{tensor.Placement{PE: 7}, matrix, []string{"7", "replicate", "column_wise", "row_wise"}},
	} {
		shards, err := c.p.Shards(c.x, 16, 8)
		if err == nil || shards != nil {
			t.Errorf("%+v: no error", c.p)
			continue
		}
		for _, name := range c.names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%+v: %q does not name %s", c.p, err, name)
			}
		}
	}
}

func TestParseMode(t *testing.T) {
	for _, m := range modes {
		if got, err := tensor.ParseMode(m.String()); err != nil || got != m {
			t.Errorf("ParseMode(%q) = %v, %v", m, got, err)
		}
	}
	for _, name := range []string{"", "columns", "Replicate"} {
		_, err := tensor.ParseMode(name)
		if err == nil {
			t.Fatalf("ParseMode(%q): no error", name)
		}
		for _, m := range modes {
			if !strings.Contains(err.Error(), m.String()) {
				t.Errorf("%q does not list %v", err, m)
			}
		}
	}
}
