package distributed

import (
	"fmt"
	"math"
	"slices"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// TimeoutError says that an operation lasted longer than its group allows.
type TimeoutError struct {
	Operation string // and what it lacked
	Limit     sim.Time
	Fault     string // that is the reason: "rank 2 was killed at 3ms"; "" for none
	Aborts    bool   // it was found by a watchdog that ends processes, as NCCL's does; gloo has none
}

func (e *TimeoutError) Error() string {
	text := fmt.Sprintf("Watchdog caught collective operation timeout: after %d ms, as long as its process group allows, "+
		"this had not ended: %s", e.Limit/sim.Millisecond, e.Operation)
	if e.Fault != "" {
		text += "; " + e.Fault
	}
	return text
}

// SetTimeout makes what a member issues from now on fail when it has not ended after so long, in simulated time; 0 is
// never. A member is not failed where nothing at all goes on any more: that is a deadlock, which others report.
func (g *ProcessGroup) SetTimeout(rank int, limit sim.Time) error {
	member, err := g.rankOf(rank)
	if err != nil {
		return err
	}
	if g.watchdogs == nil {
		g.watchdogs = make([]watchdog, g.Size())
	}
	w := &g.watchdogs[member]
	w.world, w.limit = g.backend.World, limit
	w.rank, err = w.world.Rank(rank)
	return err
}

// watch lets the member's watchdog, if it has one, look after an operation that was issued at the given time.
func (g *ProcessGroup) watch(member int, w *Work, issued sim.Time) {
	if g.watchdogs != nil && g.watchdogs[member].limit > 0 {
		g.watchdogs[member].add(w, issued)
	}
}

// watchdog ends the operations of one member that last too long. It leaves no trace of those that end in time: it wakes
// when the first of them would be due, and then goes on to those that there are now. It dies with its rank.
type watchdog struct {
	world  *torchemu.World
	rank   *torchemu.Rank
	limit  sim.Time
	guards []guarded // in the order of issue; those at the front have not ended
	wakes  sim.Time  // when it will look again; 0 for never
	alarm  sim.EventID
}

type guarded struct {
	*Work
	limit sim.Time
}

func (w *watchdog) add(work *Work, issued sim.Time) {
	if issued > math.MaxInt64-w.limit {
		return // no simulation lasts until then
	}
	work.deadline = issued + w.limit
	w.forget()
	w.guards = append(w.guards, guarded{work, w.limit})
	w.wakeAt(work.deadline)
}

// forget drops the operations at the front that have ended.
func (w *watchdog) forget() {
	ended := 0
	for ended < len(w.guards) && w.guards[ended].Done() {
		ended++
	}
	w.guards = slices.Delete(w.guards, 0, ended)
}

// wakeAt makes it look at a time, unless it will before.
func (w *watchdog) wakeAt(t sim.Time) {
	if w.wakes == 0 || t < w.wakes {
		w.sleep()
		w.wakes, w.alarm = t, w.world.Engine.Watch(t, lastOfAnInstant, w, 0)
	}
}

// sleep makes it look no more, until it is to again.
func (w *watchdog) sleep() {
	if w.wakes != 0 {
		w.world.Engine.Unwatch(w.alarm)
		w.wakes = 0
	}
}

// dismissed lets the watchdogs of a group go that is forgotten, so that nothing holds it until a deadline; false while
// they have something to watch.
func (g *ProcessGroup) dismissed() bool {
	watching := 0
	for i := range g.watchdogs {
		w := &g.watchdogs[i]
		w.forget()
		if len(w.guards) == 0 {
			w.sleep()
		}
		watching += len(w.guards)
	}
	return watching == 0
}

// lastOfAnInstant lets everything else happen first: what ends at its deadline is in time.
const lastOfAnInstant sim.Priority = 255

// Handle fails what is due. It implements sim.Handler.
func (w *watchdog) Handle(now sim.Time, _ uint64) {
	w.wakes = 0
	if w.world.Death(w.rank.ID) != "" {
		return
	}
	for _, g := range slices.Clone(w.guards) {
		if g.deadline <= now && !g.Done() {
			fault := w.world.Why(g.Event)
			w.rank.GiveUp(fault)
			late := &TimeoutError{g.Reason().String(), g.limit, fault, !g.holdsHost()}
			waited := w.rank.IsWaiting()
			g.expire(late, now)
			if fault == "" && late.Aborts && waited == w.rank.IsWaiting() {
				w.rank.Expire(late) // or its program has been told where it waits
			}
		}
	}
	w.forget()
	for _, g := range w.guards {
		if !g.Done() {
			w.wakeAt(g.deadline)
		}
	}
}

// holdsHost says whether the host waits for an operation in any case, as with gloo, which has no watchdog.
func (w *Work) holdsHost() bool {
	h, ok := w.Reason().(torchemu.Holder)
	return ok && h.HoldsHost()
}

// expire ends an operation for all that have a part in it: it cannot be completed without this one.
func (w *Work) expire(err error, now sim.Time) {
	if w.letter != nil {
		w.letter.withdraw()
		w.letter.errand.fails()
	}
	if w.meeting != nil {
		w.meeting.fail(err)
	}
	w.Fail(err, now)
}
