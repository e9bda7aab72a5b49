package distributed_test

import (
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// What a collective is estimated at is what it then takes, when all begin at once; estimating moves no time.
func TestEstimatesAreWhatItTakes(t *testing.T) {
	for _, preset := range []string{"sips2", "default"} {
		for _, n := range []int{0, 1, 1000, 1 << 18} {
			c := newCluster(t, preset, distributed.Options{})
			var estimates []sim.Time
			err := c.spawn(func(p *multiprocessing.Process) error {
				x := []*tensor.Tensor{ramp(n, p.ID)}
				o := distributed.Operation{Name: "all_reduce", Collective: collective.AllReduce, Out: x, In: x}
				took, err := c.group.Estimate(p.ID, o)
				if err != nil {
					return err
				}
				estimates = append(estimates, took)
				w, err := c.group.Do(me(p), o)
				if err != nil {
					return err
				}
				return finish(p, w)
			})
			if err != nil {
				t.Fatal(err)
			}
			r := c.Log[0]
			for _, e := range estimates {
				if e != r.End-r.Start {
					t.Errorf("%s, %d elements: estimated at %v, took %v", preset, n, e, r.End-r.Start)
				}
			}
		}
	}
}

func TestEstimatesOfWhatIsWrong(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	x := []*tensor.Tensor{ramp(4, 0)}
	for _, test := range []struct {
		rank      int
		operation distributed.Operation
		text      string
	}{
		{9, distributed.Operation{Collective: collective.AllReduce, Out: x, In: x}, "not a member"},
		{0, distributed.Operation{Collective: collective.Broadcast, Root: 4, Out: x}, "invalid root rank: 4"},
		{0, distributed.Operation{Collective: collective.AllReduce, Out: x, In: x, Algorithm: "magic"}, "magic"},
	} {
		if _, err := c.group.Estimate(test.rank, test.operation); err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%v: got %v, want %q", test.operation, err, test.text)
		}
	}
	if _, err := c.group.EstimateMessage(0, 4, 8); err == nil || !strings.Contains(err.Error(), "invalid rank 4") {
		t.Errorf("a message to rank 4: %v", err)
	}
}
