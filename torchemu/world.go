// Package torchemu wires the runtime of one simulated cluster: a [World] holds the topology, the discrete-event
// engine, the network on it and one [Rank] for each SIP. Everything above (schedulers, collectives, layers) gets its
// time and its devices from here.
//
// # Time
//
// A rank's host has a clock of its own, which launches advance, and which runs ahead of the simulation until the host
// waits for something. The device has [Stream]s, on which operations run one after another. An operation is an
// [Event] of two moments: its data is in place as soon as that of its inputs is, and its end comes when simulated time
// has got there. A kernel on a stream begins when those before it have ended and the host has launched it; how long it
// takes the network says. What an event of a program's own, [Stream.Record], notes is the end of all that was on the
// stream, but no earlier than the host asked.
//
// # Faults
//
// [World.Inject] makes ranks or links slow, drops links and kills ranks at simulated times. A host dies when its own
// clock comes to the time, or the simulation's if it waits then. Others learn of it as they would on real hardware: by
// waiting in vain until a watchdog of their process group ends that; [World.Why] knows the reason.
package torchemu

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// World is one simulated cluster. It is not safe for concurrent use: ranks are cooperative tasks on one thread.
type World struct {
	Topology *topology.Topology
	Engine   *sim.Engine
	Network  *network.Network
	Trace    trace.Recorder // see Record
	Programs Programs       // device programs that are driven from outside; nil when there are none
	Lanes    *order.Lanes   // of hosts, streams and groups; nil when no order is kept, see KeepOrder

	Footprint *Footprint // of the step that a host is in; nil when nobody explores schedules

	ranks     []*Rank
	deadlines int // how many are pending, see Deadline
	damage
	deferrals
}

// Programs are device programs that somebody else than the engine runs. No time may pass while one of them can go on.
type Programs interface {
	// Ready says that one can go on.
	Ready() bool
	// GoOn lets those go on that need nobody else, up to the first that does, and says whether none is left that can.
	GoOn() bool
}

// Step lets the next thing happen, unless a device program can go on or a computation is due that a host has put off; that
// is ready then. Both are false when nothing is pending. Operations that nobody can end are a deadlock at once: nobody
// needs to wait until a watchdog says that they last too long.
func (w *World) Step() (ready, stepped bool) {
	if w.Ready() {
		over := len(w.due) == 0 && w.Programs.GoOn()
		return !over, over
	}
	if len(w.waiting) > 0 && w.giveUp() {
		return false, true
	}
	return false, !w.Engine.Idle() && w.Engine.Step()
}

// Ready says that a device program can go on, or that a computation is due that a host has put off.
func (w *World) Ready() bool { return len(w.due) > 0 || w.Programs != nil && w.Programs.Ready() }

// NewWorld returns an idle cluster at time zero.
func NewWorld(t *topology.Topology) *World {
	e := sim.NewEngine()
	return &World{Topology: t, Engine: e, Network: network.New(e, t), ranks: make([]*Rank, t.SIPs())}
}

// Rank returns rank i, which lives on SIP i. It is an error when the topology has no such SIP.
func (w *World) Rank(i int) (*Rank, error) {
	if i < 0 || i >= len(w.ranks) {
		return nil, &DeviceError{Device: i, SIPs: len(w.ranks), Topology: w.Topology.Name}
	}
	if w.ranks[i] == nil {
		w.ranks[i] = &Rank{ID: i, world: w}
	}
	return w.ranks[i], nil
}

// Resize gives an idle cluster another topology with as many SIPs or more: the ranks it has stay, and traffic starts
// anew. It is an error while anything but deadlines is under way, after a fault was set, or while a recording goes on,
// which is of a topology.
func (w *World) Resize(t *topology.Topology) error {
	switch {
	case t.SIPs() < len(w.ranks):
		return fmt.Errorf("topology %q has %d SIPs, fewer than the %d of %q", t.Name, t.SIPs(), len(w.ranks), w.Topology.Name)
	case w.faulty:
		return fmt.Errorf("faults are set for topology %q", w.Topology.Name)
	case w.Trace.Has(trace.Collectives):
		return fmt.Errorf("topology %q is being recorded", w.Topology.Name)
	case w.Engine.Busy() > w.deadlines: // those are of hosts, whatever the topology
		return fmt.Errorf("operations are under way on topology %q", w.Topology.Name)
	}
	w.Topology, w.Network = t, network.New(w.Engine, t)
	w.ranks = append(w.ranks, make([]*Rank, t.SIPs()-len(w.ranks))...)
	return nil
}

// DeviceError says that a rank or device index has no SIP behind it.
type DeviceError struct {
	Device, SIPs int
	Topology     string
}

func (e *DeviceError) Error() string {
	return fmt.Sprintf("device %d does not exist: topology %q has %d SIPs (devices 0 to %d)",
		e.Device, e.Topology, e.SIPs, e.SIPs-1)
}
