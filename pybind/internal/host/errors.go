package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// fault is an error for which Python is to raise the named exception.
type fault struct{ exception, text string }

func (f *fault) Error() string { return f.text }

// Raise makes an error of a given Python exception.
func Raise(exception, format string, args ...any) error {
	return &fault{exception, fmt.Sprintf(format, args...)}
}

// failure is how an error crosses to Python: as JSON.
type failure struct {
	Exception string                  `json:"exception"`
	Message   string                  `json:"message"`
	Details   string                  `json:"details,omitempty"` // what else the exception is to know
	Waits     []multiprocessing.Waits `json:"waits,omitempty"`   // of a deadlock
}

// Guard is deferred by every exported function: it turns a panic into an error and names the exception to raise.
func Guard(err *error) {
	if v := recover(); v != nil {
		*err = Raise("InternalError", "%v\n%s", v, debug.Stack())
	}
	if *err == nil {
		return
	}
	text, broken := json.Marshal(failureOf(*err))
	if broken != nil {
		panic(broken) // strings only
	}
	*err = errors.New(string(text))
}

// failureOf is an error with what else the exception is to know of it: the calls of a mismatch, or a deadlock's likely cause,
// which its message then leaves out.
func failureOf(err error) failure {
	f := failure{Exception: exceptionOf(err), Message: err.Error()}
	switch e := only(err).(type) {
	case *distributed.MismatchError:
		if e.Calls != nil {
			f.Details = e.Details()
		}
	case *multiprocessing.DeadlockError:
		f.Message, f.Details, f.Waits = e.Report(), e.Cause(), e.Waits()
	case *prim.DeadlockError:
		f.Message, f.Details = e.Report(), e.Cause
	}
	return f
}

// only is the one error that was joined with none.
func only(err error) error {
	for {
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) != 1 {
			return err
		}
		err = joined.Unwrap()[0]
	}
}

func exceptionOf(err error) string {
	var f *fault
	var deadlock *multiprocessing.DeadlockError
	var mismatch *distributed.MismatchError
	var late *distributed.TimeoutError
	var killed *torchemu.KilledError
	var stuck *prim.DeadlockError
	var races *prim.FindingsError
	var unordered *tensor.UnorderedError
	switch {
	case errors.As(err, &f):
		return f.exception
	case errors.As(err, &deadlock), errors.As(err, &stuck):
		return "DeadlockError"
	case errors.As(err, &races), errors.As(err, &unordered):
		return "RaceError"
	case errors.As(err, &mismatch):
		return "MismatchError"
	case errors.As(err, &late):
		if late.Aborts {
			return "WatchdogError"
		}
		return "DistBackendError"
	case errors.As(err, &killed):
		return "RankKilledError"
	case errors.Is(err, unix.ENOMEM):
		return "HostMemoryError"
	case errors.Is(err, fs.ErrNotExist):
		return "FileNotFoundError"
	case errors.Is(err, fs.ErrPermission):
		return "PermissionError"
	}
	return "ValueError"
}
