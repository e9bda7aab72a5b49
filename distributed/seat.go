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

// Needs lists the ranks that have yet to do something. It implements torchemu.Reason. What the members' parts follow may
// follow this meeting in turn: they called several collectives, and not in the same order. Then it is the other members
// that are held up, or those that hold this one up.
func (s seat) Needs() []int {
	if s.missing > 0 {
		return s.absent()
	}
	q := &s.group.backend.inquiry
	if s.asked {
		q.circular = true
		return nil
	}
	s.asked, q.depth = true, q.depth+1
	needs := s.followed()
	s.asked, q.depth = false, q.depth-1
	if held := s.held(); q.circular && len(held) > 0 {
		needs = held
	}
	q.circular = q.circular && q.depth > 0
	return needs
}

// inquiry is how far meetings have asked each other whom they need.
type inquiry struct {
	depth    int  // meetings that have asked
	circular bool // one was asked by those that it asked
}

// followed lists whom the first thing needs that a part follows.
func (m *meeting) followed() []int {
	for _, p := range m.parts {
		for _, e := range torchemu.Unfinished(p.after...) {
			return e.Reason().Needs()
		}
	}
	return nil
}

// held lists the other members whose parts follow something that has not ended.
func (s seat) held() []int {
	var ranks []int
	for i, p := range s.parts {
		if i != s.member && len(torchemu.Unfinished(p.after...)) > 0 {
			ranks = append(ranks, s.group.Members[i])
		}
	}
	return ranks
}

// String describes what a member waits for. It implements torchemu.Reason.
func (s seat) String() string {
	text := fmt.Sprintf("%v (collective #%d of group %s)", s.call, s.seq, s.group.Name)
	text += at(s.group.backend.Sites.Text(s.parts[s.member].site))
	if s.missing > 0 {
		late := s.absent()
		return fmt.Sprintf("%s: %v %s not joined it", text, late, late.Verb("has", "have"))
	}
	for _, e := range torchemu.Unfinished(s.parts[s.member].after...) {
		return text + ", which follows " + e.Reason().String()
	}
	if s.run != nil {
		text += fmt.Sprintf(", whose kernel %q%s", s.record.Algorithm, s.run.Standing(s.member).On)
	}
	return text
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
