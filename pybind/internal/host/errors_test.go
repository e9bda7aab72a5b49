package host_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
)

// guarded is a door.
func guarded(f func() error) (err error) {
	defer host.Guard(&err)
	return f()
}

func TestErrorsNameExceptions(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("anything"), "ValueError"},
		{host.Raise("KeyError", "no %d", 7), "KeyError"},
		{fmt.Errorf("around: %w", host.Raise("KeyError", "no")), "KeyError"},
		{&multiprocessing.DeadlockError{}, "DeadlockError"},
		{&prim.DeadlockError{}, "DeadlockError"},
		{&prim.FindingsError{}, "RaceError"},
		{&distributed.MismatchError{}, "MismatchError"},
		{&distributed.TimeoutError{}, "DistBackendError"},
		{&distributed.TimeoutError{Aborts: true}, "WatchdogError"},
		{&torchemu.KilledError{}, "RankKilledError"},
		{fmt.Errorf("mmap: %w", unix.ENOMEM), "HostMemoryError"},
		{&fs.PathError{Op: "open", Path: "x", Err: os.ErrNotExist}, "FileNotFoundError"},
		{&fs.PathError{Op: "open", Path: "x", Err: os.ErrPermission}, "PermissionError"},
	} {
		if got := exceptionOf(guarded(func() error { return c.err })); got != c.want {
			t.Errorf("%T is a %s, want %s", c.err, got, c.want)
		}
	}
	if err := guarded(func() error { return nil }); err != nil {
		t.Errorf("no error became %v", err)
	}
}

func TestDeadlocksCrossInTwoParts(t *testing.T) {
	stuck := &prim.DeadlockError{Cause: "nobody sends"}
	for _, err := range []error{stuck, errors.Join(stuck, nil)} {
		var got struct{ Exception, Message, Details string }
		if e := json.Unmarshal([]byte(guarded(func() error { return err }).Error()), &got); e != nil {
			t.Fatal(e)
		}
		if got.Exception != "DeadlockError" || got.Message != stuck.Report() || got.Details != stuck.Cause {
			t.Errorf("%T became %+v", err, got)
		}
	}
	both := guarded(func() error { return errors.Join(stuck, errors.New("another")) })
	if text := both.Error(); !strings.Contains(text, "nobody sends") || !strings.Contains(text, "another") {
		t.Errorf("one of two errors is lost: %s", text)
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	err := guarded(func() error { panic("at the disco") })
	if exceptionOf(err) != "InternalError" || !strings.Contains(err.Error(), "at the disco") || !strings.Contains(err.Error(), "errors_test.go") {
		t.Errorf("got %v, want an InternalError with the text and the stack", err)
	}
	err = guarded(func() error { var none []int; return host.Raise("KeyError", "%d", none[3]) })
	if exceptionOf(err) != "InternalError" || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("got %v, want an InternalError", err)
	}
}

// Python cannot read a text that is no UTF-8.
func TestMessagesAreUTF8(t *testing.T) {
	err := guarded(func() error { return host.Raise("ValueError", "a\xffb") })
	if !utf8.ValidString(err.Error()) || !strings.Contains(err.Error(), `a\ufffdb`) {
		t.Errorf("got %q", err)
	}
}
