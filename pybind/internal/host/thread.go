package host

// static __thread char here;
//
// static void *thread(void) { return &here; }
import "C"

import (
	"os"
	"runtime"
)

// callingThread identifies the system thread that has called into Go, among those that live. It is the address of a
// thread's own variable, for to ask the kernel takes as long as all else that a small call does.
func callingThread() uintptr { return uintptr(C.thread()) }

// mostProcessors bounds how many of its processors Go is to have for threads: its scheduler and its collector look after
// each of them.
const mostProcessors = 32

// mostThreads is more than a system has.
const mostThreads = 1 << 22

// ExpectThreads lets so many threads, which take turns, call into Go one after another without a wait. A thread keeps one
// of Go's processors when it returns, until the runtime takes it back, which may be 10 ms later; a thread that finds none
// waits for that. Where the user has said how many there are to be, that many there are.
func ExpectThreads(count int) error {
	if count < 1 || count > mostThreads {
		return Raise("ValueError", "%d threads: there are 1 to %d", count, mostThreads)
	}
	if os.Getenv("GOMAXPROCS") != "" {
		return nil
	}
	if processors := min(count+runtime.NumCPU(), mostProcessors); processors > runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(processors)
	}
	return nil
}
