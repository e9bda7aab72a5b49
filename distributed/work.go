package distributed

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Work is one rank's part in an operation between ranks.
type Work struct {
	*torchemu.Event
	Record *Record // what was run; nil until every rank has joined
	Seq    uint64  // number of the collective in its group; 0 for a message

	start    sim.Time
	source   int      // of a receive: the sender's group rank
	deadline sim.Time // when its group's timeout fails it; 0 for never
	letter   *letter  // of a message
	meeting  *meeting // of a collective
}

// Withdraw ends a message with an error, unless it has met its other side; nobody will meet it any more then.
func (w *Work) Withdraw(err error) {
	if w.letter != nil && w.letter.withdraw() {
		w.Fail(err, w.letter.group.backend.World.Engine.Now())
	}
}

// Expire ends an operation that has not ended with an error, for all that have a part in it.
func (w *Work) Expire(err error, now sim.Time) {
	if !w.Done() {
		w.expire(err, now)
	}
}

// Duration is how long the rank's device was in the operation. It means something once the work is done.
func (w *Work) Duration() sim.Time { return w.At() - w.start }

// Began is when the rank's device reached the operation; false while it has not: what comes before it has not ended.
func (w *Work) Began() (at sim.Time, reached bool) {
	issued, after := w.follows()
	if len(torchemu.Unfinished(after...)) > 0 {
		return 0, false
	}
	for _, e := range after {
		issued = max(issued, e.At())
	}
	return issued, true
}

// follows is when the host issued the operation, and what had to end before the device could start it.
func (w *Work) follows() (issued sim.Time, after []*torchemu.Event) {
	if w.letter != nil {
		return w.letter.reached, w.letter.after
	}
	if w.meeting == nil { // of a single worker's shards
		return w.start, nil
	}
	for i := range w.meeting.parts {
		if p := &w.meeting.parts[i]; p.work == w {
			return p.ready, p.after
		}
	}
	return 0, nil
}

// MismatchError says that two ranks of a group met in operations that do not fit together. Rank came first.
type MismatchError struct {
	What            string // "a message"; "" for collective number Seq of the group
	Group           string
	Seq             uint64
	Rank, Other     int
	Call, OtherCall string
	Site, OtherSite string        // "" when not known
	Differ          string        // what they differ in: "the dtype"
	Right           string        // what would be right, in a sentence
	Calls           []Fingerprint // of Rank and Other; nil for messages
}

func (e *MismatchError) Error() string {
	what := e.What
	if what == "" {
		what = fmt.Sprintf("collective #%d of group %s", e.Seq, e.Group)
	}
	who := fmt.Sprintf("ranks %d and %d disagree", min(e.Rank, e.Other), max(e.Rank, e.Other))
	if e.Rank == e.Other { // of a rank's block for itself
		who = fmt.Sprintf("rank %d disagrees with itself", e.Rank)
	}
	return fmt.Sprintf("%s on %s in %s:\n  rank %d calls %s%s\n  rank %d calls %s%s\n%s", who, e.Differ, what,
		e.Rank, e.Call, at(e.Site), e.Other, e.OtherCall, at(e.OtherSite), e.Right)
}

// at puts a known place behind what happens there.
func at(site string) string {
	if site == "" {
		return ""
	}
	return " at " + site
}
