package tensor

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/order"
)

// Deed is an operation of a rank as those see it who look for operations that nothing orders.
type Deed struct {
	Name   string
	Place  string // in the program; "" when it is not known
	Rank   int
	At     order.Moment
	Known  order.Clock  // what was over for it, as far as its rank knew; it must not be changed
	Begin  *order.Point // the same, and what becomes known later
	End    *order.Point // what is known when it is over
	Wait   string       // what makes others come after it
	Stream int          // on which it is, by its number plus one; 0 for none, or one that is told of late
	Parts  *Parts       // of a device program's; nil for others
}

// Parts are moments of a device program, which others may come after before all of it is over, as signals let them.
type Parts struct {
	Among  any         // whoever looks for conflicts among the deeds that have the same
	Over   order.Clock // the moments at which the program has done the deed
	Report func(error) // takes a conflict that is known to be one only later
}

// after says whether the deed comes after another one, for what is known.
func (d *Deed) after(o *Deed) bool { return d == o || d.Known.Knows(o.At) }

// among says whether somebody else looks for conflicts of two deeds.
func (d *Deed) among(o *Deed) bool {
	return d.Parts != nil && o.Parts != nil && d.Parts.Among == o.Parts.Among
}

// touch is a deed's use of bytes of a storage.
type touch struct {
	*Deed
	at     region
	access Access
}

// mostTouches bounds what a storage remembers of parts that are used one by one. Then the first are forgotten that a later
// deed comes after.
const mostTouches = 512

// Touch notes that a deed uses the tensor's elements. It is an error when there is another one of the same rank that uses
// some of them, one of the two writes, and nothing orders them.
func (t *Tensor) Touch(a Access, d *Deed) error {
	t = t.Whole()
	return t.storage.touched(touch{d, t.region(), a}, d.Known)
}

// TouchBytes is Touch for bytes of the storage from one on up to another one.
func (s *Storage) TouchBytes(from, to int, a Access, d *Deed) error {
	return s.TouchPart(from, to, a, d, d.Known)
}

// Expect says that a device program is under way whose touches are still to come: until done is called what is touched now
// makes up for nothing that was touched before.
func (s *Storage) Expect() (done func()) {
	if s.whole != nil {
		return s.whole.Expect()
	}
	s.expected++
	return func() { s.expected-- }
}

// Within says that the storage is a part of another one, from a byte on: what deeds do with it they do with that.
func (s *Storage) Within(whole *Storage, at int) { s.whole, s.at = whole, at }

// Whole is the tensor as a view of the storage that its own is a part of; itself where that is none.
func (t *Tensor) Whole() *Tensor {
	s, l, size := t.storage, t.layout, t.dtype.Size()
	switch {
	case s.whole == nil:
		return t
	case s.at%size != 0:
		return &Tensor{dtype: dtype.U8, layout: Layout{Shape: []int{l.end() * size}, Strides: []int{1}, Offset: s.at}, storage: s.whole}
	}
	l.Offset += s.at / size
	return &Tensor{dtype: t.dtype, layout: l, storage: s.whole}
}

// TouchPart is TouchBytes for a moment of a device program at which more may be known than when the deed began.
func (s *Storage) TouchPart(from, to int, a Access, d *Deed, known order.Clock) error {
	if s.whole != nil {
		return s.whole.TouchPart(s.at+from, s.at+to, a, d, known)
	}
	return s.touched(touch{d, region{from: from, to: to}, a}, known)
}

func (s *Storage) touched(next touch, known order.Clock) error {
	var first *touch
	s.touches = slices.DeleteFunc(s.touches, func(o touch) bool {
		if !next.at.overlaps(o.at) {
			return false
		}
		if first == nil && next.conflicts(o) && !known.Knows(o.At) {
			first = &o
		}
		return s.expected == 0 && next.replaces(o)
	})
	if n := len(s.touches); n > 0 && s.touches[n-1].Deed == next.Deed && s.touches[n-1].access == next.access {
		if both, ok := s.touches[n-1].at.joined(next.at); ok {
			next.at, s.touches = both, s.touches[:n-1]
		}
	}
	if len(s.touches) == mostTouches {
		s.touches = slices.DeleteFunc(s.touches, func(o touch) bool { return o.Rank != next.Rank || next.after(o.Deed) })
	}
	s.touches = append(s.touches, next)
	if first == nil {
		return s.usedAgain(next)
	}
	return (&UnorderedError{*first, next, false}).certain()
}

// conflicts says whether two uses of the same bytes matter to each other and are in no order.
func (u touch) conflicts(o touch) bool {
	switch {
	case u.Rank != o.Rank, u.access == Read && o.access == Read, u.among(o.Deed):
		return false
	}
	return !u.after(o.Deed) && !o.after(u.Deed)
}

// replaces says whether an earlier use need not be remembered any more: whoever comes after this one comes after it.
func (u touch) replaces(o touch) bool {
	return u.Rank == o.Rank && (u.access == Write || o.access == Read) && u.at.covers(o.at) && u.after(o.Deed)
}

// Written calls yield for the ends of a rank's deeds that have written some of the tensor's elements and still matter.
func (t *Tensor) Written(rank int, yield func(end *order.Point)) {
	t = t.Whole()
	at := t.region()
	for _, u := range t.storage.touches {
		if u.Rank == rank && u.access == Write && at.overlaps(u.at) {
			yield(u.End)
		}
	}
}

// UnorderedError says that nothing orders two uses of the same bytes.
type UnorderedError struct {
	first, second touch
	again         bool // of memory that was given back between the two
}

// certain returns the error if nothing will become known that orders the two. Where one is a program's, the other one may
// come after what that had done by then; if this is not known yet, the error is reported later.
func (e *UnorderedError) certain() error {
	program, other := e.first.Deed, e.second.Deed
	if program.Parts == nil {
		program, other = other, program
	}
	switch {
	case program.Parts == nil || other.Parts != nil:
		return e
	case other.Begin.Complete():
		if other.Begin.Clock().Covers(program.Parts.Over) {
			return nil
		}
		return e
	}
	over := program.Parts.Over.Clone()
	other.Begin.When(func() {
		if !other.Begin.Clock().Covers(over) {
			program.Parts.Report(e)
		}
	})
	return nil
}

func (e *UnorderedError) Error() string {
	kind := "unordered read"
	if e.first.access == Write && e.second.access == Write {
		kind = "unordered writes"
	}
	what, missing := "a tensor of rank %d is used while an operation on it is under way", e.first.Wait
	if e.again {
		what, missing = "memory that rank %d has freed is used again while an operation on it is under way", e.first.missing(e.second)
	}
	return fmt.Sprintf("%s: %s\n  %v\n  %v\n  missing: %s", kind, fmt.Sprintf(what, e.first.Rank), e.first, e.second, missing)
}

// String is the use in a line of a report.
func (u touch) String() string {
	verb := "reads"
	if u.access == Write {
		verb = "writes"
	}
	place := ""
	if u.Place != "" {
		place = " at " + u.Place
	}
	return fmt.Sprintf("%s%s %s bytes %d to %d", u.Name, place, verb, u.at.from, u.at.to)
}
