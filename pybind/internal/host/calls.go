package host

import (
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// GroupOf finds a process group whose World is open.
func GroupOf(handle int64) (Owned[*distributed.ProcessGroup], error) {
	return OwnedBy[*distributed.ProcessGroup](handle, "process group")
}

// DefineCall makes a handle of a call of a collective, without tensors: it is of no World.
func DefineCall(o distributed.Operation) int64 { return Register(&o) }

// CallOf finds a call and gives it tensors.
func CallOf(handle int64, out, in []*tensor.Tensor) (distributed.Operation, error) {
	o, ok := Lookup(handle).(*distributed.Operation)
	if !ok {
		return distributed.Operation{}, Raise("ValueError", "%d is no call of a collective", handle)
	}
	call := *o
	call.Out, call.In = out, in
	return call, nil
}

// Caller is who calls: the stream whose rank it is, a number of the place in the program, and whether it waits by itself.
type Caller struct {
	Stream int64
	Site   int
	Async  bool
}

func (c Caller) resolve() (distributed.Caller, error) {
	s, err := StreamOf(c.Stream)
	if err != nil {
		return distributed.Caller{}, err
	}
	return distributed.Caller{
		Rank: s.Object.Rank().ID, Site: distributed.Site(c.Site), Stream: s.Object, Async: c.Async,
	}, nil
}

// CallerOf says who calls: the rank of the stream.
func CallerOf(stream int64, site int, asyncOp bool) (distributed.Caller, error) {
	return Caller{stream, site, asyncOp}.resolve()
}

// Issue issues a call by its handle and returns its work, if it is asynchronous, or else 0.
func Issue(g Owned[*distributed.ProcessGroup], c Caller, call int64, out, in []*tensor.Tensor) (work int64, err error) {
	caller, err := c.resolve()
	if err != nil {
		return 0, err
	}
	o, err := CallOf(call, out, in)
	if err != nil {
		return 0, err
	}
	w, err := g.Object.Do(caller, o)
	return Issued(g.World, c.Async, w, err)
}

// TensorsOf resolves tensors and checks that they belong to the World.
func TensorsOf(w *World, handles ...int64) ([]*Placed, error) {
	list := make([]*Placed, len(handles))
	for i, h := range handles {
		t, err := w.tensor(h)
		if err != nil {
			return nil, err
		}
		list[i] = t
	}
	return list, nil
}

// tensor resolves one.
func (w *World) tensor(handle int64) (*Placed, error) {
	o, err := TensorOf(handle)
	if err != nil {
		return nil, err
	}
	if o.World != w {
		return nil, Raise("RuntimeError", "the tensor belongs to another World than the process group")
	}
	return o.Object, nil
}

// Issued hands the work of an operation to Python, which has no use for it when its stream waits already.
func Issued(w *World, async bool, work *distributed.Work, err error) (int64, error) {
	if err != nil || !async {
		return 0, err
	}
	return Own(w, work), nil
}

// WorkOf finds a work whose World is open.
func WorkOf(handle int64) (Owned[*distributed.Work], error) {
	return OwnedBy[*distributed.Work](handle, "work")
}

// ShardArguments finds what the operations of shards are called with.
func ShardArguments(group, stream int64, site int, asyncOp bool, handles ...int64) (g Owned[*distributed.ShardGroup], c distributed.Caller, tensors []*Placed, err error) {
	if g, err = OwnedBy[*distributed.ShardGroup](group, "process group"); err != nil {
		return
	}
	if c, err = CallerOf(stream, site, asyncOp); err != nil {
		return
	}
	tensors, err = TensorsOf(g.World, handles...)
	return
}
