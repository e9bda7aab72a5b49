package torchemu

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Fault is something that goes wrong with a World at a simulated time: [Kill], [SlowRank], [SlowLink] or [DropLink].
type Fault interface {
	from() sim.Time
	check(w *World) error
	prepare(w *World) // before it strikes
	strike(w *World)
}

// Kill ends a rank's program: it gets a [KilledError] where it waits then, or at its next operation. What its device
// has not sent or received by then never arrives. The rank stays dead.
type Kill struct {
	Rank int
	At   sim.Time
}

// SlowRank makes a rank's launches, kernels and reductions take Factor times as long: launches by its host's clock, the
// others by the simulation's. A later one for the same rank takes its place.
type SlowRank struct {
	Rank   int
	Factor float64 // at least 1
	From   sim.Time
}

// SlowLink divides the bandwidth of a cable by Factor, in both directions. A later one takes its place.
type SlowLink struct {
	Cable  Cable
	Factor float64 // at least 1
	From   sim.Time
}

// DropLink loses all messages over a cable that have not arrived, in both directions. Nobody sends them again or by
// another way.
type DropLink struct {
	Cable Cable
	From  sim.Time
}

// Cable is what joins two devices: a link in each direction.
type Cable struct {
	Name  string // for messages: "the link between SIPs 0 and 1"
	Links []topology.LinkID
}

// damage is what has gone wrong with a World so far.
type damage struct {
	drops   []DropLink
	mortals bool // a rank is dead or going to die
	struck  int
	faulty  bool // there are faults, whether or not they have struck
}

// fate is what goes wrong with a rank.
type fate struct {
	slow     []SlowRank // in the order of their times
	mortal   bool       // it dies at death
	death    sim.Time
	dead     bool
	onKill   func()
	waits    *Event
	overdue  error // what its program has not been told, and that ends it; see Expire
	onExpire func()
	gaveUp   string // the fault for which its program was told that something would not end; "" for none
}

// Inject adds faults, all of them or, when something is wrong with one, none. They are no reason for simulated time to
// pass, as little as other watches of the engine: they strike when it comes to their times, and at once where it has.
// Whatever was planned for that very moment before still happens before.
func (w *World) Inject(faults ...Fault) error {
	for _, f := range faults {
		if err := f.check(w); err != nil {
			return err
		}
	}
	for _, f := range faults {
		f.prepare(w)
		w.faulty = true
	}
	inOrder := func(a, b Fault) int { return cmp.Compare(a.from(), b.from()) }
	for _, f := range slices.SortedStableFunc(slices.Values(faults), inOrder) {
		if f.from() <= w.Engine.Now() {
			f.strike(w)
		} else {
			w.Engine.Watch(f.from(), 0, timer(func(sim.Time) { f.strike(w) }), 0)
		}
	}
	return nil
}

func (f Kill) check(w *World) error {
	_, err := w.Rank(f.Rank)
	return err
}

func (f SlowRank) check(w *World) error {
	if _, err := w.Rank(f.Rank); err != nil {
		return err
	}
	return checkFactor(f.Factor)
}

func (f SlowLink) check(*World) error { return checkFactor(f.Factor) }
func (f DropLink) check(*World) error { return nil }

func checkFactor(factor float64) error {
	if !(factor >= 1) || math.IsInf(factor, 0) { // the negation catches NaN
		return fmt.Errorf("the factor of a fault must be a number from 1 on, not %v", factor)
	}
	return nil
}

// prepare tells the rank's host, which runs ahead of the simulation.
func (f Kill) prepare(w *World) {
	if r := w.ranks[f.Rank]; !r.mortal || f.At < r.death {
		r.mortal, r.death = true, f.At
		w.mortals = true
	}
}

func (f SlowRank) prepare(w *World) {
	r := w.ranks[f.Rank]
	r.slow = append(r.slow, f)
	slices.SortStableFunc(r.slow, func(a, b SlowRank) int { return cmp.Compare(a.From, b.From) })
}

func (f SlowLink) prepare(*World) {}
func (f DropLink) prepare(*World) {}

func (f Kill) from() sim.Time     { return f.At }
func (f SlowRank) from() sim.Time { return f.From }
func (f SlowLink) from() sim.Time { return f.From }
func (f DropLink) from() sim.Time { return f.From }

func (f Kill) strike(w *World) {
	r := w.ranks[f.Rank]
	if r.dead {
		return
	}
	r.dead = true
	w.struck++
	w.Network.Halt(f.Rank)
	if r.onKill != nil {
		r.onKill()
	}
}

func (f SlowRank) strike(w *World) { w.Network.SlowSIP(f.Rank, f.Factor) }

func (f SlowLink) strike(w *World) {
	for _, l := range f.Cable.Links {
		w.Network.SlowLink(l, f.Factor)
	}
}

func (f DropLink) strike(w *World) {
	w.drops = append(w.drops, f)
	w.struck++
	for _, l := range f.Cable.Links {
		w.Network.DropLink(l)
	}
}

// Death says when a rank was killed; "" for one that lives, or is none. A rank whose host, which runs ahead, has come to
// the time of its death is dead.
func (w *World) Death(rank int) string {
	if rank < 0 || rank >= len(w.ranks) || w.ranks[rank] == nil {
		return ""
	}
	if r := w.ranks[rank]; r.dead || r.mortal && r.clock >= r.death {
		return (&KilledError{rank, r.death}).Error()
	}
	return ""
}

// Struck is how many faults have struck so far that lose messages.
func (w *World) Struck() int { return w.struck }

// Lost says why messages from one PE to another do not arrive; "" when they do.
func (w *World) Lost(src, dst topology.DeviceID) string {
	for _, end := range []topology.DeviceID{src, dst} {
		if why := w.Death(w.Topology.Device(end).SIP); why != "" {
			return why
		}
	}
	return w.dropped(w.Topology.Route(src, dst))
}

// LostAtSwitch is [World.Lost] for what the switch of a node gets from some devices for others.
func (w *World) LostAtSwitch(from, to []topology.DeviceID) string {
	for side, devices := range [2][]topology.DeviceID{from, to} {
		for _, d := range devices {
			if why := w.Death(w.Topology.Device(d).SIP); why != "" {
				return why
			}
			way := w.Topology.ToSwitch
			if side == 1 {
				way = w.Topology.FromSwitch
			}
			if why := w.dropped(way(d)); why != "" {
				return why
			}
		}
	}
	return ""
}

// dropped names the cable that was dropped which has one of the links; "" when none has.
func (w *World) dropped(route []topology.LinkID) string {
	for _, l := range route {
		for _, d := range w.drops {
			if slices.Contains(d.Cable.Links, l) {
				return fmt.Sprintf("%s was dropped at %v", d.Cable.Name, d.From)
			}
		}
	}
	return ""
}

// Why says which fault keeps an event from ever ending: its messages are lost, it needs a rank that is dead or has given
// up, or it waits for something, or for a rank that waits for something, that a fault keeps from ending. "" is none of
// these.
func (w *World) Why(e *Event) string {
	if !w.mortals && len(w.drops) == 0 {
		return ""
	}
	return w.why(e, map[*Event]bool{})
}

// why asks about no event twice.
func (w *World) why(e *Event, asked map[*Event]bool) string {
	if e == nil || e.Done() || asked[e] {
		return ""
	}
	asked[e] = true
	switch r := e.reason.(type) {
	case Operation: // which may follow something, too
		if why := r.Obstacle(); why != "" {
			return why
		}
		if after := Unfinished(r.After()...); len(after) > 0 {
			return w.whyAny(after, asked)
		}
	case Follower:
		return w.why(r.Follows(), asked)
	}
	return w.whyRanks(e.reason.Needs(), asked)
}

func (w *World) whyAny(events []*Event, asked map[*Event]bool) string {
	for _, e := range events {
		if why := w.why(e, asked); why != "" {
			return why
		}
	}
	return ""
}

// whyRanks looks at ranks that are needed: whether they are dead or have given up, and what their programs wait for.
func (w *World) whyRanks(needs []int, asked map[*Event]bool) string {
	for _, rank := range needs {
		if why := w.Death(rank); why != "" {
			return why
		}
	}
	for _, rank := range needs {
		if rank < 0 || rank >= len(w.ranks) || w.ranks[rank] == nil {
			continue
		}
		if why := w.ranks[rank].gaveUp; why != "" {
			return why
		}
		if why := w.why(w.ranks[rank].waits, asked); why != "" {
			return why
		}
	}
	return ""
}

// KilledError ends the program of a rank that was killed.
type KilledError struct {
	Rank int
	At   sim.Time
}

func (e *KilledError) Error() string { return fmt.Sprintf("rank %d was killed at %v", e.Rank, e.At) }

// Alive is a [*KilledError] once the rank is dead, or its host has come to the time of its death.
func (r *Rank) Alive() error {
	if r.dead || r.mortal && r.Now() >= r.death {
		return &KilledError{r.ID, r.death}
	}
	return nil
}

// Waiting says what the rank's program waits for; nil is nothing.
func (r *Rank) Waiting(e *Event) { r.waits = e }

// IsWaiting reports whether the rank's program waits for something.
func (r *Rank) IsWaiting() bool { return r.waits != nil }

// GiveUp says that the rank's program is told that something never ends, because of a fault; "" is none. What others
// expect of the rank may not come then.
func (r *Rank) GiveUp(fault string) {
	if fault != "" {
		r.gaveUp = fault
	}
}

// Expire says that something of the rank has lasted too long, which ends its program where it waits next, unless it has been
// told before. Whoever runs the program ends a wait for something else.
func (r *Rank) Expire(err error) {
	if r.overdue == nil {
		r.overdue = err
	}
	if r.onExpire != nil {
		r.onExpire()
	}
}

// Overdue is what the rank's program has not been told of what has lasted too long; it is told now. Nil is nothing.
func (r *Rank) Overdue() error {
	err := r.overdue
	r.overdue = nil
	return err
}

// OnExpire has f called when something of the rank has lasted too long, in the place of who was called before.
func (r *Rank) OnExpire(f func()) { r.onExpire = f }

// OnKill has f called when the rank is killed: by whoever runs its program, in the place of who did before.
func (r *Rank) OnKill(f func()) { r.onKill = f }

// slowed is how long the rank's host takes for what takes d otherwise.
func (r *Rank) slowed(d sim.Time) sim.Time {
	if len(r.slow) == 0 {
		return d
	}
	factor := 1.0
	for _, f := range r.slow {
		if f.From <= r.Now() {
			factor = f.Factor
		}
	}
	return sim.Time(math.Round(float64(d) * factor))
}

// shownNeighbours bounds how many devices a message spells out.
const shownNeighbours = 8

// CableBetween finds what joins two devices directly. Ports of SIPs are called by their SIPs' numbers.
func CableBetween(t *topology.Topology, a, b topology.DeviceID) (Cable, error) {
	c := Cable{Name: fmt.Sprintf("the link between %s and %s", endName(t, a), endName(t, b))}
	var others []string
	for id := range topology.LinkID(t.NumLinks()) {
		switch l := t.Link(id); {
		case l.From == a && l.To == b, l.From == b && l.To == a:
			c.Links = append(c.Links, id)
		case l.From == a:
			others = append(others, endName(t, l.To))
		}
	}
	if len(c.Links) == 0 {
		if len(others) > shownNeighbours {
			others = append(others[:shownNeighbours], "…")
		}
		return c, fmt.Errorf("no link joins %s and %s; the links of %[1]s lead to %[3]s",
			endName(t, a), endName(t, b), strings.Join(others, ", "))
	}
	return c, nil
}

func endName(t *topology.Topology, id topology.DeviceID) string {
	if d := t.Device(id); d.Kind == topology.IO {
		return fmt.Sprintf("SIP %d", d.SIP)
	}
	return t.Device(id).Name()
}
