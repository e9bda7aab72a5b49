package host

// static __thread char here;
//
// static void *thread(void) { return &here; }
import "C"

// callingThread identifies the system thread that has called into Go, among those that live. It is the address of a
// thread's own variable, for to ask the kernel takes as long as all else that a small call does.
func callingThread() uintptr { return uintptr(C.thread()) }
