package tp_test

import (
	"fmt"
	"log"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/tp"
)

// A two-layer perceptron, 2 → 8 → 2, divided among the four ranks of the default topology.
func Example() {
	topo, err := topology.Load("default")
	if err != nil {
		log.Fatal(err)
	}
	world := torchemu.NewWorld(topo)
	backend, err := distributed.NewBackend(world, distributed.Options{})
	if err != nil {
		log.Fatal(err)
	}
	all, err := backend.NewGroup(0, "world", []int{0, 1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	grid, err := tp.InitializeModelParallel(backend, all, tp.Config{TensorModelParallelSize: 4})
	if err != nil {
		log.Fatal(err)
	}
	err = multiprocessing.Spawn(world, 4, func(p *multiprocessing.Process) error {
		state, err := grid.State(p)
		if err != nil {
			return err
		}
		return perceptron(state)
	})
	if err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// rank 0: weights [2 2] and [2 2], output 8 8, gradient of the input 8 8
	// rank 1: weights [2 2] and [2 2], output 8 8, gradient of the input 8 8
	// rank 2: weights [2 2] and [2 2], output 8 8, gradient of the input 8 8
	// rank 3: weights [2 2] and [2 2], output 8 8, gradient of the input 8 8
}

// perceptron is one rank's program: forward with ones, backward with ones.
func perceptron(state *tp.State) error {
	c, err := state.Comm(tp.TensorModelParallel)
	if err != nil {
		return err
	}
	half := func(weight *tensor.Tensor) error { weight.Fill(0.5); return nil }
	up, err := tp.NewColumnParallelLinear(c, tp.ColumnOptions{
		LinearOptions: tp.LinearOptions{InputSize: 2, OutputSize: 8, DType: dtype.BF16, Init: half, Bias: true},
	})
	if err != nil {
		return err
	}
	down, err := tp.NewRowParallelLinear(c, tp.RowOptions{
		LinearOptions:   tp.LinearOptions{InputSize: 8, OutputSize: 2, DType: dtype.BF16, Init: half, Bias: true},
		InputIsParallel: true,
	})
	if err != nil {
		return err
	}
	x, err := tensor.New(dtype.BF16, 1, 2)
	if err != nil {
		return err
	}
	x.Fill(2)
	first, err := up.Forward(x)
	if err != nil {
		return err
	}
	second, err := down.Forward(first.Output)
	if err != nil {
		return err
	}
	grad, err := tensor.New(dtype.BF16, 1, 2)
	if err != nil {
		return err
	}
	grad.Fill(2)
	inner, err := down.Backward(second.Saved, grad)
	if err != nil {
		return err
	}
	outer, err := up.Backward(first.Saved, inner.Input)
	if err != nil {
		return err
	}
	if err := c.Wait(second.Output, outer.Input); err != nil {
		return err
	}
	y, dx := second.Output, outer.Input
	fmt.Printf("rank %d: weights %v and %v, output %v %v, gradient of the input %v %v\n",
		c.Rank, up.Weight.Shape(), down.Weight.Shape(), y.At(0, 0), y.At(0, 1), dx.At(0, 0), dx.At(0, 1))
	return nil
}
