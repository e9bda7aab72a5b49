package tensor

import (
	"iter"
	"slices"
)

// Access is what an operation does with a tensor's elements.
type Access bool

// One that only reads elements must follow those that write them; one that writes them all that use them.
const (
	Read  Access = false
	Write Access = true
)

// Pending is an operation in flight that uses a storage.
type Pending interface {
	Done() bool
}

// use is an operation in flight, and what it uses.
type use struct {
	by     Pending
	at     region
	access Access
}

// Pend records that an operation in flight uses the tensor's elements. It follows those before it that it must follow:
// where it overwrites all that one of these uses, that one need not be remembered any more.
func (t *Tensor) Pend(p Pending, a Access) {
	s, next := t.storage, use{p, t.region(), a}
	if n := len(s.uses); n > 0 && s.uses[n-1].by == p && s.uses[n-1].access == a {
		if both, ok := s.uses[n-1].at.joined(next.at); ok { // an operation's blocks, one after another
			next.at, s.uses = both, s.uses[:n-1]
		}
	}
	if a == Write {
		s.forget(next.at, nil)
	}
	s.remember(next)
}

// PendBeside is Pend for an operation that writes the elements and does not follow all that use them, as a device program
// beside others: those that it does not follow are remembered.
func (t *Tensor) PendBeside(p Pending, follows func(Pending) bool) {
	next := use{p, t.region(), Write}
	t.storage.forget(next.at, follows)
	t.storage.remember(next)
}

func (s *Storage) remember(next use) {
	if len(s.uses) == cap(s.uses) { // not each time: there may be thousands
		s.uses = slices.DeleteFunc(s.uses, func(u use) bool { return u.by.Done() })
	}
	s.uses = append(s.uses, next)
}

// forget drops what is covered by a region, of operations that are followed; nil: of all. There may be thousands that
// are not covered.
func (s *Storage) forget(covered region, follows func(Pending) bool) {
	kept := 0
	for i := range s.uses {
		if u := &s.uses[i]; !covered.covers(u.at) || follows != nil && !follows(u.by) {
			if kept != i {
				s.uses[kept] = *u
			}
			kept++
		}
	}
	clear(s.uses[kept:])
	s.uses = s.uses[:kept]
}

// Pending are the operations in flight, the first that was recorded first, which one must follow that uses the tensor's
// elements: those that write some of them, and, for one that writes them, those that read some.
func (t *Tensor) Pending(a Access) iter.Seq[Pending] {
	return func(yield func(Pending) bool) {
		if len(t.storage.uses) == 0 {
			return
		}
		at, uses := t.region(), t.storage.uses
		for i := range uses {
			u := &uses[i] // a copy of each would cost more than the question
			if (a == Write || u.access == Write) && at.overlaps(u.at) && !u.by.Done() && !yield(u.by) {
				return
			}
		}
	}
}

// Pending are all operations in flight that use the storage.
func (s *Storage) Pending() iter.Seq[Pending] {
	return func(yield func(Pending) bool) {
		for _, u := range s.uses {
			if !u.by.Done() && !yield(u.by) {
				return
			}
		}
	}
}

// InUse says whether an operation in flight uses the storage.
func (s *Storage) InUse() bool {
	return slices.ContainsFunc(s.uses, func(u use) bool { return !u.by.Done() })
}

// Overwritten says whether all that is recorded is one operation, which writes all bytes.
func (s *Storage) Overwritten() bool {
	return len(s.uses) == 1 && s.uses[0].access == Write && s.uses[0].at == (region{to: s.n})
}

// Forget forgets the operations in flight, which will never be done.
func (s *Storage) Forget() { s.uses, s.touches = nil, nil }
