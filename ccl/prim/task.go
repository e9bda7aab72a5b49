package prim

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Task is a kernel to run on some workers; a worker is a rank.
type Task struct {
	Name   string
	Kernel Kernel // nil: driven from outside, see [Machine.Next]
	// Workers are the ranks that run it. If there are several the task is a group: it starts on all of them at once,
	// and holds back each that is free earlier.
	Workers []int
	Blocks  int    // programs on each worker, each on its own PE; 0: one
	After   []*Job // jobs that have to end first
	Done    func() // called when all programs have ended; may be nil

	// Interlock makes an instruction of a pipe start after all earlier ones of other pipes that it shares bytes of the
	// scratch memory with, unless both only read them. Programs then need no flags for what is in scratch memory.
	Interlock bool
	// Failed is called when a program ends with an error, instead of ending the run; it cancels the job.
	Failed func(c *Context, err error)
	// Beside says that the task needs not wait for others of its worker: as kernels do that are on different streams.
	Beside bool
	// Host says that the task does what its worker's host does with memory: for reports of deadlocks, it signals nobody.
	Host bool
	// Threads are those of each program. Where they are given, a PE holds as many programs as [Resident] says, and the
	// others start when one has ended, in their order.
	Threads int
	// Owner is whoever has submitted the task, for [Window.Mirror].
	Owner any
	// Known is what is over for the task; nil for all that its workers did before, in other tasks.
	Known *order.Point
}

// Job is a task that has been submitted.
type Job struct {
	Task
	machine  *Machine
	running  int // programs that have not ended
	started  bool
	began    sim.Time
	ended    bool
	programs []*Context
	asleep   int // programs that have not started
}

// Ended says whether all programs of the job have ended.
func (j *Job) Ended() bool { return j.ended }

// Began is when the job started, which it has to have done.
func (j *Job) Began() sim.Time { return j.began }

// Knows is what is over for who follows the job: all that its programs, which have ended, know.
func (j *Job) Knows() order.Clock {
	var all clock
	for _, c := range j.programs {
		all.Join(c.scalar().now)
	}
	return all
}

// Programs are the programs of a job that has started, worker by worker.
func (j *Job) Programs() []*Context { return j.programs }

// Submit puts a task into the queues of its workers. A worker does one task at a time, in the order of submission. The
// error says what is wrong with the task.
func (m *Machine) Submit(t Task) (*Job, error) {
	if len(t.Workers) == 0 {
		return nil, fmt.Errorf("task %q: there must be at least one worker", t.Name)
	}
	for i, w := range t.Workers {
		if w < 0 || w >= len(m.ranks) || slices.Contains(t.Workers[:i], w) {
			return nil, fmt.Errorf("task %q: worker %d is not one of 0 to %d, or occurs twice", t.Name, w, len(m.ranks)-1)
		}
	}
	if pes := m.pesOfRank(); t.Blocks < 0 || t.Threads == 0 && t.Blocks > pes {
		return nil, fmt.Errorf("task %q: %d blocks; a SIP has %d PEs", t.Name, t.Blocks, pes)
	}
	if t.Threads < 0 || t.Threads > mostThreads {
		return nil, fmt.Errorf("task %q: %d threads in a program; a PE has %d", t.Name, t.Threads, mostThreads)
	}
	j := &Job{Task: t, machine: m}
	j.Blocks = max(1, j.Blocks)
	m.jobs = append(m.jobs, j)
	for _, w := range t.Workers {
		if !t.Beside {
			m.ranks[w].queue = append(m.ranks[w].queue, j)
		}
	}
	m.dispatch()
	return j, nil
}

// Launch submits one task for each rank, which all run the same kernel.
func (m *Machine) Launch(name string, k Kernel) {
	for r := range m.ranks {
		if _, err := m.Submit(Task{Name: name, Kernel: k, Workers: []int{r}}); err != nil {
			panic(err) // cannot be: the rank exists
		}
	}
}

// dispatch starts the jobs whose turn it is.
func (m *Machine) dispatch() {
	for _, j := range m.jobs {
		if !j.started && j.canStart() {
			j.begin()
		}
	}
}

func (j *Job) canStart() bool {
	for _, w := range j.Workers {
		if !j.Beside && j.machine.ranks[w].queue[0] != j {
			return false
		}
	}
	return !slices.ContainsFunc(j.After, func(o *Job) bool { return !o.ended })
}

// note counts a job that begins.
func (k *rank) note(j *Job) {
	if k.begun == nil {
		k.begun, k.grids = map[string]int{}, map[string]int{}
	}
	k.begun[j.Name]++
	k.grids[j.Name] = j.Blocks
}

// begin starts the job's programs, as far as there is room for them.
func (j *Job) begin() {
	m := j.machine
	j.started, j.began = true, m.Now()
	j.running = len(j.Workers) * j.Blocks
	j.asleep = j.running
	for _, w := range j.Workers {
		m.ranks[w].note(j)
		m.ranks[w].room.sleeping = append(m.ranks[w].room.sleeping, sleeper{j, 0})
		m.fill(w)
	}
}

// programEnded notes that one of the job's programs has ended.
func (j *Job) programEnded() {
	j.running--
	if j.running > 0 {
		return
	}
	j.leave()
	if j.Done != nil {
		j.Done()
	}
	j.machine.dispatch()
}

// leave takes a job that is over out of the queues.
func (j *Job) leave() {
	m := j.machine
	j.ended, m.ran[j.Name] = true, true
	is := func(o *Job) bool { return o == j }
	m.jobs = slices.DeleteFunc(m.jobs, is)
	for _, w := range j.Workers {
		m.ranks[w].room.forget(j)
		m.ranks[w].queue = slices.DeleteFunc(m.ranks[w].queue, is)
	}
}

// Cancel ends a job whatever its programs do; what they have sent still lands. Who drives them must not let them go on.
// The job's Done is not called.
func (j *Job) Cancel() {
	if j.ended {
		return
	}
	j.leave()
	m := j.machine
	of := func(c *Context) bool { return c.job == j }
	m.live, m.ready = slices.DeleteFunc(m.live, of), slices.DeleteFunc(m.ready, of)
	m.due = slices.DeleteFunc(m.due, func(x *Computation) bool { return x.Program.job == j })
	for _, c := range j.programs {
		if c.stop != nil {
			c.stop()
		}
		if c.pe.program != c {
			continue // it had ended
		}
		c.vacate()
		c.pe.gone = true
		m.ranks[c.Rank()].pes[c.pe.slot] = m.newPE(c.Rank(), c.pe.slot) // its pipes may never run empty
	}
	for _, w := range j.Workers {
		m.fill(w)
	}
	m.dispatch()
}
