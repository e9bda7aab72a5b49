package distributed_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// lockstep runs collectives as kernels whose programs all end a microsecond after the last of them has joined.
type lockstep struct {
	w     *torchemu.World
	calls []*lockstepRun
	fails error // what member 1's program ends with
	hangs bool
}

type lockstepRun struct {
	distributed.KernelCall
	of        *lockstep
	joined    []int
	cancelled int
}

func (l *lockstep) Start(c distributed.KernelCall) (distributed.KernelRun, error) {
	r := &lockstepRun{KernelCall: c, of: l}
	l.calls = append(l.calls, r)
	return r, nil
}

func (r *lockstepRun) Join(member int, _ *order.Point) {
	if r.joined = append(r.joined, member); len(r.joined) < len(r.Ranks) || r.of.hangs {
		return
	}
	sum := slices.Clone(r.In[0])
	for _, in := range r.In[1:] {
		tensor.Combine(r.Op, r.DType, sum, sum, in)
	}
	r.of.w.At(r.of.w.Engine.Now()+sim.Microsecond, func(now sim.Time) {
		for i, out := range r.Out {
			switch r.Collective {
			case collective.AllGather:
				copy(out, slices.Concat(r.In...))
			case collective.ReduceScatter:
				copy(out, sum[i*len(out):])
			default:
				copy(out, sum)
			}
			var err error
			if i == 1 {
				err = r.of.fails
			}
			r.Done(i, now, err)
		}
	})
}

func (r *lockstepRun) Standing(member int) torchemu.Standing {
	return torchemu.Standing{On: " hangs in " + strings.Repeat("i", member+1), Cause: "it hangs"}
}

func (r *lockstepRun) Cancel() { r.cancelled++ }

// withKernels is a cluster whose collectives are kernels of the lockstep.
func withKernels(t *testing.T) (cluster, *lockstep) {
	c := newCluster(t, "default", distributed.Options{Kernels: map[collective.Kind]string{
		collective.AllReduce: "mine", collective.AllGather: "mine", collective.ReduceScatter: "mine",
	}})
	l := &lockstep{w: c.World}
	c.Kernels = l
	return c, l
}

func TestCollectivesAsKernels(t *testing.T) {
	c, l := withKernels(t)
	if err := c.spawn(func(p *multiprocessing.Process) error { return allThree(c, p) }); err != nil {
		t.Fatal(err)
	}
	for i, r := range c.Log {
		if r.Algorithm != "mine" || r.End-r.Start != sim.Microsecond {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	if len(c.Log) != 3 || len(l.calls) != 3 || l.calls[0].Elems != 5 || l.calls[1].Elems != 20 {
		t.Errorf("%d records, %d calls", len(c.Log), len(l.calls))
	}
}

// Nothing is to be done for no elements, and a barrier and other collectives are no kernels.
func TestWhatIsNoKernel(t *testing.T) {
	c, l := withKernels(t)
	err := c.spawn(func(p *multiprocessing.Process) error {
		empty, err := c.group.AllReduce(me(p), ramp(0, 0), tensor.Sum)
		if err != nil {
			return err
		}
		barrier, err := c.group.Barrier(me(p))
		if err != nil {
			return err
		}
		given, err := c.group.Broadcast(me(p), ramp(3, p.ID), 1)
		if err != nil {
			return err
		}
		return errors.Join(p.Wait(empty.Event), p.Wait(barrier.Event), p.Wait(given.Event))
	})
	if err != nil || len(l.calls) != 0 {
		t.Errorf("%v, %d calls", err, len(l.calls))
	}
}

// A member's tensor has its result when its program has ended, and not before: later operations find it.
func TestKernelsSettleAtTheirEnd(t *testing.T) {
	c, _ := withKernels(t)
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(4, p.ID)
		w, err := c.group.AllReduce(me(p), x, tensor.Sum)
		if err != nil {
			return err
		}
		if w.Settled() {
			return errors.New("the data is there at once")
		}
		again, err := c.group.AllReduce(me(p), x, tensor.Sum)
		if err != nil {
			return err
		}
		return errors.Join(p.Wait(again.Event), expect(x, func(i int) int { return 4 * (4*i + 6) }))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAKernelThatFails(t *testing.T) {
	c, l := withKernels(t)
	l.fails = errors.New("ouch")
	err := c.spawn(func(p *multiprocessing.Process) error {
		w, err := c.group.AllReduce(me(p), ramp(4, p.ID), tensor.Sum)
		if err != nil {
			return err
		}
		err = p.Wait(w.Event)
		if p.ID == 0 && err != nil || p.ID > 0 && !errors.Is(err, l.fails) {
			t.Errorf("rank %d: %v", p.ID, err)
		}
		return nil
	})
	if err != nil || l.calls[0].cancelled != 1 {
		t.Errorf("%v, cancelled %d times", err, l.calls[0].cancelled)
	}
}

func TestADeadlockInAKernel(t *testing.T) {
	c, l := withKernels(t)
	l.hangs = true
	err := c.spawn(func(p *multiprocessing.Process) error {
		w, err := c.group.AllReduce(me(p), ramp(4, p.ID), tensor.Sum)
		if err != nil {
			return err
		}
		return p.Wait(w.Event)
	})
	var deadlock *multiprocessing.DeadlockError
	if !errors.As(err, &deadlock) || deadlock.Cause() != "it hangs" {
		t.Fatalf("got %v", err)
	}
	if text := deadlock.Error(); !strings.Contains(text, `rank 2 waits for all_reduce of 4 float32 elements, op sum (collective #0 of group world), whose kernel "mine" hangs in iii`) {
		t.Errorf("got %s", text)
	}
}

func TestBlocksThatAKernelCannotHave(t *testing.T) {
	c, _ := withKernels(t)
	err := c.spawn(func(p *multiprocessing.Process) error {
		list := []*tensor.Tensor{ramp(1, 0), ramp(2, 0), ramp(3, 0), ramp(4, 0)}
		_, err := c.group.Do(me(p), distributed.Operation{
			Name: "all_gather", Collective: collective.AllGather, Out: list, In: []*tensor.Tensor{ramp(p.ID+1, 0)},
		})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), `blocks differ in size, which kernel "mine" of ccl.yaml cannot have`) {
		t.Errorf("got %v", err)
	}
}
