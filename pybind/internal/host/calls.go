package host

import (
	"strconv"
	"strings"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// GroupOf finds a process group whose World is open.
func GroupOf(handle int64) (Owned[*distributed.ProcessGroup], error) {
	return OwnedBy[*distributed.ProcessGroup](handle, "process group")
}

// ParseOperation reads the arguments of Issue. Programs make few calls many times: what has been read is kept, but for
// factors, of which there may be a new one each time.
func ParseOperation(w *World, call, outs, ins string) (o distributed.Operation, err error) {
	o, known := w.calls[call]
	if !known {
		if o, err = parseCall(call); err != nil {
			return o, err
		}
		if o.Factor == nil {
			w.calls[call] = o
		}
	}
	if o.Out, err = ParseTensors(w, outs); err != nil {
		return o, err
	}
	o.In, err = ParseTensors(w, ins)
	return o, err
}

// CallerOf says who calls: the rank of the stream.
func CallerOf(stream int64, site int, asyncOp bool) (distributed.Caller, error) {
	s, err := StreamOf(stream)
	if err != nil {
		return distributed.Caller{}, err
	}
	return distributed.Caller{
		Rank: s.Object.Rank().ID, Site: distributed.Site(site), Stream: s.Object, Async: asyncOp,
	}, nil
}

// parseCall reads "name|collective|op|root".
func parseCall(call string) (distributed.Operation, error) {
	fields := strings.Split(call, "|")
	if len(fields) != 4 {
		return distributed.Operation{}, Raise("ValueError", "%q is not name|collective|op|root", call)
	}
	o := distributed.Operation{Name: fields[0]}
	kind, algorithm, _ := strings.Cut(fields[1], "/")
	o.Algorithm = algorithm
	var err error
	if o.Collective, err = collective.ParseKind(kind); err != nil {
		return o, err
	}
	if fields[2] != "" {
		if err := parseReduceOp(fields[2], &o); err != nil {
			return o, err
		}
	}
	if o.Root, err = strconv.Atoi(fields[3]); err != nil {
		return o, Raise("ValueError", "%q is no rank", fields[3])
	}
	return o, nil
}

// parseReduceOp reads a reduce op's name, or "premul_sum:0.5".
func parseReduceOp(text string, o *distributed.Operation) (err error) {
	number, scaled := strings.CutPrefix(text, "premul_sum:")
	if !scaled {
		o.Reduce, err = tensor.ParseReduceOp(text)
		return err
	}
	factor, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return Raise("ValueError", "%q is no factor", number)
	}
	o.Reduce, o.Factor = tensor.Sum, &factor
	return nil
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
