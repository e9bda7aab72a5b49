package torchemu

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// KeepOrder lets the World keep what its hosts and streams know of each other from now on, for those who look for
// operations that nothing orders.
func (w *World) KeepOrder() {
	if w.Lanes == nil {
		w.Lanes = &order.Lanes{}
	}
}

// Line is what the rank's host knows; nil when no order is kept.
func (r *Rank) Line() *order.Line {
	if r.line == nil && r.world.Lanes != nil {
		r.line = r.world.Lanes.NewLine()
	}
	return r.line
}

// Line is what is over on the stream, for what is put on it next: its host knows what it has been told to wait for, and
// all that the host knows when it issues something. It is nil when no order is kept.
func (s *Stream) Line() *order.Line {
	if s.line == nil && s.rank.world.Lanes != nil {
		s.line = s.rank.world.Lanes.NewLine()
	}
	return s.line
}

// step is the next moment of the stream: the host issues an operation.
func (s *Stream) step() order.Moment {
	line := s.Line()
	if line == nil {
		return order.Moment{}
	}
	line.Learn(s.rank.Line().Here())
	return line.Advance()
}

// Deed is an operation that the host puts on the stream now, for those who look for what nothing orders; nil when no order
// is kept.
func (s *Stream) Deed(name, place string) *tensor.Deed {
	if s.Line() == nil {
		return nil
	}
	at, here := s.step(), s.Here()
	return &tensor.Deed{Name: name, Place: place, Rank: s.rank.ID, At: at, Known: here.Clock(), Begin: here, End: here, Wait: s.missing(), Stream: s.Number + 1}
}

// Tick begins an operation that the host puts on the stream, of which nobody is told yet, and returns its moment: 0 when no
// order is kept. [Stream.DeedAt] tells of it.
func (s *Stream) Tick() int {
	if s.Line() == nil {
		return 0
	}
	at := s.step()
	s.rank.Ended(s.Here())
	return int(at.Tick)
}

// DeedAt is the operation that began at an earlier moment; nil when no order is kept.
func (s *Stream) DeedAt(tick int, name, place string) *tensor.Deed {
	if s.Line() == nil {
		return nil
	}
	var known order.Clock
	at := order.Moment{Lane: s.step().Lane, Tick: uint32(tick)}
	known.Set(at)
	end := order.NewPoint(known).Seal()
	return &tensor.Deed{Name: name, Place: place, Rank: s.rank.ID, At: at, Known: known, Begin: end, End: end, Wait: s.missing()}
}

// missing says what orders another stream after this one.
func (s *Stream) missing() string {
	return fmt.Sprintf(
		"nothing orders the two, of which one is on stream %d: the stream of the later one has to wait for that of the earlier one, by wait_stream() or by an event that is recorded after it",
		s.Number)
}

// Deed is what the host does itself, now; nil when no order is kept.
func (r *Rank) Deed(name, place string) *tensor.Deed {
	line := r.Line()
	if line == nil {
		return nil
	}
	at := line.Advance()
	here := line.Here()
	return &tensor.Deed{Name: name, Place: place, Rank: r.ID, At: at, Known: here.Clock(), Begin: here, End: here, Wait: "nothing orders the two: the host must wait for the first one"}
}

// Here is what is known on the stream now; nil when no order is kept.
func (s *Stream) Here() *order.Point {
	line := s.Line()
	if line == nil {
		return nil
	}
	line.Learn(s.rank.Line().Here())
	return line.Here()
}

// Known is what is known once the event has happened; nil when no order is kept, or nothing is known of it.
func (e *Event) Known() *order.Point {
	if e == nil {
		return nil
	}
	return e.known
}

// Knows says what is known once the event has happened.
func (e *Event) Knows(p *order.Point) { e.known = p }

// knownOf is what is known once all of several events have happened.
func knownOf(events []*Event) *order.Point {
	var all []*order.Point
	for _, e := range events {
		if e.Known() != nil && !slices.Contains(all, e.known) {
			all = append(all, e.known)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return order.NewPoint(nil, all...).Seal()
}

// Learns says that the rank's host has waited for an event, or seen that it has happened.
func (r *Rank) Learns(e *Event) {
	if line := r.Line(); line != nil {
		line.Learn(e.Known())
	}
}

// LearnsAll says that the host has waited for all that the rank has issued.
func (r *Rank) LearnsAll() {
	line := r.Line()
	if line == nil {
		return
	}
	for _, p := range r.ends {
		line.Learn(p)
	}
	r.ends = r.ends[:0]
}

// Ended notes what is known at the end of an operation that the rank has issued, for who waits for all of them. One that a later one of
// its line follows need not be kept.
func (r *Rank) Ended(p *order.Point) {
	r.ends = slices.DeleteFunc(r.ends, func(o *order.Point) bool { return o.Complete() && p.Clock().Covers(o.Clock()) })
	r.ends = append(r.ends, p)
}

// Hears says that the host knows all that any host knows.
func (r *Rank) Hears() {
	line := r.Line()
	if line == nil {
		return
	}
	for _, o := range r.world.ranks {
		if o != nil && o != r && o.line != nil {
			line.Learn(o.line.Here())
		}
	}
}

// HearsAll says that the host knows all that has been issued before, and waits for it: whoever starts a program anew may
// know of everything.
func (r *Rank) HearsAll() {
	r.Hears()
	line := r.Line()
	if line == nil {
		return
	}
	for _, o := range r.world.ranks {
		if o == nil {
			continue
		}
		for _, p := range o.ends {
			line.Learn(p)
		}
	}
}
