package host

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/order"
)

// collectiveRun is a collective that runs as a kernel, which Python drives. It implements distributed.KernelRun.
type collectiveRun struct {
	distributed.KernelCall
	machine *Machine
	in, out *prim.Window
	members []*member
	running int
	over    bool
}

// member is one rank's program of a collective.
type member struct {
	run    *collectiveRun
	index  int
	handle int64
	job    *prim.Job // nil before it has joined
}

func (k *member) belongsTo(w any) bool { return k.run.machine.belongsTo(w) || w == any(k.run.machine) }

// Start implements distributed.Kernels.
func (m *Machine) Start(c distributed.KernelCall) (distributed.KernelRun, error) {
	r := &collectiveRun{KernelCall: c, machine: m, running: len(c.Ranks)}
	var err error
	if r.in, err = m.AttachAll("the input of "+c.Name, c.Ranks, c.In, true); err != nil {
		return nil, err
	}
	if r.out, err = m.AttachAll("the output of "+c.Name, c.Ranks, c.Out, false); err != nil {
		return nil, err
	}
	for i := range c.Ranks {
		k := &member{run: r, index: i}
		k.handle = Register(k)
		r.members = append(r.members, k)
	}
	m.begin(r)
	return r, nil
}

// Join implements distributed.KernelRun.
func (r *collectiveRun) Join(index int, known *order.Point) {
	k, m := r.members[index], r.machine
	t := prim.Task{
		Name: r.Name, Workers: []int{r.Ranks[index]}, Interlock: true, Known: known,
		Done:   func() { r.ended(k, nil) },
		Failed: func(_ *prim.Context, err error) { r.ended(k, err) },
	}
	j, err := m.Submit(t)
	if err != nil {
		r.ended(k, err)
		return
	}
	k.job = j
	m.jobs[j] = k.handle
}

// ended notes the end of a member's program; with what the checker has found so far, if that is new.
func (r *collectiveRun) ended(k *member, err error) {
	if r.over {
		return
	}
	delete(r.machine.jobs, k.job)
	if err == nil {
		r.Knows(k.index, k.job.Knows())
	}
	err = errors.Join(err, r.machine.News())
	if r.running--; r.running == 0 {
		r.finish()
	}
	r.Done(k.index, r.machine.Now(), err)
}

// finish lets go of everything.
func (r *collectiveRun) finish() {
	r.over = true
	r.in.Forget()
	r.out.Forget()
	for _, k := range r.members {
		Forget(k.handle)
	}
	r.machine.over(r)
}

// Cancel implements distributed.KernelRun.
func (r *collectiveRun) Cancel() {
	if r.over {
		return
	}
	for _, k := range r.members {
		if k.job != nil {
			r.machine.drop(k.job)
		}
	}
	r.finish()
}

// drop cancels a job and forgets its programs.
func (m *Machine) drop(j *prim.Job) {
	for _, c := range j.Programs() {
		m.Forget(c)
	}
	delete(m.jobs, j)
	j.Cancel()
}

func (r *collectiveRun) abandon(err error) { r.Done(0, r.machine.Now(), err) }

// Standing implements distributed.KernelRun.
func (r *collectiveRun) Standing(index int) torchemu.Standing {
	return r.machine.standing(r.members[index].job)
}

// DescribeMember describes a member of a collective that has not ended, as JSON; see PrimMember.
func DescribeMember(handle int64) (string, error) {
	k, ok := Lookup(handle).(*member)
	if !ok {
		return "", Raise("RuntimeError", "this collective has ended")
	}
	r := k.run
	rank := r.Ranks[k.index]
	text, err := json.Marshal(map[string]any{
		"run": r.members[0].handle, "collective": r.Collective.String(), "ranks": slices.Clone(r.Ranks), "index": k.index,
		"out": int64(r.out.At(rank, 0)), "source": int64(r.in.At(rank, 0)), "n": r.Elems, "op": r.Op.String(),
		"dtype": r.DType.Name(),
	})
	return string(text), err
}
