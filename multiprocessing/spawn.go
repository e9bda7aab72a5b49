package multiprocessing

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"

	"github.com/torchemu/torchemu/torchemu"
)

// ErrUnwound is what a parked rank's Wait returns when another rank has failed: the rank is to return, so that its
// deferred calls run. It is never reported as a cause.
var ErrUnwound = errors.New("this rank was unwound because another rank failed")

// Process is a rank of a Go program, inside [Spawn].
type Process struct {
	*torchemu.Rank

	scheduler *Scheduler
	yield     func(struct{}) bool
	resume    func() (struct{}, bool)
	stop      func()
	err       error
	failed    error // thrown in by the scheduler: what Wait is to return
}

// Wait parks the rank until the event is done, while others run, and returns the operation's error; a
// [*torchemu.KilledError] when the rank is killed before.
func (p *Process) Wait(e *torchemu.Event) error {
	if err := p.Alive(); err != nil {
		return err
	}
	if err := p.Overdue(); err != nil {
		return err
	}
	wait := p.Parks(e)
	if p.failed == nil && p.scheduler.Park(p.ID, e) {
		if !p.yield(struct{}{}) {
			return ErrUnwound
		}
		e = p.scheduler.Outcome(p.ID)
	}
	if p.failed != nil {
		return p.failed
	}
	p.Resumes(wait, e.At())
	return e.Err()
}

// Failure is a rank that failed by itself.
type Failure struct {
	Rank int
	Err  error
}

// SpawnError carries the ranks that failed by themselves, in rank order; ranks that were unwound because of them are
// not in it.
type SpawnError struct{ Failures []Failure }

// Error says of each rank why it failed, once for all that failed for the same reason.
func (e *SpawnError) Error() string {
	ranks := map[string]torchemu.Ranks{}
	var reasons []string
	for _, f := range e.Failures {
		reason := f.Err.Error()
		if ranks[reason] == nil {
			reasons = append(reasons, reason)
		}
		ranks[reason] = append(ranks[reason], f.Rank)
	}
	lines := make([]string, len(reasons))
	for i, reason := range reasons {
		lines[i] = fmt.Sprintf("%v: %s", ranks[reason], reason)
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.Is and errors.As every rank's error.
func (e *SpawnError) Unwrap() []error {
	errs := make([]error, len(e.Failures))
	for i, f := range e.Failures {
		errs[i] = f.Err
	}
	return errs
}

// Spawn runs fn once for each rank 0 to nprocs-1, on this goroutine's thread, switching between ranks when one
// waits, and returns when all have ended and what they issued is done. If ranks fail (by error or panic) the others
// are unwound and a [*SpawnError] is returned. A rank that a fault kills has not failed.
func Spawn(w *torchemu.World, nprocs int, fn func(p *Process) error) error {
	if nprocs < 0 {
		return fmt.Errorf("%d ranks: there must be at least 0", nprocs)
	}
	s := NewScheduler(w, nprocs, nil)
	procs := make([]*Process, nprocs)
	for i := range procs {
		r, err := w.Rank(i)
		if err != nil {
			return err
		}
		procs[i] = start(&Process{Rank: r, scheduler: s}, fn)
	}
	err := drive(s, procs)
	for _, p := range procs {
		p.stop()
	}
	if failures := failures(procs); len(failures) > 0 {
		for _, p := range procs {
			p.Abandon(ErrUnwound)
		}
		return &SpawnError{Failures: failures}
	}
	return err
}

// start makes the rank's coroutine; it first runs when it is resumed.
func start(p *Process, fn func(p *Process) error) *Process {
	p.resume, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		p.err = p.body(fn)
	})
	return p
}

// body runs the rank's program, then waits for what it issued, as a process does that destroys its groups on exit.
func (p *Process) body(fn func(p *Process) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	err = fn(p)
	if dead := p.Alive(); dead != nil {
		return dead
	}
	if err != nil {
		return err
	}
	p.scheduler.Return(p.ID)
	for e := p.Rest(); e != nil; e = p.Rest() {
		if err := p.Wait(e); err != nil {
			return err
		}
	}
	return nil
}

// drive runs ranks until all have ended or one has failed and no other can run without time passing.
func drive(s *Scheduler, procs []*Process) error {
	failed := false
	for {
		if failed && !s.Runnable() {
			return nil
		}
		rank, verdict, err := s.Next()
		if err != nil {
			return throw(s, procs, err)
		}
		switch verdict {
		case Idle:
			return nil
		case Run:
			if _, parked := procs[rank].resume(); !parked {
				s.Exit(rank)
				failed = failed || isFailure(procs[rank].err)
			}
		}
	}
}

// throw makes every parked rank fail with err, at the place where it waits.
func throw(s *Scheduler, procs []*Process, err error) error {
	for _, r := range s.Parked() {
		procs[r].failed = err
		procs[r].resume()
	}
	return err
}

func failures(procs []*Process) []Failure {
	var list []Failure
	for _, p := range procs {
		if isFailure(p.err) {
			list = append(list, Failure{Rank: p.ID, Err: p.err})
		}
	}
	return list
}

// isFailure says whether a rank has failed by itself.
func isFailure(err error) bool {
	var killed *torchemu.KilledError
	return err != nil && !errors.Is(err, ErrUnwound) && !errors.As(err, &killed)
}
