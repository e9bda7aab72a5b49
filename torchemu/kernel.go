package torchemu

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// Kernel adds a program of the whole device to the stream, after all that is on it, and returns its end. The host
// spends a launch overhead and goes on; the device starts no earlier than that. The caller has put the results into outs
// already: readers of their data need not wait, hosts that look at them wait for the end. name is for reports.
//
// It is an error when the rank is dead by then, or the amounts are negative or absurd.
func (s *Stream) Kernel(name string, k network.Kernel, outs ...*tensor.Tensor) (*Event, error) {
	if err := s.rank.world.Network.Check(k); err != nil {
		return nil, err
	}
	return s.launch(&activity{name: name, kernel: k}, outs)
}

// Copy adds a copy of so many bytes between the device and its host, like a kernel.
func (s *Stream) Copy(w network.Way, bytes int64, outs ...*tensor.Tensor) (*Event, error) {
	if err := s.rank.world.Network.CheckCopy(bytes); err != nil {
		return nil, err
	}
	name := "a copy to the device"
	if w == network.ToHost {
		name = "a copy to the host"
	}
	return s.launch(&activity{name: name, kernel: network.Kernel{Bytes: bytes}, copies: true, way: w}, outs)
}

// Program is a device program on a stream, which somebody else runs.
type Program struct {
	Name   string
	Start  func(now sim.Time)
	Report func() Standing  // once it has started
	Uses   []*tensor.Tensor // what it reads and writes
	Apart  bool             // it does not wait for what other streams do with these: programs order that themselves
	Paid   bool             // it is part of operations for which the host is charged
	Issued func(Issued)     // called at once where an order is kept; may be nil
}

// Issued says when a device program was issued, and what is known: when it may start, and when it is over, which whoever
// runs it adds to and seals.
type Issued struct {
	At         order.Moment
	Begin, End *order.Point
}

// Standing is what a device program waits for, in words that follow its name, and what is probably wrong if it does so
// for ever; or "".
type Standing struct{ On, Cause string }

// Program adds a device program to the stream, after all that is on it and on its tensors. Whoever runs it ends the event
// that is returned; the data of its tensors is in place only then.
func (s *Stream) Program(p Program) (*Event, error) {
	return s.launch(&activity{name: p.Name, run: p.Start, report: p.Report, issuedAs: p.Issued, apart: p.Apart, paid: p.Paid}, p.Uses)
}

// activity is a kernel or a copy on a stream, or a device program. It is its own event and reason, the handler that starts it and the sink
// that ends it, so that a program may be a hundred thousand of them ahead of its device.
type activity struct {
	Event
	rank     *Rank
	on       *Stream
	name     string
	run      func(now sim.Time) // of a device program: starts it
	report   func() Standing    // of a device program that has started
	issuedAs func(Issued)       // of a device program
	kernel   network.Kernel     // of a copy: its bytes
	beside   sim.Time           // of a kernel: see [Launch]
	apart    bool               // of a device program: see [Program]
	paid     bool               // of a device program: see [Program]
	copies   bool
	way      network.Way
	issued   sim.Time
	rest     []Launch        // of a series: the kernels after this one
	each     sim.Time        // of a series: between the times at which the host issues its kernels
	after    *Event          // what it follows; nil once that has ended
	trace    *trace.Activity // nil when nobody records it
}

func (s *Stream) launch(a *activity, outs []*tensor.Tensor) (*Event, error) {
	if err := s.rank.Alive(); err != nil {
		return nil, err
	}
	a.rank, a.on, a.reason = s.rank, s, a
	called := s.rank.Now()
	if a.issued = called; !a.paid {
		a.issued = s.rank.launch(a.beside)
		s.issueRest(a)
		a.trace = s.recorded(a, called)
	}
	a.after = s.before(a, outs)
	if a.run != nil {
		a.WhenDone(func() { a.record(a.at) })
	}
	for _, t := range outs {
		if a.apart {
			t.PendBeside(effect{&a.Event}, s.has)
		} else {
			a.Pend(t, tensor.Write)
		}
	}
	if a.run == nil {
		a.Settle()
	} else {
		s.dropSettled()
		s.unsettled = append(s.unsettled, &a.Event)
	}
	s.rank.issuedAfter(s.last, &a.Event)
	s.knows(a)
	s.tail, s.last = &a.Event, &a.Event
	if a.after == nil {
		a.begin()
	} else {
		a.after.WhenDone(a.begin)
	}
	return &a.Event, nil
}

// has says whether an operation is an activity on the stream, which those that are put there later follow.
func (s *Stream) has(p tensor.Pending) bool {
	e, known := p.(effect)
	if !known {
		return false
	}
	a, known := e.reason.(*activity)
	return known && a.on == s
}

// knows notes what is known when an activity has ended: what is known now; of a device program also what it will say.
func (s *Stream) knows(a *activity) {
	line := s.Line()
	if line == nil {
		return
	}
	at, begin := s.step(), s.Here()
	a.known = begin
	if a.run != nil {
		a.known = order.NewPoint(nil, begin)
		line.Reach(a.known)
		if a.issuedAs != nil {
			a.issuedAs(Issued{at, begin, a.known})
		}
	}
	s.rank.Ended(a.known)
}

// before is what the activity follows: what is on the stream, and for a device program also what its data needs.
func (s *Stream) before(a *activity, uses []*tensor.Tensor) *Event {
	events := []*Event{s.Tail()}
	if a.run == nil || a.apart {
		return events[0]
	}
	for _, t := range uses {
		events = append(events, PendingOn(t, tensor.Write)...)
	}
	events = Unfinished(events...)
	switch len(events) {
	case 0:
		return nil
	case 1:
		return events[0]
	}
	return join(events)
}

// begin starts the activity, now or when it has been issued. It fails with what it follows.
func (a *activity) begin() {
	at, e := a.issued, a.rank.world.Engine
	if before := a.after; before != nil {
		at = max(at, before.at)
		a.after = nil // or a chain would keep all that ever was in it
		if before.err != nil {
			a.Fail(before.err, at)
			return
		}
	}
	if at > e.Now() {
		e.At(at, 0, a, 0)
		return
	}
	a.Handle(e.Now(), 0)
}

// Handle occupies the device. It implements sim.Handler.
func (a *activity) Handle(now sim.Time, _ uint64) {
	w := a.rank.world
	if a.trace != nil {
		a.trace.Start = now
	}
	if a.run != nil {
		a.run(now)
		return
	}
	pe := w.Topology.PE(a.rank.ID, 0, 0)
	if a.copies {
		w.Network.Copy(pe, a.way, a.kernel.Bytes, a, 0)
		return
	}
	w.Network.Kernel(pe, a.kernel, a, 0)
}

// Delivered ends the activity. It implements network.Sink.
func (a *activity) Delivered(now sim.Time, _ uint64) {
	a.record(now)
	if len(a.rest) > 0 {
		a.proceed(now)
		return
	}
	a.Finish(now)
}

// record notes the end of an activity that is recorded.
func (a *activity) record(now sim.Time) {
	if a.trace != nil {
		a.trace.End = now
		a.rank.world.Trace.Activity(*a.trace)
	}
}

// Follows is what the activity waits for. It implements Follower.
func (a *activity) Follows() *Event { return a.after }

// String names the activity and what it waits for. It implements Reason.
func (a *activity) String() string { return Chain(a) }

// Alone names the activity, and says what a device program that has started waits for. It implements Link.
func (a *activity) Alone() string {
	name := a.name
	if a.report != nil {
		name = fmt.Sprintf("kernel %q", a.name)
	}
	if a.after == nil && a.report != nil {
		if on := a.report().On; on != "" {
			return name + ", which" + on
		}
	}
	return name
}

// Suspect is what is probably wrong if the device program, once it has started, never ends.
func (a *activity) Suspect() string {
	if a.after != nil || a.report == nil {
		return ""
	}
	return a.report().Cause
}

// Needs are those that what it follows needs. It implements Reason.
func (a *activity) Needs() []int { return needsBehind(a) }
