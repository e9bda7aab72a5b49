package distributed_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// shape is a fabric on which ranks run the same program: data parallel over nodes, tensor parallel within.
type shape struct {
	preset      string
	nodes, sips int
	algorithms  map[collective.Kind]string
}

// program overlaps collectives of both groups with kernels and with each other, on two streams.
func program(p *multiprocessing.Process, tp, dp *distributed.ProcessGroup) ([]sim.Time, error) {
	var times []sim.Time
	side := p.NewStream()
	for round := range 3 {
		n := 8 * (10000 + 4096*round)
		gather := distributed.Operation{Name: "all_gather_into_tensor", Collective: collective.AllGather}
		gather.Out, gather.In = phantoms(n*dp.Size()), phantoms(n)
		scatter := distributed.Operation{Name: "reduce_scatter_tensor", Collective: collective.ReduceScatter}
		scatter.Out, scatter.In = phantoms(n), phantoms(n*tp.Size())
		reduce := distributed.Operation{Name: "all_reduce", Collective: collective.AllReduce}
		reduce.Out = phantoms(n)
		reduce.In = reduce.Out
		for _, c := range []struct {
			g *distributed.ProcessGroup
			o distributed.Operation
			s *torchemu.Stream
		}{{dp, gather, side}, {tp, scatter, p.Stream()}, {tp, reduce, p.Stream()}} {
			w, err := c.g.Do(distributed.Caller{Rank: p.ID, Stream: c.s}, c.o)
			if err != nil {
				return nil, err
			}
			if _, err := p.Stream().Kernel("k", network.Kernel{Bytes: int64(n) * 97, Ops: 1000}); err != nil {
				return nil, err
			}
			if err := p.Wait(w.Event); err != nil {
				return nil, err
			}
			times = append(times, w.At(), p.Now())
		}
	}
	return times, nil
}

func phantoms(n int) []*tensor.Tensor {
	t, err := tensor.Over(tensor.Phantom(4*n), dtype.F32, tensor.Layout{Shape: []int{n}})
	if err != nil {
		panic(err)
	}
	return []*tensor.Tensor{t}
}

// ran is the times that each of some ranks sees.
func ran(t *testing.T, s shape, of []int) (map[int][]sim.Time, error) {
	t.Helper()
	preset, err := topology.Load(s.preset)
	if err != nil {
		t.Fatal(err)
	}
	fabric, err := preset.Resized(s.nodes, s.sips)
	if err != nil {
		t.Fatal(err)
	}
	w := torchemu.NewWorld(fabric)
	b, err := distributed.NewBackend(w, distributed.Options{Chosen: s.algorithms})
	if err != nil {
		t.Fatal(err)
	}
	if of != nil {
		if err := b.Mirror(of); err != nil {
			t.Fatal(err)
		}
	}
	tp, dp := groupsOf(t, b, s)
	times := map[int][]sim.Time{}
	err = multiprocessing.Spawn(w, s.nodes*s.sips, func(p *multiprocessing.Process) error {
		if of != nil && of[p.ID] != p.ID {
			return nil
		}
		var err error
		times[p.ID], err = program(p, tp[p.ID], dp[p.ID])
		return err
	})
	return times, err
}

// groupsOf makes the groups of the ranks of a node, and of those with one place in their nodes.
func groupsOf(t *testing.T, b *distributed.Backend, s shape) (tp, dp []*distributed.ProcessGroup) {
	n := s.nodes * s.sips
	tp, dp = make([]*distributed.ProcessGroup, n), make([]*distributed.ProcessGroup, n)
	make1 := func(list []*distributed.ProcessGroup, members []int) {
		g, err := b.NewGroup(0, fmt.Sprint(members), members)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range members {
			list[r] = g
		}
	}
	for node := range s.nodes {
		var members []int
		for i := range s.sips {
			members = append(members, node*s.sips+i)
		}
		make1(tp, members)
	}
	for i := range s.sips {
		var members []int
		for node := range s.nodes {
			members = append(members, node*s.sips+i)
		}
		make1(dp, members)
	}
	return tp, dp
}

// One rank that stands for all takes as long as each of all does, to the picosecond, also where collectives of two kinds
// of groups and kernels share memories and links.
func TestOneRankStandsForAll(t *testing.T) {
	for _, s := range shapes() {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			n := s.nodes * s.sips
			whole, err := ran(t, s, nil)
			if err != nil {
				t.Fatal(err)
			}
			mirrored, err := ran(t, s, make([]int, n))
			if err != nil {
				s.mayRefuse(t, err)
				return
			}
			for r := range n {
				if fmt.Sprint(whole[r]) != fmt.Sprint(mirrored[0]) {
					t.Fatalf("rank %d: %v\nmirrored: %v", r, whole[r], mirrored[0])
				}
			}
		})
	}
}

// mayRefuse fails the test unless it is said that ranks differ, on a shape on which they do: five ranks do not divide
// vectors evenly, direct reduces in the order of ranks, and recursive partners are at different distances on cables.
func (s shape) mayRefuse(t *testing.T, err error) {
	var asymmetry *distributed.AsymmetryError
	uneven := s.sips == 5
	if !errors.As(err, &asymmetry) || !uneven && s.algorithms[collective.AllGather] != "direct" &&
		s.algorithms[collective.AllGather] != "recursive" {
		t.Fatal(err)
	}
}

func shapes() []shape {
	var list []shape
	for _, size := range [][2]int{{1, 8}, {2, 4}, {4, 4}, {8, 8}, {3, 5}} {
		for _, preset := range []string{"default", "sips8", "nodes2x8"} {
			list = append(list, shape{preset, size[0], size[1], nil})
			for _, name := range []string{"ring", "direct", "recursive"} {
				list = append(list, shape{preset, size[0], size[1], map[collective.Kind]string{
					collective.AllGather: name, collective.ReduceScatter: name,
				}})
			}
		}
	}
	return list
}
