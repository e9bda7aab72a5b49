package pybind

import (
	"encoding/json"
	"fmt"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/ccl/prim/kernels"
	"github.com/torchemu/torchemu/pybind/internal/host"
)

// PrimSubmit puts a task for Python to drive into the queues of its workers, "0,1", with so many programs on each. It
// starts after the tasks before it there and the jobs given as "12,13". interlock makes pipes wait for each other where
// they share scratch memory.
func PrimSubmit(machine int64, name, workers string, blocks int, interlock bool, after string) (job int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	t := prim.Task{Name: name, Blocks: blocks, Interlock: interlock}
	if t.Workers, err = host.ParseInts(workers); err != nil {
		return 0, err
	}
	before, err := host.ParseInts(after)
	if err != nil {
		return 0, err
	}
	return m.SubmitAfter(t, before)
}

// PrimSubmitExample is PrimSubmit for one of the Go examples. domains is a JSON list with an object for each worker:
// members, rank, count, root, input, output, scratch; see kernels.Domain. What they may not be is a ValueError.
func PrimSubmitExample(machine int64, name, example, workers, domains, after string) (job int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	var list []host.Domain
	if err := json.Unmarshal([]byte(domains), &list); err != nil {
		return 0, fmt.Errorf("domains: %w", err)
	}
	t := prim.Task{Name: name}
	if t.Workers, err = host.ParseInts(workers); err != nil {
		return 0, err
	}
	if t.Kernel, err = host.ExampleOn(example, t.Workers, list); err != nil {
		return 0, err
	}
	before, err := host.ParseInts(after)
	if err != nil {
		return 0, err
	}
	return m.SubmitAfter(t, before)
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

// PrimAbout describes a program: "rank block blocks task", where the task is that of PrimSubmit or the launch of PrimLaunch.
func PrimAbout(program int64) (text string, err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %d %d %d", p.Rank(), p.Block(), p.Blocks(), p.Task()), nil
}

// PrimPrograms lists the programs of a task that has started, worker by worker and block by block: "14,15".
func PrimPrograms(job int64) (programs string, err error) {
	defer host.Guard(&err)
	j, err := host.PartOf[*prim.Job](job, "task")
	if err != nil {
		return "", err
	}
	for i, h := range j.Machine.Handles(j.Object) {
		if i > 0 {
			programs += ","
		}
		programs += fmt.Sprint(h)
	}
	return programs, nil
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
