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
	Exception string `json:"exception"`
	Message   string `json:"message"`
	Details   string `json:"details,omitempty"` // what else the exception is to know
}

// Guard is deferred by every exported function: it turns a panic into an error and names the exception to raise.
func Guard(err *error) {
	if v := recover(); v != nil {
		*err = Raise("InternalError", "%v\n%s", v, debug.Stack())
	}
	if *err == nil {
		return
	}
	text, broken := json.Marshal(failure{exceptionOf(*err), (*err).Error(), details(*err)})
	if broken != nil {
		panic(broken) // strings only
	}
	*err = errors.New(string(text))
}

// details are what else the exception is to know of the error.
func details(err error) string {
	var mismatch *distributed.MismatchError
	if errors.As(err, &mismatch) && mismatch.Calls != nil {
		return mismatch.Details()
	}
	return ""
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
