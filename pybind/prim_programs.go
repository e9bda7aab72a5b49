package pybind

import (
	"encoding/json"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/ccl/prim/kernels"
	"github.com/torchemu/torchemu/pybind/internal/host"
)

// PrimSubmit puts a task for Python to drive into the queues of its workers, with so many programs on each. It
// starts after the tasks before it there and the jobs after. interlock makes pipes wait for each other where
// they share scratch memory.
func PrimSubmit(machine int64, name string, workersAt int64, workers, blocks int, interlock bool, afterAt int64, after int) (job int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	t := prim.Task{Name: name, Blocks: blocks, Interlock: interlock}
	if t.Workers, err = host.Ints(workersAt, workers); err != nil {
		return 0, err
	}
	if t.After, err = host.Jobs(afterAt, after); err != nil {
		return 0, err
	}
	return m.SubmitTask(t)
}

// PrimSubmitExample is PrimSubmit for one of the Go examples. domains are, for each worker, the number of members, rank,
// count, root, input, output, scratch, and the members; see kernels.Domain. What they may not be is a ValueError.
func PrimSubmitExample(machine int64, name, example string, workersAt int64, workers int, domainsAt int64, domains int, afterAt int64, after int) (job int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	t := prim.Task{Name: name}
	if t.Workers, err = host.Ints(workersAt, workers); err != nil {
		return 0, err
	}
	if t.Kernel, err = host.ExampleOn(example, t.Workers, domainsAt, domains); err != nil {
		return 0, err
	}
	if t.After, err = host.Jobs(afterAt, after); err != nil {
		return 0, err
	}
	return m.SubmitTask(t)
}

// PrimExamples lists the Go examples as JSON.
func PrimExamples() (names string, err error) {
	defer host.Guard(&err)
	list := []string{}
	for _, e := range kernels.Examples() {
		list = append(list, e.Name)
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// PrimExampleBytes is how many bytes of window an example needs on each of n members.
func PrimExampleBytes(example string, n, count int) (bytes int, err error) {
	defer host.Guard(&err)
	e, err := kernels.LookupExample(example)
	if err != nil {
		return 0, err
	}
	return e.WindowBytes(n, count), nil
}

// PrimEnded says whether all programs of a task have ended.
func PrimEnded(job int64) (ended bool, err error) {
	defer host.Guard(&err)
	j, err := host.PartOf[*prim.Job](job, "task")
	if err != nil {
		return false, err
	}
	return j.Object.Ended(), nil
}

// PrimCancel ends a task whatever its programs do. Python does not let them go on.
func PrimCancel(job int64) (err error) {
	defer host.Guard(&err)
	j, err := host.PartOf[*prim.Job](job, "task")
	if err == nil {
		j.Machine.CancelJob(j.Object)
	}
	return err
}

// PrimNext lets time pass until it is something's turn: a program's, which is its handle; that of instruction k of
// PrimCompute, which is -2-k; 0 when all has ended; -1 to be called again, as after the end of a task in Go. An error is
// a DeadlockError, or that of a program in Go.
func PrimNext(machine int64) (turn int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	return m.NextTurn()
}

// PrimComputed says that the result of the instruction whose turn it is is there.
func PrimComputed(machine int64) (err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return err
	}
	return m.Computed()
}

// PrimAbout fills in a program's rank, block, number of blocks and task, which is that of PrimSubmit or the launch of
// PrimLaunch, where there is room for them at an address.
func PrimAbout(program, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err != nil {
		return 0, err
	}
	return host.Fill(to, room, []int64{int64(p.Rank()), int64(p.Block()), int64(p.Blocks()), p.Task()})
}

// PrimPrograms fills in the programs of a task that has started, worker by worker and block by block, as many as there is
// room for at an address, and returns how many there are.
func PrimPrograms(job, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	j, err := host.PartOf[*prim.Job](job, "task")
	if err != nil {
		return 0, err
	}
	return host.Fill(to, room, j.Machine.Handles(j.Object))
}

// PrimEnd says that a program has ended: with an error if the text is not empty.
func PrimEnd(program int64, text string) (err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err == nil {
		p.Ended(text)
	}
	return err
}
