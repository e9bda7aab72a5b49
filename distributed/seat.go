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
	for _, p := range s.parts {
		for _, e := range torchemu.Unfinished(p.after...) {
			return e.Reason().Needs()
		}
	}
	return nil
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
