package distributed_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// knowsOf lists, by rank, of which other ranks' begins it knows at the end.
func knowsOf(t *testing.T, c cluster, marks []order.Moment) [][]int {
	t.Helper()
	all := make([][]int, 3)
	for r := range all {
		host, err := c.World.Rank(r)
		if err != nil {
			t.Fatal(err)
		}
		here := host.Stream().Here()
		for other, at := range marks[:3] {
			if other != r && here.Clock().Knows(at) {
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
		marks := play(t, c, test.steps)
		if got := fmt.Sprint(knowsOf(t, c, marks)); got != test.want {
			t.Errorf("%s: ranks know of %v, want %v", test.name, got, test.want)
		}
	}
}

// play lets ranks do the steps that are theirs, one after another. Each has begun with a moment of its own, which is
// returned.
func play(t *testing.T, c cluster, steps []step) []order.Moment {
	t.Helper()
	c.World.KeepOrder()
	groups := make([]*distributed.ProcessGroup, len(steps))
	for i, s := range steps {
		var err error
		if groups[i], err = c.NewGroup(10+i, "some", s.members); err != nil {
			t.Fatal(err)
		}
	}
	marks := make([]order.Moment, c.World.Topology.SIPs())
	err := c.spawn(func(p *multiprocessing.Process) error {
		marks[p.ID] = p.Line().Advance()
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
	return marks
}

// TestKnownIsUntilTheOperation: what a rank does after it has come to a collective is not known, nor by a stream that does
// not wait for it.
func TestKnownIsUntilTheOperation(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	c.World.KeepOrder()
	g, err := c.NewGroup(10, "all", []int{0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	marks := make([]order.Moment, 3)
	var other, waits *order.Point
	err = c.spawn(func(p *multiprocessing.Process) error {
		if p.ID > 2 {
			return nil
		}
		w, err := g.AllReduce(distributed.Caller{Rank: p.ID, Async: true}, ramp(4, p.ID), tensor.Sum)
		if err != nil {
			return err
		}
		marks[p.ID] = p.Line().Advance()
		if p.ID == 0 {
			other = p.Stream().Here()
			p.Stream().Wait(w.Event)
			waits = p.Stream().Here()
		}
		return p.Wait(w.Event)
	})
	if err != nil {
		t.Fatal(err)
	}
	if waits.Clock().Knows(marks[1]) || !waits.Complete() {
		t.Error("rank 0 knows what rank 1 did after it had come")
	}
	if waits.Clock().Covers(other.Clock()) && other.Clock().Covers(waits.Clock()) {
		t.Error("rank 0's stream knows of the collective without waiting for it")
	}
}

// TestBuffersUnderWay: what an operation between ranks uses, nobody uses otherwise before somebody has waited for it. The
// error has both lines.
func TestBuffersUnderWay(t *testing.T) {
	for _, test := range []struct {
		name         string
		first, again tensor.Access // what an asynchronous operation does, and what comes after it
		waits        bool
		want         string
	}{
		{"a buffer that is sent is written", tensor.Read, tensor.Write, false, "unordered read"},
		{"a buffer that is sent is written after wait", tensor.Read, tensor.Write, true, ""},
		{"a buffer that is sent is read", tensor.Read, tensor.Read, false, ""},
		{"a buffer of a receipt is read", tensor.Write, tensor.Read, false, "unordered read"},
		{"a buffer of a receipt is written", tensor.Write, tensor.Write, false, "unordered writes"},
		{"a buffer of a receipt is read after wait", tensor.Write, tensor.Read, true, ""},
	} {
		c := newCluster(t, "default", distributed.Options{})
		c.World.KeepOrder()
		g, err := c.NewGroup(10, "pair", []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		sends := map[tensor.Access]int{tensor.Read: 0, tensor.Write: 1}[test.first] // who does it to rank 0's buffer
		var got error
		err = c.spawn(func(p *multiprocessing.Process) error {
			if p.ID > 1 {
				return nil
			}
			who := distributed.Caller{Rank: p.ID, Async: true, Site: c.Sites.Add("first.py:1")}
			buffer, post := ramp(4, 0), g.Recv
			if p.ID == sends {
				post = g.Send
			}
			w, err := post(who, 1-p.ID, 0, buffer)
			if err != nil {
				return err
			}
			if p.ID == 0 {
				if test.waits {
					p.Stream().Wait(w.Event)
				}
				d := p.Stream().Deed("add_", "second.py:2")
				got = buffer.Touch(test.again, d)
			}
			return p.Wait(w.Event)
		})
		if err != nil {
			t.Fatal(err)
		}
		if test.want == "" {
			if got != nil {
				t.Errorf("%s: %v", test.name, got)
			}
			continue
		}
		for _, part := range []string{test.want, "rank 0", "rank 1 at first.py:1", "add_ at second.py:2", "bytes 0 to 16", "wait() of its work"} {
			if got == nil || !strings.Contains(got.Error(), part) {
				t.Errorf("%s: %v, want %q", test.name, got, part)
			}
		}
	}
}
