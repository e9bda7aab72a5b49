package pybind

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// table maps the handles that Python holds to objects. Python may release a handle from any thread, whenever its
// garbage collector runs; everything else happens on the World's thread.
var table = struct {
	sync.Mutex
	objects map[int64]any
	next    int64
}{objects: map[int64]any{}}

// world is an open World with what its groups share.
type world struct {
	*torchemu.World
	backend *distributed.Backend
	config  *ccl.Config
	about   string // JSON for Describe
	thread  int

	calls    map[string]distributed.Operation // of collectives, by how Python writes them; see parseOperation
	launches map[int]*launches                // by rank
	returned []int64                          // tensors of memory that Python owns; see Returned
}

// owned is an object that belongs to a World.
type owned[T any] struct {
	object T
	world  *world
}

func register(object any) int64 {
	table.Lock()
	defer table.Unlock()
	table.next++
	table.objects[table.next] = object
	return table.next
}

func lookup(handle int64) any {
	table.Lock()
	defer table.Unlock()
	return table.objects[handle]
}

func forget(handle int64) any {
	table.Lock()
	defer table.Unlock()
	object := table.objects[handle]
	delete(table.objects, handle)
	return object
}

// worldOf finds an open World and checks that this is its thread.
func worldOf(handle int64) (*world, error) {
	w, ok := lookup(handle).(*world)
	if !ok {
		return nil, raise("RuntimeError", "the World is closed: its tensors and process groups can no longer be used")
	}
	return w, w.checkThread()
}

func (w *world) checkThread() error {
	if unix.Gettid() != w.thread {
		return raise("RuntimeError", "a World belongs to the thread that opened it; this is another thread. "+
			"Ranks are cooperative: use torch.multiprocessing.spawn, not threads")
	}
	return nil
}

// ownedBy finds an object of a World that is still open.
func ownedBy[T any](handle int64, what string) (owned[T], error) {
	o, ok := lookup(handle).(owned[T])
	if !ok {
		return owned[T]{}, raise("RuntimeError", "this %s does not exist any more: its World is closed", what)
	}
	return o, o.world.checkThread()
}

// placed is a tensor with its DPPolicy: how it lies on the PEs of its SIP.
type placed struct {
	*tensor.Tensor
	at      tensor.Placement
	holders *holders
}

// holders are the handles of tensors on one storage.
type holders struct {
	atomic.Int32      // how many
	lent         bool // the memory is Python's
}

// whole is the placement of a tensor without a policy: all of it on PE 0 of cube 0.
var whole = tensor.Placement{NumCubes: 1, NumPEs: 1}

// registerTensor makes a handle; h is that of the tensor that t is a view of, or a new one.
func registerTensor(t *tensor.Tensor, w *world, h *holders) int64 {
	h.Add(1)
	return register(owned[*placed]{&placed{t, whole, h}, w})
}

// letGo frees the storage with its last handle, once no operation uses it any more. Go's garbage collector would free
// it too, but it does not see how much memory lies outside of its heap, and would come late. Where an operation still
// uses the storage it reports true, and calls freed when that has ended.
func (p *placed) letGo(freed func()) (used bool) {
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

// remains is what is left of a tensor whose World is closed: its memory, which NumPy may still look at.
type remains struct{ *placed }

func remainsOf(p *placed) remains {
	p.Storage().Forget() // what was pending will not happen, and holds on to the World
	return remains{p}
}

func tensorOf(handle int64) (owned[*placed], error) {
	return ownedBy[*placed](handle, "tensor")
}

// closeOwner forgets a World or machine and all that belongs to it, but for the memory of tensors that Python still has.
func closeOwner(handle int64) {
	w := forget(handle)
	table.Lock()
	defer table.Unlock()
	for h, object := range table.objects {
		m, ok := object.(interface{ belongsTo(w any) bool })
		if !ok || !m.belongsTo(w) {
			continue
		}
		if t, ok := object.(owned[*placed]); ok && !t.object.holders.lent {
			table.objects[h] = remainsOf(t.object)
		} else {
			delete(table.objects, h)
		}
	}
}

func (o owned[T]) belongsTo(w any) bool { return w == any(o.world) }
