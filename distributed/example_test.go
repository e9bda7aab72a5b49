package distributed_test

import (
	"fmt"
	"log"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// exampleCluster is a World of the default topology, and a process group of all its ranks.
func exampleCluster() (*torchemu.World, *distributed.ProcessGroup) {
	topo, err := topology.Load("default")
	if err != nil {
		log.Fatal(err)
	}
	world := torchemu.NewWorld(topo)
	backend, err := distributed.NewBackend(world, distributed.Options{})
	if err != nil {
		log.Fatal(err)
	}
	group, err := backend.NewGroup(0, "world", []int{0, 1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	return world, group
}

// Four ranks add up a vector each. A rank issues the collective, for which its host takes 4 µs, and waits before it reads.
func Example() {
	world, group := exampleCluster()
	err := multiprocessing.Spawn(world, 4, func(p *multiprocessing.Process) error {
		x, err := tensor.New(dtype.F32, 1024)
		if err != nil {
			return err
		}
		x.Fill(float64(p.ID + 1))
		work, err := group.AllReduce(distributed.Caller{Rank: p.ID}, x, tensor.Sum)
		if err != nil {
			return err
		}
		if err := p.Wait(work.Event); err != nil {
			return err
		}
		if p.ID == 0 {
			fmt.Println(x.At(0), work.Record.Algorithm, work.At())
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 10 one_shot 5.219264us
}

// What would hang on a real cluster is an error that says who waits for whom.
func Example_deadlock() {
	world, group := exampleCluster()
	err := multiprocessing.Spawn(world, 4, func(p *multiprocessing.Process) error {
		if p.ID == 3 {
			return nil
		}
		work, err := group.Barrier(distributed.Caller{Rank: p.ID})
		if err != nil {
			return err
		}
		return p.Wait(work.Event)
	})
	fmt.Println(err)
	// Output:
	// ranks 0-2: deadlock at simulated time 0s: no rank can run and no operation is in progress
	//   ranks 0-2 wait for barrier (collective #0 of group world): rank 3 has not joined it
	// likely cause: rank 3 ended without calling barrier #0 of group world
}
