package distributed

import (
	"fmt"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
)

// Needs is the other side, while it is missing. It implements torchemu.Reason.
func (l *letter) Needs() []int {
	if e := torchemu.FirstUnfinished(l.after); e != nil {
		return e.Reason().Needs()
	}
	if l.other != nil {
		return []int{l.group.Members[l.other.owner()]}
	}
	if peer := l.peer(); peer != AnySource {
		return []int{l.group.Members[peer]}
	}
	var all []int
	for i, r := range l.group.Members {
		if i != l.to {
			all = append(all, r)
		}
	}
	return all
}

// HoldsHost is whether the host waits for the message in any case. It implements torchemu.Holder.
func (l *letter) HoldsHost() bool { return l.group.HoldsHosts }

// peer is the member on the other side, or AnySource.
func (l *letter) peer() int {
	if l.sending {
		return l.to
	}
	return l.from
}

// String describes the letter. It implements torchemu.Reason.
func (l *letter) String() string { return torchemu.Chain(l) }

// Alone describes the letter itself. It implements torchemu.Link.
func (l *letter) Alone() string {
	text := fmt.Sprintf("%s of %s (tag %d, group %s)",
		l.Name(), count(l.tensor.Numel(), l.tensor.DType()), l.tag, l.group.Name)
	text += at(l.group.backend.Sites.Text(l.site))
	if l.other != nil && l.Follows() == nil {
		if e := torchemu.FirstUnfinished(l.other.after); e != nil {
			return text + stillIn(l.group.Members[l.other.owner()], e)
		}
	}
	return text
}

// Follows is the first operation before it for which ranks have yet to do something. It implements torchemu.Link.
func (l *letter) Follows() *torchemu.Event {
	for _, e := range l.after {
		if !e.Done() && !takesItsTime(e.Reason()) {
			return e
		}
	}
	return nil
}

// takesItsTime says whether nobody has to do anything for an operation. Another letter always needs somebody: what that
// follows is not looked at, for there may be thousands in a row.
func takesItsTime(r torchemu.Reason) bool {
	if _, ok := r.(*letter); ok {
		return false
	}
	if f, ok := r.(torchemu.Follower); ok {
		if e := f.Follows(); e != nil {
			return takesItsTime(e.Reason())
		}
	}
	return len(r.Needs()) == 0
}

// Name is the letter in a few words. It implements multiprocessing.Operation, as the others do.
func (l *letter) Name() string {
	verb := "recv from"
	if l.sending {
		verb = "send to"
	}
	if l.peer() == AnySource {
		return verb + " any rank"
	}
	return fmt.Sprintf("%s rank %d", verb, l.group.Members[l.peer()])
}

// Habit says what the program did first, for the case that all ranks of a circle did the same.
func (l *letter) Habit() multiprocessing.Habit {
	if l.sending {
		return multiprocessing.Habit{Does: "sends", Instead: "receive"}
	}
	return multiprocessing.Habit{Does: "receives", Instead: "send"}
}

// Missing is what the other side has not done, if it has not.
func (l *letter) Missing() string {
	if l.other != nil {
		return ""
	}
	verb := "sending to"
	if l.sending {
		verb = "receiving from"
	}
	return fmt.Sprintf("%s rank %d (tag %d, group %s)", verb, l.group.Members[l.owner()], l.tag, l.group.Name)
}

// AnyOf is whether anybody may send.
func (l *letter) AnyOf() bool { return l.peer() == AnySource }

// Suspect finds the other side under another tag.
func (l *letter) Suspect() string {
	if l.sending {
		return ""
	}
	for _, send := range l.group.mail[l.to].sends {
		if send.tag != l.tag && (l.from == AnySource || l.from == send.from) {
			members := l.group.Members
			return fmt.Sprintf("rank %d sends to rank %d with tag %d, but rank %[2]d receives with tag %[4]d",
				members[send.from], members[l.to], send.tag, l.tag)
		}
	}
	return ""
}
