package distributed_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// knowsOf lists, by rank, of which other ranks it knows something.
func knowsOf(c cluster, ranks int) [][]int {
	all := make([][]int, ranks)
	for r := range all {
		for other, at := range c.Known(r) {
			if other != r && at > 0 {
				all[r] = append(all[r], other)
			}
		}
	}
	return all
}

// step is an operation between some ranks.
type step struct {
	members []int
	call    func(g *distributed.ProcessGroup, rank int) (*distributed.Work, error)
}

func reduces(members ...int) step {
	return step{members, func(g *distributed.ProcessGroup, rank int) (*distributed.Work, error) {
		return g.AllReduce(distributed.Caller{Rank: rank}, ramp(4, rank), tensor.Sum)
	}}
}

func reducesNothing(members ...int) step {
	return step{members, func(g *distributed.ProcessGroup, rank int) (*distributed.Work, error) {
		return g.AllReduce(distributed.Caller{Rank: rank}, ramp(0, 0), tensor.Sum)
	}}
}

// rooted is a collective whose root is rank 1 of three.
func rooted(what collective.Kind) step {
	return step{[]int{0, 1, 2}, func(g *distributed.ProcessGroup, rank int) (*distributed.Work, error) {
		o := distributed.Operation{Name: "rooted", Collective: what, Root: 1}
		if what == collective.Reduce || rank == 1 {
			o.In = []*tensor.Tensor{ramp(4, rank)}
		}
		if what == collective.Broadcast || rank == 1 {
			o.Out = []*tensor.Tensor{ramp(4, rank)}
		}
		return g.Do(distributed.Caller{Rank: rank}, o)
	}}
}

func message(from, to int) step {
	return step{[]int{from, to}, func(g *distributed.ProcessGroup, rank int) (*distributed.Work, error) {
		if rank == from {
			return g.Send(distributed.Caller{Rank: rank}, 1, 0, ramp(4, 0))
		}
		return g.Recv(distributed.Caller{Rank: rank}, 0, 0, ramp(4, 0))
	}}
}

// TestKnown: who gets something of others knows what they did before, and what those knew; nobody else does.
func TestKnown(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"a collective of some", []step{reduces(0, 1)}, "[[1] [0] []]"},
		{"of all", []step{reduces(0, 1, 2)}, "[[1 2] [0 2] [0 1]]"},
		{"one after another", []step{reduces(1, 2), reduces(0, 1)}, "[[1 2] [0 2] [1]]"},
		{"a broadcast", []step{rooted(collective.Broadcast)}, "[[1] [] [1]]"},
		{"a reduction", []step{rooted(collective.Reduce)}, "[[] [0 2] []]"},
		{"a message", []step{message(0, 2)}, "[[] [] [0]]"},
		{"a message after a collective", []step{reduces(0, 1), message(0, 2)}, "[[1] [0] [0 1]]"},
		{"a message before a collective", []step{message(0, 2), reduces(0, 1)}, "[[1] [0] [0]]"},
		{"no elements", []step{reducesNothing(0, 1, 2)}, "[[] [] []]"},
	} {
		c := newCluster(t, "default", distributed.Options{})
		c.KeepOrder()
		play(t, c, test.steps)
		if got := fmt.Sprint(knowsOf(c, 3)); got != test.want {
			t.Errorf("%s: ranks know of %v, want %v", test.name, got, test.want)
		}
	}
}

// play lets ranks do the steps that are theirs, one after another.
func play(t *testing.T, c cluster, steps []step) {
	t.Helper()
	groups := make([]*distributed.ProcessGroup, len(steps))
	for i, s := range steps {
		var err error
		if groups[i], err = c.NewGroup(10+i, "some", s.members); err != nil {
			t.Fatal(err)
		}
	}
	err := c.spawn(func(p *multiprocessing.Process) error {
		for i, s := range steps {
			if !slices.Contains(s.members, p.ID) {
				continue
			}
			w, err := s.call(groups[i], p.ID)
			if err != nil {
				return err
			}
			if err := p.Wait(w.Event); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestKnownIsUntilTheOperation: what a rank does after it has come to a collective is not known.
func TestKnownIsUntilTheOperation(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	c.KeepOrder()
	play(t, c, []step{reduces(0, 1, 2)})
	for other, at := range c.Known(0) {
		if other > 0 && (at == 0 || at > c.Log[0].Start || at >= c.Log[0].End) {
			t.Errorf("rank 0 knows of rank %d until %v; the collective began at %v", other, at, c.Log[0].Start)
		}
	}
	if newCluster(t, "default", distributed.Options{}).Known(0) != nil {
		t.Error("an order is kept that nobody asks for")
	}
}
