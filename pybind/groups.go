package pybind

import (
	"slices"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// NewGroup makes a process group of World ranks. Messages call it by its name.
func NewGroup(worldHandle int64, id int, name string, membersAt int64, members int) (handle int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	ranks, err := host.Ints(membersAt, members)
	if err != nil {
		return 0, err
	}
	if len(ranks) == 0 || len(slices.Compact(slices.Sorted(slices.Values(ranks)))) < len(ranks) {
		return 0, host.Raise("ValueError", "a process group needs ranks, each once; not %v", ranks)
	}
	g, err := w.Backend.NewGroup(id, name, ranks)
	if err != nil {
		return 0, err
	}
	return host.Own(w, g), nil
}

// DescribeGroup notes what a program says that a group is for, which recordings have.
func DescribeGroup(group int64, description string) (err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return err
	}
	g.Object.Description = description
	return nil
}

// DropGroup forgets a group that all its members have left: nobody has its handle any more.
func DropGroup(group int64) (err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return err
	}
	g.World.Backend.Forget(g.Object)
	host.Forget(group)
	return nil
}

// Batch begins or ends a batch of a rank's operations, which are one launch.
func Batch(worldHandle int64, rank int, begins bool) (err error) {
	defer host.Guard(&err)
	_, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return err
	}
	if begins {
		r.BeginBatch()
	} else {
		r.EndBatch()
	}
	return nil
}

// Graph begins or ends a graph of a rank's operations, for which the host is charged as for one.
func Graph(worldHandle int64, rank int, begins bool) (err error) {
	defer host.Guard(&err)
	_, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return err
	}
	if begins {
		r.BeginGraph()
	} else {
		r.EndGraph()
	}
	return nil
}

// HoldHosts says that a rank's host waits for the group's operations before it goes on with what needs their results.
func HoldHosts(group int64) (err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return err
	}
	g.Object.HoldsHosts = true
	return nil
}

// AddSite gives a place in a program a number, by which operations that are called there name it.
func AddSite(worldHandle int64, text string) (site int, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	return int(w.Backend.Sites.Add(text)), nil
}

// DefineCall gives a call of a collective a number, which Python releases: its name for messages, the kind of collective,
// the reduce op ("" without one), a factor if the rank's elements are scaled by it before they are reduced, the root's
// group rank (0 without one) and the algorithm that the program asks for ("" for the one that is configured).
func DefineCall(name, kind, op string, scaled bool, factor float64, root int, algorithm string) (call int64, err error) {
	defer host.Guard(&err)
	o := distributed.Operation{Name: name, Root: root, Algorithm: algorithm}
	if o.Collective, err = collective.ParseKind(kind); err != nil {
		return 0, err
	}
	if op != "" {
		if o.Reduce, err = tensor.ParseReduceOp(op); err != nil {
			return 0, err
		}
	}
	if scaled {
		o.Factor = &factor
	}
	return host.DefineCall(o), nil
}

// Issue issues a collective by the rank whose stream is given, and returns its work, if it is asynchronous, or else 0:
// its stream waits for it. out and in are the tensors that the rank receives and gives, 0 where it does not.
func Issue(group, stream int64, site int, asyncOp bool, call, out, in int64) (work int64, err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return 0, err
	}
	outs, err := g.World.Whole(out)
	if err != nil {
		return 0, err
	}
	ins := outs
	if in != out {
		if ins, err = g.World.Whole(in); err != nil {
			return 0, err
		}
	}
	return host.Issue(g, host.Caller{Stream: stream, Site: site, Async: asyncOp}, call, outs, ins)
}

// IssuePieces is Issue of pieces: what the rank receives and gives are integers at addresses; see host.World.Pieces.
func IssuePieces(group, stream int64, site int, asyncOp bool, call, outAt int64, out int, inAt int64, in int) (work int64, err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return 0, err
	}
	outs, err := g.World.Pieces(outAt, out)
	if err != nil {
		return 0, err
	}
	ins, err := g.World.Pieces(inAt, in)
	if err != nil {
		return 0, err
	}
	return host.Issue(g, host.Caller{Stream: stream, Site: site, Async: asyncOp}, call, outs, ins)
}

// Estimate is how many picoseconds the collective would take on a fabric that has nothing else to do, if all members
// called it at once; see IssuePieces for the arguments. Nothing is issued.
func Estimate(group int64, rank int, call, outAt int64, out int, inAt int64, in int) (ps int64, err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return 0, err
	}
	outs, err := g.World.Pieces(outAt, out)
	if err != nil {
		return 0, err
	}
	ins, err := g.World.Pieces(inAt, in)
	if err != nil {
		return 0, err
	}
	o, err := host.CallOf(call, outs, ins)
	if err != nil {
		return 0, err
	}
	took, err := g.Object.Estimate(rank, o)
	return int64(took), err
}

// EstimateMessage is the same of so many bytes from a group rank to another one.
func EstimateMessage(group int64, from, to int, bytes int64) (ps int64, err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return 0, err
	}
	took, err := g.Object.EstimateMessage(from, to, bytes)
	return int64(took), err
}

// Post issues one side of a message and returns its work, as Issue does: a send of t to the group rank peer, or its
// receipt from there (-1: from anybody).
func Post(group, stream int64, site int, asyncOp, sending bool, peer, tag int, t int64) (work int64, err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return 0, err
	}
	c, err := host.CallerOf(stream, site, asyncOp)
	if err != nil {
		return 0, err
	}
	tensors, err := host.TensorsOf(g.World, t)
	if err != nil {
		return 0, err
	}
	post := g.Object.Recv
	if sending {
		post = g.Object.Send
	}
	w, err := post(c, peer, tag, tensors[0].Tensor)
	return host.Issued(g.World, asyncOp, w, err)
}

// Access puts an access to the memory of other ranks on a stream, after all that is on it: so many bytes of
// each are read, or written. The data has been moved already. It returns a launch's number, as LaunchKernel does; see
// distributed.Backend.Transfer.
func Access(stream int64, site int, peersAt int64, peers int, bytes int64, writes bool) (launch int64, err error) {
	defer host.Guard(&err)
	s, err := host.StreamOf(stream)
	if err != nil {
		return 0, err
	}
	c, err := host.CallerOf(stream, site, false)
	if err != nil {
		return 0, err
	}
	ranks, err := host.Ints(peersAt, peers)
	if err != nil {
		return 0, err
	}
	e, err := s.World.Backend.Transfer(c, distributed.Transfer{Peers: ranks, Bytes: bytes, Writes: writes})
	return host.Launched(s, e, err)
}

// AbortGroup ends, with a DistBackendError, what a rank has a part in and cannot run any more; see
// distributed.ProcessGroup.Abort.
func AbortGroup(group int64, rank int) (err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return err
	}
	return g.Object.Abort(rank, host.Raise("DistBackendError", "rank %d has aborted process group %s", rank, g.Object.Name))
}

// SetTimeout makes what a rank issues to a group from now on fail, with a DistBackendError, when it has not ended after
// so many picoseconds; see distributed.ProcessGroup.SetTimeout.
func SetTimeout(group int64, rank int, ps int64) (err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return err
	}
	return g.Object.SetTimeout(rank, sim.Time(ps))
}

// NextSeq is the number that a rank's next collective in the group will have.
func NextSeq(group int64, rank int) (seq int64, err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return 0, err
	}
	next, err := g.Object.Next(rank)
	return int64(next), err
}

// Duration is how long the rank's device was in an operation that is done, in picoseconds.
func Duration(work int64) (ps int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorkOf(work)
	if err != nil {
		return 0, err
	}
	if !w.Object.Done() {
		return 0, host.Raise("RuntimeError", "the work has not ended: wait for it first")
	}
	return int64(w.Object.Duration()), nil
}

// Began is when a rank's device reached an operation, in picoseconds; -1 before it has.
func Began(work int64) (ps int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorkOf(work)
	if err != nil {
		return 0, err
	}
	begin, reached := w.Object.Began()
	if !reached {
		return -1, nil
	}
	return int64(begin), nil
}

// Ended is when an operation ended for a rank, in picoseconds; -1 before it has, and where it has failed.
func Ended(work int64) (ps int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorkOf(work)
	if err != nil {
		return 0, err
	}
	if !w.Object.Done() || w.Object.Err() != nil {
		return -1, nil
	}
	return int64(w.Object.At()), nil
}

// Withdraw ends a message, unless it has met its other side, with a DistBackendError of the given text.
func Withdraw(work int64, text string) (err error) {
	defer host.Guard(&err)
	w, err := host.WorkOf(work)
	if err == nil {
		w.Object.Withdraw(host.Raise("DistBackendError", "%s", text))
	}
	return err
}

// Expire ends an operation that has not ended, for all ranks that have a part in it, with a DistBackendError of the given text.
func Expire(work int64, text string) (err error) {
	defer host.Guard(&err)
	w, err := host.WorkOf(work)
	if err == nil {
		w.Object.Expire(host.Raise("DistBackendError", "%s", text), w.World.Engine.Now())
	}
	return err
}

// SequenceNumber is the number of a collective in its group; 0 of a message.
func SequenceNumber(work int64) (seq int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorkOf(work)
	if err != nil {
		return 0, err
	}
	return int64(w.Object.Seq), nil
}

// Source is the group rank that a receive got its message from.
func Source(work int64) (rank int, err error) {
	defer host.Guard(&err)
	w, err := host.WorkOf(work)
	if err != nil {
		return 0, err
	}
	return w.Object.Source(), nil
}

// IsDone reports whether a work or an event has ended.
func IsDone(waitable int64) (done bool, err error) {
	defer host.Guard(&err)
	e, err := host.PendingOn(waitable)
	if err != nil {
		return false, err
	}
	return e == nil || e.Done(), nil
}

// NewShardGroup makes the group of a single worker whose tensors are sharded over the PEs of one SIP.
func NewShardGroup(worldHandle int64, worldSize int) (handle int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	g, err := w.Backend.NewShardGroup(0, worldSize)
	if err != nil {
		return 0, err
	}
	return host.Own(w, g), nil
}

// AllReduceShards issues an all_reduce over the shards of t and returns its work.
func AllReduceShards(group, stream int64, site int, asyncOp bool, t int64, op string) (work int64, err error) {
	defer host.Guard(&err)
	g, c, tensors, err := host.ShardArguments(group, stream, site, asyncOp, t)
	if err != nil {
		return 0, err
	}
	reduce, err := tensor.ParseReduceOp(op)
	if err != nil {
		return 0, err
	}
	w, err := g.Object.AllReduce(c, tensors[0].Tensor, tensors[0].At, reduce)
	return host.Issued(g.World, asyncOp, w, err)
}

// AllGatherShards issues an all_gather_into_tensor from the shards of in into the shards of out.
func AllGatherShards(group, stream int64, site int, asyncOp bool, out, in int64) (work int64, err error) {
	defer host.Guard(&err)
	g, c, tensors, err := host.ShardArguments(group, stream, site, asyncOp, out, in)
	if err != nil {
		return 0, err
	}
	w, err := g.Object.AllGatherIntoTensor(c, tensors[0].Tensor, tensors[0].At, tensors[1].Tensor, tensors[1].At)
	return host.Issued(g.World, asyncOp, w, err)
}
