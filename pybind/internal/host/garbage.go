package host

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Go's garbage collector runs when the heap is five times what was in use, not twice: what is on the heap is mostly small
// beside the tensors, which are not. But a heap that is large is to grow by so many bytes at most, or to twice its size.
const (
	seldom = 400 // percent that the heap grows by
	often  = 100
	growth = 128 << 20
)

// collectSeldom tells it so, once, unless GOGC says otherwise.
var collectSeldom = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(seldom)
		runtime.SetFinalizer(new(sentinel), (*sentinel).collected)
	}
})

// A sentinel is garbage at once, so that each collection tells of itself. It has a pointer: objects without one may share
// their memory with others, and live as long.
type sentinel struct{ _ *sentinel }

// collected says how much the heap may grow until the next collection.
func (s *sentinel) collected() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if used := live[0].Value.Uint64(); used > 0 {
		debug.SetGCPercent(int(min(max(growth*100/used, often), seldom)))
	}
	runtime.SetFinalizer(s, (*sentinel).collected)
}
