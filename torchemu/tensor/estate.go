package tensor

import (
	"fmt"
	"slices"
)

// Memory that a tensor has given back is the next one's that is made on the same stream. It knows nothing of what other
// streams still do with it.

// estate is what a storage has of one before it, and what others have of it.
type estate struct {
	from   *Storage
	waited []int      // streams whose operations were over before the memory was given out again
	first  *touch     // the storage's own first use
	heirs  []*Storage // of its memory
}

// Inherit says that the storage has memory of one that has been given back, once operations on some streams, by their
// numbers, were over.
func (s *Storage) Inherit(from *Storage, waited []int) {
	if from.estate == nil {
		from.estate = &estate{}
	}
	from.estate.heirs = append(from.estate.heirs, s)
	if s.estate == nil {
		s.estate = &estate{}
	}
	s.estate.from, s.estate.waited = from, waited
}

// usedAgain looks for operations on memory that was given back while they may be under way, and the first on what has it now.
func (s *Storage) usedAgain(next touch) error {
	e := s.estate
	if e == nil {
		return nil
	}
	if e.from != nil && e.first == nil {
		e.first = &next
		for _, before := range e.from.touches {
			if e.mayMeet(before, next) {
				return (&UnorderedError{before, next, true}).certain()
			}
		}
	}
	for _, heir := range e.heirs {
		if first := heir.estate.first; first != nil && heir.estate.mayMeet(next, *first) {
			return (&UnorderedError{next, *first, true}).certain()
		}
	}
	return nil
}

// mayMeet says whether an operation on the memory that was given back may be under way at the first on what has it then.
func (e *estate) mayMeet(before, first touch) bool {
	return before.Rank == first.Rank && before.Stream > 0 && first.Stream > 0 && !slices.Contains(e.waited, before.Stream-1) && !first.after(before.Deed)
}

// missing says what orders a stream that gets memory again after one that may still use it.
func (u touch) missing(first touch) string {
	return fmt.Sprintf("the tensor was freed while stream %d may still use it, and its memory is that of the next one on stream %d: "+
		"record_stream() is missing before that, or stream %d has to wait for stream %d", u.Stream-1, first.Stream-1, first.Stream-1, u.Stream-1)
}
