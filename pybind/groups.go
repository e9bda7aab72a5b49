package pybind

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// NewGroup makes a process group of World ranks, given as "0,1,3". Messages call it by its name.
func NewGroup(worldHandle int64, id int, name, members string) (handle int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	ranks, err := parseInts(members)
	if err != nil {
		return 0, err
	}
	if len(ranks) == 0 || len(slices.Compact(slices.Sorted(slices.Values(ranks)))) < len(ranks) {
		return 0, raise("ValueError", "a process group needs ranks, each once; not [%s]", members)
	}
	g, err := w.backend.NewGroup(id, name, ranks)
	if err != nil {
		return 0, err
	}
	return register(owned[*distributed.ProcessGroup]{g, w}), nil
}

// HoldHosts says that a rank's host waits for the group's operations before it goes on with what needs their results.
func HoldHosts(group int64) (err error) {
	defer guard(&err)
	g, err := groupOf(group)
	if err != nil {
		return err
	}
	g.object.HoldsHosts = true
	return nil
}

func groupOf(handle int64) (owned[*distributed.ProcessGroup], error) {
	return ownedBy[*distributed.ProcessGroup](handle, "process group")
}

// AddSite gives a place in a program a number, by which operations that are called there name it.
func AddSite(worldHandle int64, text string) (site int, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	return int(w.backend.Sites.Add(text)), nil
}

// Issue issues a collective by the rank whose stream is given, and returns its work, if it is asynchronous, or else 0:
// its stream waits for it. call is "name|collective|op|root": the name for messages, the kind of collective (with
// "/algorithm" for one that the program asks for), the reduce op ("" without one, "premul_sum:0.5" with a factor) and the
// root's group rank (0 without one). outs and ins are tensors, see parseTensors; "" where the rank has none.
func Issue(group, stream int64, site int, asyncOp bool, call, outs, ins string) (work int64, err error) {
	defer guard(&err)
	g, err := groupOf(group)
	if err != nil {
		return 0, err
	}
	c, err := callerOf(stream, site, asyncOp)
	if err != nil {
		return 0, err
	}
	o, err := parseOperation(g.world, call, outs, ins)
	if err != nil {
		return 0, err
	}
	w, err := g.object.Do(c, o)
	return issued(g.world, asyncOp, w, err)
}

// Estimate is how many picoseconds the collective would take on a fabric that has nothing else to do, if all members
// called it at once; see Issue for the arguments. Nothing is issued.
func Estimate(group int64, rank int, call, outs, ins string) (ps int64, err error) {
	defer guard(&err)
	g, err := groupOf(group)
	if err != nil {
		return 0, err
	}
	o, err := parseOperation(g.world, call, outs, ins)
	if err != nil {
		return 0, err
	}
	took, err := g.object.Estimate(rank, o)
	return int64(took), err
}

// EstimateMessage is the same of so many bytes from a group rank to another one.
func EstimateMessage(group int64, from, to int, bytes int64) (ps int64, err error) {
	defer guard(&err)
	g, err := groupOf(group)
	if err != nil {
		return 0, err
	}
	took, err := g.object.EstimateMessage(from, to, bytes)
	return int64(took), err
}

// parseOperation reads the arguments of Issue. Programs make few calls many times: what has been read is kept, but for
// factors, of which there may be a new one each time.
func parseOperation(w *world, call, outs, ins string) (o distributed.Operation, err error) {
	o, known := w.calls[call]
	if !known {
		if o, err = parseCall(call); err != nil {
			return o, err
		}
		if o.Factor == nil {
			w.calls[call] = o
		}
	}
	if o.Out, err = parseTensors(w, outs); err != nil {
		return o, err
	}
	o.In, err = parseTensors(w, ins)
	return o, err
}

// Post issues one side of a message and returns its work, as Issue does: a send of t to the group rank peer, or its
// receipt from there (-1: from anybody).
func Post(group, stream int64, site int, asyncOp, sending bool, peer, tag int, t int64) (work int64, err error) {
	defer guard(&err)
	g, err := groupOf(group)
	if err != nil {
		return 0, err
	}
	c, err := callerOf(stream, site, asyncOp)
	if err != nil {
		return 0, err
	}
	tensors, err := tensorsOf(g.world, t)
	if err != nil {
		return 0, err
	}
	post := g.object.Recv
	if sending {
		post = g.object.Send
	}
	w, err := post(c, peer, tag, tensors[0].Tensor)
	return issued(g.world, asyncOp, w, err)
}

// Access puts an access to the memory of other ranks ("0,1,3") on a stream, after all that is on it: so many bytes of
// each are read, or written. The data has been moved already. It returns a launch's number, as LaunchKernel does; see
// distributed.Backend.Transfer.
func Access(stream int64, site int, peers string, bytes int64, writes bool) (launch int64, err error) {
	defer guard(&err)
	s, err := streamOf(stream)
	if err != nil {
		return 0, err
	}
	c, err := callerOf(stream, site, false)
	if err != nil {
		return 0, err
	}
	ranks, err := parseInts(peers)
	if err != nil {
		return 0, err
	}
	e, err := s.world.backend.Transfer(c, distributed.Transfer{Peers: ranks, Bytes: bytes, Writes: writes})
	return launched(s, e, err)
}

// callerOf says who calls: the rank of the stream.
func callerOf(stream int64, site int, asyncOp bool) (distributed.Caller, error) {
	s, err := streamOf(stream)
	if err != nil {
		return distributed.Caller{}, err
	}
	return distributed.Caller{
		Rank: s.object.Rank().ID, Site: distributed.Site(site), Stream: s.object, Async: asyncOp,
	}, nil
}

// parseCall reads "name|collective|op|root".
func parseCall(call string) (distributed.Operation, error) {
	fields := strings.Split(call, "|")
	if len(fields) != 4 {
		return distributed.Operation{}, raise("ValueError", "%q is not name|collective|op|root", call)
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
		return o, raise("ValueError", "%q is no rank", fields[3])
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
		return raise("ValueError", "%q is no factor", number)
	}
	o.Reduce, o.Factor = tensor.Sum, &factor
	return nil
}

// tensorsOf resolves tensors and checks that they belong to the World.
func tensorsOf(w *world, handles ...int64) ([]*placed, error) {
	list := make([]*placed, len(handles))
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
func (w *world) tensor(handle int64) (*placed, error) {
	o, err := tensorOf(handle)
	if err != nil {
		return nil, err
	}
	if o.world != w {
		return nil, raise("RuntimeError", "the tensor belongs to another World than the process group")
	}
	return o.object, nil
}

// issued hands the work of an operation to Python, which has no use for it when its stream waits already.
func issued(w *world, async bool, work *distributed.Work, err error) (int64, error) {
	if err != nil || !async {
		return 0, err
	}
	return register(owned[*distributed.Work]{work, w}), nil
}

// AbortGroup ends, with a DistBackendError, what a rank has a part in and cannot run any more; see
// distributed.ProcessGroup.Abort.
func AbortGroup(group int64, rank int) (err error) {
	defer guard(&err)
	g, err := groupOf(group)
	if err != nil {
		return err
	}
	return g.object.Abort(rank, raise("DistBackendError", "rank %d has aborted process group %s", rank, g.object.Name))
}

// SetTimeout makes what a rank issues to a group from now on fail, with a DistBackendError, when it has not ended after
// so many picoseconds; see distributed.ProcessGroup.SetTimeout.
func SetTimeout(group int64, rank int, ps int64) (err error) {
	defer guard(&err)
	g, err := groupOf(group)
	if err != nil {
		return err
	}
	return g.object.SetTimeout(rank, sim.Time(ps))
}

// NextSeq is the number that a rank's next collective in the group will have.
func NextSeq(group int64, rank int) (seq int64, err error) {
	defer guard(&err)
	g, err := groupOf(group)
	if err != nil {
		return 0, err
	}
	next, err := g.object.Next(rank)
	return int64(next), err
}

func workOf(handle int64) (owned[*distributed.Work], error) {
	return ownedBy[*distributed.Work](handle, "work")
}

// Duration is how long the rank's device was in an operation that is done, in picoseconds.
func Duration(work int64) (ps int64, err error) {
	defer guard(&err)
	w, err := workOf(work)
	if err != nil {
		return 0, err
	}
	if !w.object.Done() {
		return 0, raise("RuntimeError", "the work has not ended: wait for it first")
	}
	return int64(w.object.Duration()), nil
}

// Progress says how far a rank's device is with an operation: "" before it has reached it, the time in picoseconds when
// it has, and "begin,end" when it has ended without an error.
func Progress(work int64) (times string, err error) {
	defer guard(&err)
	w, err := workOf(work)
	if err != nil {
		return "", err
	}
	begin, reached := w.object.Began()
	switch {
	case !reached:
		return "", nil
	case !w.object.Done() || w.object.Err() != nil:
		return strconv.FormatInt(int64(begin), 10), nil
	}
	return fmt.Sprintf("%d,%d", begin, w.object.At()), nil
}

// Withdraw ends a message, unless it has met its other side, with a DistBackendError of the given text.
func Withdraw(work int64, text string) (err error) {
	defer guard(&err)
	w, err := workOf(work)
	if err == nil {
		w.object.Withdraw(raise("DistBackendError", "%s", text))
	}
	return err
}

// SequenceNumber is the number of a collective in its group; 0 of a message.
func SequenceNumber(work int64) (seq int64, err error) {
	defer guard(&err)
	w, err := workOf(work)
	if err != nil {
		return 0, err
	}
	return int64(w.object.Seq), nil
}

// Source is the group rank that a receive got its message from.
func Source(work int64) (rank int, err error) {
	defer guard(&err)
	w, err := workOf(work)
	if err != nil {
		return 0, err
	}
	return w.object.Source(), nil
}

// IsDone reports whether a work or an event has ended.
func IsDone(waitable int64) (done bool, err error) {
	defer guard(&err)
	e, err := pendingOn(waitable)
	if err != nil {
		return false, err
	}
	return e == nil || e.Done(), nil
}

// NewShardGroup makes the group of a single worker whose tensors are sharded over the PEs of one SIP.
func NewShardGroup(worldHandle int64, worldSize int) (handle int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	g, err := w.backend.NewShardGroup(0, worldSize)
	if err != nil {
		return 0, err
	}
	return register(owned[*distributed.ShardGroup]{g, w}), nil
}

// AllReduceShards issues an all_reduce over the shards of t and returns its work.
func AllReduceShards(group, stream int64, site int, asyncOp bool, t int64, op string) (work int64, err error) {
	defer guard(&err)
	g, c, tensors, err := shardArguments(group, stream, site, asyncOp, t)
	if err != nil {
		return 0, err
	}
	reduce, err := tensor.ParseReduceOp(op)
	if err != nil {
		return 0, err
	}
	w, err := g.object.AllReduce(c, tensors[0].Tensor, tensors[0].at, reduce)
	return issued(g.world, asyncOp, w, err)
}

// AllGatherShards issues an all_gather_into_tensor from the shards of in into the shards of out.
func AllGatherShards(group, stream int64, site int, asyncOp bool, out, in int64) (work int64, err error) {
	defer guard(&err)
	g, c, tensors, err := shardArguments(group, stream, site, asyncOp, out, in)
	if err != nil {
		return 0, err
	}
	w, err := g.object.AllGatherIntoTensor(c, tensors[0].Tensor, tensors[0].at, tensors[1].Tensor, tensors[1].at)
	return issued(g.world, asyncOp, w, err)
}

func shardArguments(group, stream int64, site int, asyncOp bool, handles ...int64) (g owned[*distributed.ShardGroup], c distributed.Caller, tensors []*placed, err error) {
	if g, err = ownedBy[*distributed.ShardGroup](group, "process group"); err != nil {
		return
	}
	if c, err = callerOf(stream, site, asyncOp); err != nil {
		return
	}
	tensors, err = tensorsOf(g.world, handles...)
	return
}
