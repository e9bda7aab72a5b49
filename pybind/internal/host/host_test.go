package host_test

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// exceptionOf is the exception that an error names.
func exceptionOf(err error) string {
	var crossed struct{ Exception string }
	if json.Unmarshal([]byte(err.Error()), &crossed) != nil {
		return "no JSON: " + err.Error()
	}
	return crossed.Exception
}

func ok[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// openWorld opens a World, which is closed with the test.
func openWorld(t *testing.T) (int64, *host.World) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	topo := ok[*topology.Topology](t)(topology.Load("sips8"))
	handle := ok[int64](t)(host.OpenWorld(topo, ok[*ccl.Config](t)(ccl.LoadConfig(""))))
	t.Cleanup(func() { host.CloseOwner(handle) })
	return handle, ok[*host.World](t)(host.WorldOf(handle))
}

func newTensor(t *testing.T, w *host.World, shape ...int) int64 {
	t.Helper()
	return w.NewTensor(ok[*tensor.Tensor](t)(tensor.New(dtype.F32, shape...)))
}

func TestHandlesAreOfOneKind(t *testing.T) {
	_, w := openWorld(t)
	h := newTensor(t, w, 3)
	if _, err := host.TensorOf(h); err != nil {
		t.Error(err)
	}
	for what, find := range map[string]func(int64) error{
		"stream":   func(h int64) error { _, err := host.StreamOf(h); return err },
		"group":    func(h int64) error { _, err := host.GroupOf(h); return err },
		"world":    func(h int64) error { _, err := host.WorldOf(h); return err },
		"machine":  func(h int64) error { _, err := host.MachineOf(h); return err },
		"spawn":    func(h int64) error { _, err := host.SpawnOf(h); return err },
		"program":  func(h int64) error { _, err := host.ProgramOf(h); return err },
		"launch":   func(h int64) error { _, err := host.LaunchOf(h); return err },
		"window":   func(h int64) error { _, err := host.PartOf[*prim.Window](h, "window"); return err },
		"waitable": func(h int64) error { _, err := host.PendingOn(h); return err },
	} {
		for _, handle := range []int64{h, 0, -1, 1 << 62} {
			if what == "waitable" && handle == h {
				continue // a tensor is one
			}
			if find(handle) == nil {
				t.Errorf("handle %d of a tensor, or of nothing, was taken for a %s's", handle, what)
			}
		}
	}
}

// What belongs to a World goes with it, but for the memory of its own tensors: others may still look at that.
func TestClosingAWorld(t *testing.T) {
	handle, w := openWorld(t)
	r := ok[*torchemu.Rank](t)(w.Rank(0))
	own, stream := newTensor(t, w, 4), host.Own(w, r.Stream())
	lent := w.LendTensor(ok[*tensor.Tensor](t)(tensor.New(dtype.F32, 4)))
	machine := ok[int64](t)(host.MachineOfWorld(w, prim.Options{}))
	alone := ok[int64](t)(host.OpenMachine(w.Topology, 2, prim.Options{}))
	host.CloseOwner(handle)
	for what, h := range map[string]int64{"stream": stream, "lent tensor": lent, "machine": machine} {
		if host.Lookup(h) != nil {
			t.Errorf("the %s is still there", what)
		}
	}
	if _, err := host.TensorOf(own); err == nil || host.Lookup(own) == nil {
		t.Errorf("of a tensor whose World is closed there should be the memory only; %v", err)
	}
	if host.Release(own) || host.Lookup(own) != nil {
		t.Error("what is left of a tensor was not released")
	}
	if _, err := host.MachineOf(alone); err != nil {
		t.Errorf("a machine of its own was closed: %v", err)
	}
	host.CloseOwner(alone)
	if host.Lookup(alone) != nil {
		t.Error("the machine is still there")
	}
}

func TestWorldsBelongToTheirThread(t *testing.T) {
	handle, w := openWorld(t)
	own := newTensor(t, w, 4)
	done := make(chan string)
	go func() {
		runtime.LockOSThread() // of its own: the test's is locked, too
		defer runtime.UnlockOSThread()
		_, err := host.WorldOf(handle)
		switch {
		case err == nil:
			done <- "another thread may use the World"
		case host.Release(own):
			done <- "another thread looked at what is pending"
		default:
			done <- ""
		}
	}()
	if wrong := <-done; wrong != "" {
		t.Error(wrong)
	}
}

// The memory of a storage goes with its last handle.
func TestStoragesHaveHolders(t *testing.T) {
	_, w := openWorld(t)
	base := newTensor(t, w, 6)
	o := ok[host.Owned[*host.Placed]](t)(host.TensorOf(base))
	view := ok[int64](t)(host.NewView(o, dtype.F32, tensor.Layout{Shape: []int{2}, Offset: 4}))
	storage := o.Object.Storage()
	host.Release(base)
	if n := len(storage.Bytes()); n != 24 {
		t.Fatalf("the storage has %d bytes while there is a view of it, want 24", n)
	}
	host.Release(view)
	if host.Release(view) {
		t.Error("a handle was released twice")
	}
}

// Memory that is lent is in use as long as an operation is: Release says so, and Returned when it no longer is.
func TestLentMemoryIsReturned(t *testing.T) {
	_, w := openWorld(t)
	r := ok[*torchemu.Rank](t)(w.Rank(1))
	x := ok[*tensor.Tensor](t)(tensor.New(dtype.F32, 8))
	busy, idle := w.LendTensor(x), w.LendTensor(ok[*tensor.Tensor](t)(tensor.New(dtype.F32, 8)))
	e := torchemu.NewEvent(host.Signal{Text: "a test"})
	torchemu.Uses{Writes: []*tensor.Tensor{x}}.Pend(e)
	if host.Release(idle) || !host.Release(busy) {
		t.Fatal("only the tensor that an operation writes is in use")
	}
	if list := w.Returned(9); len(list) > 0 {
		t.Fatalf("%v was returned while the operation goes on", list)
	}
	e.Finish(r.Now() + sim.Nanosecond)
	if list := w.Returned(0); len(list) > 0 {
		t.Errorf("%v was returned where there is no room", list)
	}
	if list := w.Returned(9); len(list) != 1 || list[0] != busy {
		t.Errorf("returned %v, want [%d]", list, busy)
	}
	if list := w.Returned(9); len(list) > 0 {
		t.Errorf("%v was returned twice", list)
	}
}
