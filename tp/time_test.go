package tp_test

import (
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/tp"
)

func load(t *testing.T, system string) *topology.Topology {
	t.Helper()
	topo, err := topology.Parse("test.yaml", []byte("name: test\nsystem: "+system+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// In these tests a launch costs nothing, so that times are those of kernels and collectives alone.
const twoSIPs = "{sips: {count: 2}}\nhost: {launch_overhead: 0}"

// A layer with kernels of microseconds: [tokens, width] · [width, width].
const tokens, width = 64, 512

// timed runs a program on two ranks and returns when its results were there on rank 0.
func timed(t *testing.T, fn func(c *tp.Comm) ([]*tensor.Tensor, error)) (c cluster, took sim.Time) {
	t.Helper()
	c = newClusterOn(t, load(t, twoSIPs), distributed.Options{})
	err := c.spawn(t, func(p *multiprocessing.Process, comm *tp.Comm) error {
		results, err := fn(comm)
		if err != nil {
			return err
		}
		if err := comm.Wait(results...); err != nil {
			return err
		}
		if p.ID == 0 {
			took = p.Now()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, took
}

// kernelTime is what a product takes alone.
func kernelTime(c cluster, m, n, k int) sim.Time {
	return c.World.Network.KernelTime(network.MatMulCost(c.World.Topology, dtype.F32, network.Product{M: m, N: n, K: k}))
}

// columnBackward is a column-parallel layer forward and backward.
func columnBackward(o tp.ColumnOptions) func(c *tp.Comm) ([]*tensor.Tensor, error) {
	return func(c *tp.Comm) ([]*tensor.Tensor, error) {
		_, g, err := columnGradients(c, o)
		return []*tensor.Tensor{g.Input, g.Weight}, err
	}
}

func columnGradients(c *tp.Comm, o tp.ColumnOptions) (*tp.ColumnParallelLinear, tp.Gradients, error) {
	o.InputSize, o.OutputSize = width, width
	l, err := tp.NewColumnParallelLinear(c, o)
	if err != nil {
		return nil, tp.Gradients{}, err
	}
	rows := tokens
	if o.SequenceParallel {
		rows /= 2
	}
	out, err := l.Forward(zeros(rows, width).tensor(dtype.F32).Tensor)
	if err != nil {
		return nil, tp.Gradients{}, err
	}
	g, err := l.Backward(out.Saved, zeros(tokens, width/2).tensor(dtype.F32).Tensor)
	return l, g, err
}

// The gradient of the input is reduced beside the product that makes the gradient of the weight.
func TestTheReductionRunsBesideTheWeightsGradient(t *testing.T) {
	c, took := timed(t, columnBackward(tp.ColumnOptions{}))
	_, compute := timed(t, columnBackward(tp.ColumnOptions{DisableGradReduce: true}))
	alone, _ := timed(t, func(c *tp.Comm) ([]*tensor.Tensor, error) {
		sum, err := tp.ReduceFromTensorModelParallelRegion().Forward(c, zeros(tokens, width).tensor(dtype.F32).Tensor)
		return []*tensor.Tensor{sum}, err
	})
	reduction := alone.Log[0].End - alone.Log[0].Start
	forward, dgrad, wgrad := kernelTime(c, tokens, width/2, width), kernelTime(c, tokens, width, width/2), kernelTime(c, width/2, width, tokens)
	if compute != forward+dgrad+wgrad {
		t.Errorf("the products take %v, want %v + %v + %v", compute, forward, dgrad, wgrad)
	}
	if len(c.Log) != 1 || c.Log[0].Start != forward+dgrad {
		t.Fatalf("the reduction starts at %v, want %v", c.Log[0].Start, forward+dgrad)
	}
	// It shares the memory with the product, so that both may take a little longer than alone.
	if least := forward + dgrad + max(reduction, wgrad); took < least || took >= compute+reduction {
		t.Errorf("all takes %v, want from %v to below %v", took, least, compute+reduction)
	}
}

// What comes next on the stream waits for the reduction.
func TestTheStreamWaitsForTheReductionInTheEnd(t *testing.T) {
	c, took := timed(t, columnBackward(tp.ColumnOptions{}))
	_, more := timed(t, func(c *tp.Comm) ([]*tensor.Tensor, error) {
		l, g, err := columnGradients(c, tp.ColumnOptions{})
		if err != nil {
			return nil, err
		}
		out, err := l.Forward(g.Input)
		return []*tensor.Tensor{out.Output}, err
	})
	forward, wgrad := kernelTime(c, tokens, width/2, width), kernelTime(c, width/2, width, tokens)
	if c.Log[0].End-c.Log[0].Start <= wgrad {
		t.Fatal("the reduction is shorter than the product beside it, so that this test shows nothing")
	}
	if more != took+forward {
		t.Errorf("with another product all takes %v, want %v + %v", more, took, forward)
	}
}

// With sequence parallelism the input is joined beside the product that makes its gradient, which is scattered beside
// the one that makes the weight's.
func TestSequenceParallelCollectivesRunBesideProducts(t *testing.T) {
	sequence := tp.ColumnOptions{LinearOptions: tp.LinearOptions{SequenceParallel: true}}
	c, weight := timed(t, func(c *tp.Comm) ([]*tensor.Tensor, error) {
		_, g, err := columnGradients(c, sequence)
		return []*tensor.Tensor{g.Weight}, err
	})
	forward, dgrad := kernelTime(c, tokens, width/2, width), kernelTime(c, tokens, width, width/2)
	if len(c.Log) != 3 {
		t.Fatalf("%d collectives", len(c.Log))
	}
	first, again, scatter := c.Log[0], c.Log[1], c.Log[2]
	if first.Name != "all_gather_into_tensor" || again.Name != first.Name || scatter.Name != "reduce_scatter_tensor" {
		t.Errorf("%s, %s, %s", first.Name, again.Name, scatter.Name)
	}
	if first.Start != 0 || again.Start != first.End+forward {
		t.Errorf("gathers start at %v and %v, want 0 and %v", first.Start, again.Start, first.End+forward)
	}
	if want := max(again.End, again.Start+dgrad); scatter.Start < want || scatter.Start >= again.End+dgrad {
		t.Errorf("the scatter starts at %v, want from %v to below %v", scatter.Start, want, again.End+dgrad)
	}
	if least := again.End + kernelTime(c, width/2, width, tokens); weight < least {
		t.Errorf("the weight's gradient is there at %v, but the input it needs and the product take until %v", weight, least)
	}
}

// A row-parallel layer needs the sum before it can add the bias: one after another.
func TestARowParallelLayerWaitsForItsReduction(t *testing.T) {
	c, took := timed(t, func(c *tp.Comm) ([]*tensor.Tensor, error) {
		l, err := tp.NewRowParallelLinear(c, tp.RowOptions{
			LinearOptions: tp.LinearOptions{InputSize: width, OutputSize: width, Bias: true}, InputIsParallel: true,
		})
		if err != nil {
			return nil, err
		}
		out, err := l.Forward(zeros(tokens, width/2).tensor(dtype.F32).Tensor)
		return []*tensor.Tensor{out.Output}, err
	})
	product := kernelTime(c, tokens, width, width/2)
	add := c.World.Network.KernelTime(network.Kernel{Bytes: 4 * (2*tokens*width + width), Ops: tokens * width, Unit: network.Vector})
	if r := c.Log[0]; r.Start != product || took != r.End+add {
		t.Errorf("the reduction from %v to %v, the end at %v; want it to start at %v, and the sum to take %v more", r.Start, r.End, took, product, add)
	}
}

// The host runs ahead of the device: what it pays is the launches.
func TestTheHostDoesNotWait(t *testing.T) {
	c := newCluster(t, 2)
	rng := rand.New(rand.NewPCG(17, 17))
	data := randomLayer(func(shape ...int) array { return whole(rng, shape...) })
	err := c.spawn(t, func(p *multiprocessing.Process, comm *tp.Comm) error {
		o := columnOptions(dtype.F32, false, false, false)
		l, err := tp.NewColumnParallelLinear(comm, o)
		if err != nil {
			return err
		}
		out, err := l.Forward(data.x.tensor(dtype.F32).Tensor)
		if err != nil {
			return err
		}
		_, err = l.Backward(out.Saved, data.dy.part(2, comm.Rank, 2).tensor(dtype.F32).Tensor)
		launches := sim.Time(6) // two forward; backward two products, a sum and a reduction
		if want := launches * sim.Time(c.World.Topology.LaunchOverhead()); p.Now() != want {
			t.Errorf("rank %d: the host is at %v, want %v", p.ID, p.Now(), want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
