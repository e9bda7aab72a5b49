package tp_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/torchemu/torchemu/tp"
)

// What the steps of a plan mean, on plain numbers in float64 and for all ranks at once: written from the definitions, and
// with nothing of what executes plans.

// byRank is the value of every rank.
type byRank []array

// evaluate runs through a plan. inputs are by input, and then by rank. Places of tokens are arrays of their numbers in
// the rank's part, and -1: which also says whose they are.
func evaluate(p *tp.Plan, inputs ...byRank) (outputs, saved []byRank) {
	values := make([]byRank, p.Values)
	copy(values, inputs)
	for _, s := range p.Steps {
		in := make([]byRank, len(s.In))
		for i, v := range s.In {
			in[i] = values[v]
		}
		for _, v := range s.Out {
			values[v] = step(s, p.Ranks, in)
		}
	}
	for _, o := range p.Outputs {
		outputs = append(outputs, values[o.Value])
	}
	for _, v := range p.Saved {
		saved = append(saved, values[v])
	}
	return outputs, saved
}

func step(s tp.Step, n int, in []byRank) byRank {
	if do := together[s.Op]; do != nil {
		return do(s.With, in[0])
	}
	do := alone[s.Op]
	if do == nil {
		panic(fmt.Sprintf("the test does not know what %s means", s.Op))
	}
	out := make(byRank, n)
	for r := range n {
		operands := make([]array, len(in))
		for i := range in {
			operands[i] = in[i][r]
		}
		out[r] = do(s.With, rank{r, n}, operands)
	}
	return out
}

// rank is which of how many.
type rank struct{ r, n int }

var together = map[tp.Op]func(with tp.Parameters, x byRank) byRank{
	tp.OpAllReduce: func(with tp.Parameters, x byRank) byRank {
		if with.Reduce == "sum" {
			return everywhere(total)(x)
		}
		top := summed(x[0])
		for _, a := range x[1:] {
			for i, v := range a.values {
				top.values[i] = max(top.values[i], v)
			}
		}
		return slices.Repeat(byRank{top}, len(x))
	},
	tp.OpAllGather:     func(_ tp.Parameters, x byRank) byRank { return gathered(0)(x) },
	tp.OpReduceScatter: func(_ tp.Parameters, x byRank) byRank { return scattered(0)(x) },
	tp.OpAllToAll:      func(_ tp.Parameters, x byRank) byRank { return exchanged(0, 0)(x) },
}

var alone = map[tp.Op]func(with tp.Parameters, at rank, in []array) array{
	tp.OpContiguous: func(_ tp.Parameters, _ rank, in []array) array { return in[0] },
	tp.OpCopy:       func(_ tp.Parameters, _ rank, in []array) array { return in[0] },
	tp.OpCast:       func(_ tp.Parameters, _ rank, in []array) array { return in[0] },
	tp.OpRows:       func(_ tp.Parameters, _ rank, in []array) array { return in[0].matrix() },
	tp.OpPart: func(with tp.Parameters, at rank, in []array) array {
		return in[0].part((with.Dim+len(in[0].shape))%len(in[0].shape), at.r, at.n)
	},
	tp.OpJoin: func(_ tp.Parameters, at rank, in []array) array {
		return joined(len(in[0].shape)-1, cut(in[0], 0, at.n)...)
	},
	tp.OpStack: func(_ tp.Parameters, at rank, in []array) array {
		return joined(0, cut(in[0], len(in[0].shape)-1, at.n)...)
	},
	tp.OpSwap: func(_ tp.Parameters, _ rank, in []array) array { return swapped(in[0]) },
	tp.OpColumn: func(_ tp.Parameters, _ rank, in []array) array {
		return array{append(slices.Clone(in[0].shape), 1), in[0].values}
	},
	tp.OpMatMul: multiplied,
	tp.OpSumRows: func(_ tp.Parameters, _ rank, in []array) array {
		rows := in[0].matrix()
		sums := zeros(rows.shape[1])
		for i, x := range rows.values {
			sums.values[i%rows.shape[1]] += x
		}
		return sums
	},
	tp.OpAdd:       elementwise(func(a, b float64) float64 { return a + b }),
	tp.OpSub:       elementwise(func(a, b float64) float64 { return a - b }),
	tp.OpDiv:       elementwise(func(a, b float64) float64 { return a / b }),
	tp.OpMulInto:   elementwise(func(a, b float64) float64 { return a * b }),
	tp.OpExp:       numbers(func(x, _ float64) float64 { return math.Exp(x) }),
	tp.OpLog:       numbers(func(x, _ float64) float64 { return math.Log(x) }),
	tp.OpScale:     numbers(func(x, by float64) float64 { return x * by }),
	tp.OpShiftInto: numbers(func(x, by float64) float64 { return x - by }),
	tp.OpMaxLast:   ofRows(slices.Max[[]float64]),
	tp.OpSumLast:   ofRows(added),
	tp.OpMeanLast:  ofRows(func(row []float64) float64 { return added(row) / float64(len(row)) }),
	tp.OpLocate: func(with tp.Parameters, at rank, in []array) array {
		places := zeros(in[0].shape...)
		for i, token := range in[0].values {
			places.values[i] = -1
			if own := int(token) - at.r*with.Part; own >= 0 && own < with.Part {
				places.values[i] = float64(own)
			}
		}
		return places
	},
	tp.OpLookup: func(_ tp.Parameters, _ rank, in []array) array {
		width := in[1].shape[1]
		rows := zeros(append(slices.Clone(in[0].shape), width)...)
		for i, place := range in[0].values {
			for k := range width {
				rows.values[i*width+k] = 99 // of another rank's token: to be masked
				if place >= 0 {
					rows.values[i*width+k] = in[1].values[in[1].at(int(place), k)]
				}
			}
		}
		return rows
	},
	tp.OpMask: func(_ tp.Parameters, _ rank, in []array) array {
		rows := summed(in[0])
		width := len(rows.values) / len(in[1].values)
		for i := range rows.values {
			if in[1].values[i/width] < 0 {
				rows.values[i] = 0
			}
		}
		return rows
	},
	tp.OpTableGrad: func(with tp.Parameters, _ rank, in []array) array {
		rows := in[1].matrix()
		table := zeros(with.Part, rows.shape[1])
		for i, place := range in[0].values {
			for k := range rows.shape[1] {
				table.values[table.at(max(int(place), 0), k)] += rows.values[rows.at(i, k)]
			}
		}
		return table
	},
	tp.OpEnumerate: func(_ tp.Parameters, _ rank, in []array) array {
		numbers := zeros(len(in[0].values))
		for i := range numbers.values {
			numbers.values[i] = float64(i)
		}
		return numbers
	},
	tp.OpPick: func(_ tp.Parameters, _ rank, in []array) array {
		rows, picked := in[0].matrix(), zeros(in[3].shape...)
		for i, place := range in[3].values {
			if place >= 0 {
				picked.values[i] = rows.values[rows.at(int(in[2].values[i]), int(place))]
			}
		}
		return picked
	},
	tp.OpAddAt: func(with tp.Parameters, _ rank, in []array) array {
		rows := array{in[0].matrix().shape, slices.Clone(in[0].values)}
		for i, place := range in[2].values {
			if place >= 0 {
				rows.values[rows.at(i, int(place))] += with.Number
			}
		}
		return array{in[0].shape, rows.values}
	},
}

// cut is all parts along a dimension.
func cut(a array, dim, n int) []array {
	parts := make([]array, n)
	for r := range n {
		parts[r] = a.part(dim, r, n)
	}
	return parts
}

// swapped exchanges the first two dimensions.
func swapped(a array) array {
	b := zeros(append([]int{a.shape[1], a.shape[0]}, a.shape[2:]...)...)
	inner := count(a.shape[2:])
	for i := range a.shape[0] {
		for j := range a.shape[1] {
			copy(b.values[(j*a.shape[0]+i)*inner:], a.values[(i*a.shape[1]+j)*inner:(i*a.shape[1]+j+1)*inner])
		}
	}
	return b
}

func multiplied(with tp.Parameters, _ rank, in []array) array {
	left, right := in[0].matrix(), in[1]
	shape := slices.Clone(in[0].shape)
	if with.TransposeLeft {
		left = turned(left)
		shape = left.shape
	}
	if with.TransposeRight {
		right = turned(right)
	}
	y, _ := product(left, right)
	return array{append(slices.Clone(shape[:len(shape)-1]), right.shape[1]), y.values}
}

// elementwise is f of a, and of b, which is as large, or a row of it, or a column.
func elementwise(f func(a, b float64) float64) func(tp.Parameters, rank, []array) array {
	return func(_ tp.Parameters, _ rank, in []array) array {
		a, b := in[0], in[1]
		y := zeros(a.shape...)
		for i, x := range a.values {
			at := i % len(b.values)
			if b.shape[len(b.shape)-1] == 1 && len(b.shape) == len(a.shape) {
				at = i / a.shape[len(a.shape)-1]
			}
			y.values[i] = f(x, b.values[at])
		}
		return y
	}
}

func numbers(f func(x, number float64) float64) func(tp.Parameters, rank, []array) array {
	return func(with tp.Parameters, _ rank, in []array) array {
		y := zeros(in[0].shape...)
		for i, x := range in[0].values {
			y.values[i] = f(x, with.Number)
		}
		return y
	}
}

func ofRows(f func(row []float64) float64) func(tp.Parameters, rank, []array) array {
	return func(_ tp.Parameters, _ rank, in []array) array {
		width := in[0].shape[len(in[0].shape)-1]
		y := zeros(in[0].shape[:len(in[0].shape)-1]...)
		for i := range y.values {
			y.values[i] = f(in[0].values[i*width : (i+1)*width])
		}
		return y
	}
}

func added(row []float64) float64 {
	sum := 0.0
	for _, x := range row {
		sum += x
	}
	return sum
}
