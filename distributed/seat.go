package distributed

import (
	"fmt"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
)

// seat is a member's place in a meeting: what its event waits for.
type seat struct {
	*meeting
	member int
}

// Needs lists the ranks that have yet to do something. It implements torchemu.Reason.
func (s seat) Needs() []int {
	if s.missing > 0 {
		return s.absent()
	}
	if e := s.Follows(); e != nil {
		return e.Reason().Needs()
	}
	if late, _ := s.heldUp(); late >= 0 {
		return []int{s.group.Members[late]}
	}
	return nil
}

// String describes what a member waits for. It implements torchemu.Reason.
func (s seat) String() string { return torchemu.Chain(s) }

// Follows is what has to end before on the member's own device, once all have joined. What holds up another member's
// is not followed, for that may in turn be held up by this one. It implements torchemu.Link.
func (s seat) Follows() *torchemu.Event {
	if s.missing > 0 {
		return nil
	}
	return torchemu.FirstUnfinished(s.parts[s.member].after)
}

// heldUp finds a member, of a collective that all have joined, whose device is not ready, and what it has to end first;
// -1 when all are.
func (s seat) heldUp() (member int, before *torchemu.Event) {
	for i := range s.parts {
		if e := torchemu.FirstUnfinished(s.parts[i].after); e != nil {
			return i, e
		}
	}
	return -1, nil
}

// Alone describes the collective itself, and what it lacks. It implements torchemu.Link.
func (s seat) Alone() string {
	text := fmt.Sprintf("%v (collective #%d of group %s)", s.call, s.seq, s.group.Name)
	text += at(s.group.backend.Sites.Text(s.parts[s.member].site))
	if s.missing > 0 {
		late := s.absent()
		return fmt.Sprintf("%s: %v %s not joined it", text, late, late.Verb("has", "have"))
	}
	if s.Follows() != nil {
		return text
	}
	switch late, before := s.heldUp(); {
	case before != nil:
		text += stillIn(s.group.Members[late], before)
	case s.run != nil:
		text += fmt.Sprintf(", whose kernel %q%s", s.record.Algorithm, s.run.Standing(s.member).On)
	}
	return text
}

// stillIn says what keeps a rank's device from beginning an operation.
func stillIn(rank int, before *torchemu.Event) string {
	what := torchemu.Origin(before.Reason())
	if o, ok := what.(multiprocessing.Operation); ok {
		return fmt.Sprintf(": rank %d is still in %s", rank, o.Name())
	}
	return fmt.Sprintf(": rank %d is still in %v", rank, what)
}

// HoldsHost is whether the member's host waits for the collective in any case. It implements torchemu.Holder.
func (s seat) HoldsHost() bool { return s.group.HoldsHosts }

// Name is the collective in a word or two. It implements multiprocessing.Operation, as the others do.
func (s seat) Name() string {
	return fmt.Sprintf("%s #%d of group %s", s.call.name, s.seq, s.group.Name)
}

// Habit is nothing: the name says it.
func (s seat) Habit() (none multiprocessing.Habit) { return }

// Missing is what the absent have not done.
func (s seat) Missing() string {
	if s.missing == 0 {
		return ""
	}
	return "calling " + s.Name()
}

// AnyOf is false: all are needed.
func (s seat) AnyOf() bool { return false }

// Suspect is what is probably wrong in a kernel.
func (s seat) Suspect() string {
	if s.run == nil {
		return ""
	}
	return s.run.Standing(s.member).Cause
}

// absent lists the ranks that have not joined.
func (m *meeting) absent() torchemu.Ranks {
	var ranks torchemu.Ranks
	for i := range m.parts {
		if m.parts[i].work == nil {
			ranks = append(ranks, m.group.Members[i])
		}
	}
	return ranks
}
