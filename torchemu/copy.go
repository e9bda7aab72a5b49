package torchemu

import "github.com/torchemu/torchemu/torchemu/tensor"

// Copy makes src's elements dst's, converted and broadcast as [tensor.Tensor.CopyFrom] does. src must have no
// operation pending: the host waits for it first. dst may: the copy then takes its turn behind them, with src's
// elements as they are now, and the host does not wait.
func (r *Rank) Copy(dst, src *tensor.Tensor) error {
	start := r.Launch()
	before := All(PendingOn(dst, tensor.Write))
	if before == nil || before.Settled() {
		return dst.CopyFrom(src)
	}
	snapshot, err := tensor.New(dst.DType(), dst.Shape()...)
	if err != nil {
		return err
	}
	if err := snapshot.CopyFrom(src); err != nil {
		return err
	}
	e := NewEvent(queuedCopy{before})
	e.Pend(dst, tensor.Write)
	r.Issued(e)
	before.WhenSettled(func() { r.copyBehind(e, dst, snapshot) })
	before.WhenDone(func() { e.Finish(max(start, before.At())) })
	return nil
}

// copyBehind does a queued copy. Shapes and dtypes are equal, so that nothing but the end of the memory can fail it.
func (r *Rank) copyBehind(e *Event, dst, snapshot *tensor.Tensor) {
	defer snapshot.Storage().Release()
	if err := dst.CopyFrom(snapshot); err != nil {
		e.Fail(err, r.Now())
		return
	}
	e.Settle()
}

// queuedCopy is the reason of a copy that takes its turn. It implements Link.
type queuedCopy struct{ before *Event }

func (c queuedCopy) Follows() *Event { return c.before }
func (c queuedCopy) Alone() string   { return "a copy_" }
func (c queuedCopy) String() string  { return Chain(c) }
func (c queuedCopy) Needs() []int    { return needsBehind(c) }
