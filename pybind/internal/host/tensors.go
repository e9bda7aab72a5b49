package host

import (
	"sync/atomic"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Placed is a tensor with its DPPolicy: how it lies on the PEs of its SIP.
type Placed struct {
	*tensor.Tensor
	At      tensor.Placement
	holders *holders
}

// holders are the handles of tensors on one storage.
type holders struct {
	atomic.Int32      // how many
	lent         bool // the memory is Python's
}

// whole is the placement of a tensor without a policy: all of it on PE 0 of cube 0.
var whole = tensor.Placement{NumCubes: 1, NumPEs: 1}

// NewTensor makes a handle of a tensor with a storage of its own.
func (w *World) NewTensor(t *tensor.Tensor) int64 { return w.register(t, &holders{}) }

// LendTensor makes a handle of a tensor of memory that Python owns.
func (w *World) LendTensor(t *tensor.Tensor) int64 { return w.register(t, &holders{lent: true}) }

// NewView makes a handle of a tensor on the storage of another one.
func NewView(of Owned[*Placed], dt dtype.DType, l tensor.Layout) (int64, error) {
	v, err := tensor.Over(of.Object.Storage(), dt, l)
	if err != nil {
		return 0, err
	}
	return of.World.register(v, of.Object.holders), nil
}

// register makes a handle; h is that of the tensor that t is a view of, or a new one.
func (w *World) register(t *tensor.Tensor, h *holders) int64 {
	h.Add(1)
	return Own(w, &Placed{t, whole, h})
}

// letGo frees the storage with its last handle, once no operation uses it any more. Go's garbage collector would free
// it too, but it does not see how much memory lies outside of its heap, and would come late. Where an operation still
// uses the storage it reports true, and calls freed when that has ended.
func (p *Placed) letGo(freed func()) (used bool) {
	if p.holders.Add(-1) > 0 {
		return false
	}
	users := torchemu.Users(p.Storage())
	if len(users) == 0 {
		p.Storage().Release()
		return false
	}
	torchemu.AfterAll(users, func(sim.Time) {
		if torchemu.FirstError(users) == nil { // operations before one that failed may still be going on
			p.Storage().Release()
			freed()
		}
	})
	return true
}

// Release lets go of a handle of any kind. It says whether that was of memory that Python owns and operations still use.
func Release(handle int64) (used bool) {
	switch o := Forget(handle).(type) {
	case Owned[*Placed]:
		if o.World.checkThread() != nil { // another thread must not look at what is pending
			return false
		}
		lent := o.Object.holders.lent
		used = o.Object.letGo(func() {
			if lent {
				o.World.returned = append(o.World.returned, handle)
			}
		})
		return used && lent
	case remains:
		o.letGo(func() {})
	}
	return false
}

// ReleaseEnded releases those of n works and events, whose handles are at an address, that have ended, or whose World is
// closed, and returns the others.
func ReleaseEnded(at int64, n int) (left []int64, err error) {
	handles, err := words(at, n)
	if err != nil {
		return nil, err
	}
	for _, handle := range handles {
		if Lookup(handle) == nil {
			continue
		}
		e, err := PendingOn(handle)
		if err != nil {
			return nil, err
		}
		if e != nil && !e.Done() {
			left = append(left, handle)
		} else {
			Release(handle)
		}
	}
	return left, nil
}

// Returned takes up to so many of the tensors whose memory Release said to be in use, and that no operation uses any more.
func (w *World) Returned(most int) []int64 {
	n := min(most, len(w.returned))
	list := w.returned[:n:n]
	w.returned = w.returned[n:]
	return list
}

// remains is what is left of a tensor whose World is closed: its memory, which NumPy may still look at.
type remains struct{ *Placed }

func remainsOf(p *Placed) remains {
	p.Storage().Forget() // what was pending will not happen, and holds on to the World
	return remains{p}
}

// TensorOf finds a tensor whose World is open.
func TensorOf(handle int64) (Owned[*Placed], error) {
	return OwnedBy[*Placed](handle, "tensor")
}

// OffsetBytes is how many bytes of the storage are before the tensor's first element.
func (p *Placed) OffsetBytes() int64 { return int64(p.Offset() * p.DType().Size()) }

// Place gives a tensor its DPPolicy, which must suit the World's topology.
func Place(o Owned[*Placed], at tensor.Placement) error {
	t := o.World.Topology
	if _, err := at.Shards(o.Object.Tensor, t.CubesPerSIP(), t.PEsPerCube()); err != nil {
		return err
	}
	o.Object.At = at
	return nil
}

// PendingOn returns the event that a reader of the tensor or waiter for the work waits for; nil when there is none.
func PendingOn(handle int64) (*torchemu.Event, error) {
	switch o := Lookup(handle).(type) {
	case Owned[*Placed]:
		if err := o.World.checkThread(); err != nil {
			return nil, err
		}
		return torchemu.All(torchemu.PendingOn(o.Object.Tensor, tensor.Read)), nil
	case Owned[*torchemu.Event]:
		return o.Object, o.World.checkThread()
	case Owned[*distributed.Work]:
		return o.Object.Event, o.World.checkThread()
	}
	return nil, Raise("RuntimeError", "this tensor or work does not exist any more: its World is closed")
}
