package distributed_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// BenchmarkMix is what benches/perf.py calls mixed collectives, without Python: one operation is the whole script.
func BenchmarkMix(b *testing.B) {
	for _, k := range []struct{ ranks, calls int }{{64, 1000}, {1024, 20}} {
		b.Run(fmt.Sprintf("%d×%d", k.ranks, k.calls), func(b *testing.B) {
			for b.Loop() {
				c := torus(b, k.ranks)
				err := c.spawn(func(p *multiprocessing.Process) error { return newMix(c, p).play(k.calls) })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// torus is a cluster of ranks on a torus, twice as high as wide or square.
func torus(b testing.TB, ranks int) cluster {
	side := 1
	for side*side*4 <= ranks {
		side *= 2
	}
	text := fmt.Sprintf("system: {sips: {count: %d, connect: torus2d, w: %d, h: %d}}", ranks, ranks/side, side)
	t, err := topology.Parse("torus.yaml", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	w := torchemu.NewWorld(t)
	backend, err := distributed.NewBackend(w, distributed.Options{})
	if err != nil {
		b.Fatal(err)
	}
	members := make([]int, ranks)
	for i := range members {
		members[i] = i
	}
	g, err := backend.NewGroup(0, "world", members)
	if err != nil {
		b.Fatal(err)
	}
	return cluster{w, backend, g}
}

// mix is one rank's tensors, by the number of elements of the whole vector.
type mix struct {
	cluster
	*multiprocessing.Process
	whole, part, other map[int]*tensor.Tensor
}

var mixSizes = []int{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536}

func newMix(c cluster, p *multiprocessing.Process) *mix {
	m := &mix{c, p, map[int]*tensor.Tensor{}, map[int]*tensor.Tensor{}, map[int]*tensor.Tensor{}}
	for _, n := range mixSizes {
		m.whole[n] = ones(n)
		if world := c.group.Size(); n%world == 0 {
			m.part[n], m.other[n] = ones(n/world), ones(n)
		}
	}
	return m
}

func ones(n int) *tensor.Tensor {
	t, err := tensor.New(dtype.F32, n)
	if err != nil {
		panic(err)
	}
	t.Fill(1)
	return t
}

// kinds are the operations of the mix on vectors of n elements. Those from the fourth on
// cut them into blocks, one after another in one tensor.
var kinds = []func(m *mix, n, root int) distributed.Operation{
	func(m *mix, n, _ int) distributed.Operation {
		return m.operation("all_reduce", collective.AllReduce, list(m.whole[n]), list(m.whole[n]))
	},
	func(m *mix, n, root int) distributed.Operation {
		return m.rooted(root, m.operation("broadcast", collective.Broadcast, list(m.whole[n]), list(m.whole[n])))
	},
	func(m *mix, n, root int) distributed.Operation {
		return m.rooted(root, m.operation("reduce", collective.Reduce, list(m.whole[n]), list(m.whole[n])))
	},
	func(m *mix, n, _ int) distributed.Operation {
		return m.operation("all_gather_into_tensor", collective.AllGather, list(m.whole[n]), list(m.part[n]))
	},
	func(m *mix, n, _ int) distributed.Operation {
		return m.operation("reduce_scatter_tensor", collective.ReduceScatter, list(m.part[n]), list(m.whole[n]))
	},
	func(m *mix, n, _ int) distributed.Operation {
		return m.operation("all_to_all_single", collective.AllToAll, list(m.other[n]), list(m.whole[n]))
	},
	func(m *mix, n, root int) distributed.Operation {
		return m.rooted(root, m.operation("gather", collective.Gather, list(m.whole[n]), list(m.part[n])))
	},
	func(m *mix, n, root int) distributed.Operation {
		return m.rooted(root, m.operation("scatter", collective.Scatter, list(m.part[n]), list(m.whole[n])))
	},
	func(m *mix, n, _ int) distributed.Operation {
		return m.operation("all_gather", collective.AllGather, list(m.whole[n]), list(m.part[n]))
	},
	func(m *mix, n, _ int) distributed.Operation {
		return m.operation("reduce_scatter", collective.ReduceScatter, list(m.part[n]), list(m.whole[n]))
	},
}

func (m *mix) operation(name string, c collective.Kind, out, in []*tensor.Tensor) distributed.Operation {
	return distributed.Operation{Name: name, Collective: c, Reduce: tensor.Max, Out: out, In: in}
}

// rooted leaves a rank what it has part in.
func (m *mix) rooted(root int, o distributed.Operation) distributed.Operation {
	o.Root = root
	switch o.Collective {
	case collective.Broadcast, collective.Scatter:
		if m.ID != root {
			o.In = nil
		}
	case collective.Reduce, collective.Gather:
		if m.ID != root {
			o.Out = nil
		}
	}
	return o
}

func list(t *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{t} }

// play issues every kind in turn, and of each every size in turn, and waits at the end.
func (m *mix) play(calls int) error {
	world := m.group.Size()
	cut := slices.DeleteFunc(slices.Clone(mixSizes), func(n int) bool { return n%world != 0 })
	turns := kinds
	if world > 64 {
		turns = kinds[:8]
	}
	var last *distributed.Work
	for call := range calls {
		k, sizes := call%len(turns), mixSizes
		if k >= 3 {
			sizes = cut
		}
		n := sizes[call/len(turns)%len(sizes)]
		var err error
		if last, err = m.group.Do(me(m.Process), turns[k](m, n, call%world)); err != nil {
			return err
		}
	}
	return m.Wait(last.Event)
}
