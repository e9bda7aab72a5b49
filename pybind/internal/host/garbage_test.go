package host

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// percent is how much the heap may grow, in percent, after a collection that leaves so many bytes more than there are.
func percent(t *testing.T, bytes, expected int) {
	t.Helper()
	kept := make([]byte, bytes)
	got := 0
	for range 500 { // the finalizer runs on a goroutine of its own, and misses collections meanwhile
		runtime.GC()
		got = debug.SetGCPercent(seldom)
		debug.SetGCPercent(got)
		if got == expected {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got != expected {
		t.Errorf("with %d MiB in use the heap may grow by %d %%, not by %d", bytes>>20, got, expected)
	}
	runtime.KeepAlive(kept)
}

func TestALargeHeapGrowsByLess(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC decides")
	}
	collectSeldom()
	percent(t, 1<<20, seldom)
	percent(t, 200<<20, often)
	percent(t, 1<<20, seldom)
}
