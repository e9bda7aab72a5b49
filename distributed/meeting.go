package distributed

import (
	"fmt"
	"strings"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// meeting is one collective of a group, from the first member's arrival to the last member's completion.
type meeting struct {
	group      *ProcessGroup
	seq        uint64
	collective ccl.Collective
	op         tensor.ReduceOp
	call       call // the first arrival's, which the others must match

	parts   []part // by group rank
	whole   *Work  // of all members together, where one host is all of them; else nil
	first   int    // the group rank that arrived first
	missing int    // members yet to join
	waits   int    // operations whose data the collective needs and that have not settled
	running int    // members that have yet to complete
	broken  error  // why the collective can never run

	// Once all have joined:
	schedule *ccl.Schedule
	record   *Record
}

// part is one member's side of a meeting.
type part struct {
	work    *Work
	out, in *tensor.Tensor
	ready   sim.Time          // when the host issued it
	after   []*torchemu.Event // what must end before the member's device can start
}

func newMeeting(g *ProcessGroup, seq uint64, c ccl.Collective, op tensor.ReduceOp, in *tensor.Tensor) *meeting {
	return &meeting{
		group: g, seq: seq, collective: c, op: op, call: callOf(c, op, in),
		parts: make([]part, g.Size()), first: -1, missing: g.Size(), running: g.Size(),
	}
}

// join adds a member. The last one to join starts the collective. A member whose call does not match breaks the
// meeting for everybody: those who came before learn it from their Work, this one and later ones at once.
func (m *meeting) join(member int, host *torchemu.Rank, out, in *tensor.Tensor, c call) (*Work, error) {
	if m.first < 0 {
		m.first = member
	}
	m.missing--
	if m.missing == 0 {
		delete(m.group.open, m.seq)
	}
	if m.broken == nil && c != m.call {
		m.fail(m.mismatch(member, c))
	}
	if m.broken != nil {
		return nil, m.broken
	}
	w := m.arrive(member, host, out, in)
	if m.missing == 0 && m.waits == 0 {
		m.start()
	}
	return w, nil
}

func (m *meeting) arrive(member int, host *torchemu.Rank, out, in *tensor.Tensor) *Work {
	after := unfinished(m.group.last[member], torchemu.PendingOn(out), torchemu.PendingOn(in))
	w := m.place(member, part{out: out, in: in, ready: host.Launch(), after: after})
	w.Pend(out)
	w.Pend(in)
	host.Issued(w.Event)
	m.group.last[member] = w.Event
	for _, e := range after {
		m.awaitData(e)
	}
	return w
}

// place fills in a member's part.
func (m *meeting) place(member int, p part) *Work {
	p.work = &Work{Event: torchemu.NewEvent(func() string { return m.describe(member) })}
	m.parts[member] = p
	return p.work
}

// joinAll lets one host join as every member at once, each with its own tensors, and returns the work of the whole.
func (m *meeting) joinAll(host *torchemu.Rank, last *torchemu.Event, outs, ins []tensor.Shard) *Work {
	after := unfinished(last, torchemu.PendingOn(outs[0].View), torchemu.PendingOn(ins[0].View))
	ready := host.Launch()
	m.first, m.missing = 0, 0
	m.whole = &Work{Event: torchemu.NewEvent(func() string { return m.describe(0) })}
	for i := range m.parts {
		m.place(i, part{out: outs[i].View, in: ins[i].View, ready: ready, after: after})
	}
	m.whole.Pend(outs[0].View)
	m.whole.Pend(ins[0].View)
	host.Issued(m.whole.Event)
	for _, e := range after {
		m.awaitData(e)
	}
	if m.waits == 0 {
		m.start()
	}
	return m.whole
}

// awaitData holds the start back until the event's data is in place.
func (m *meeting) awaitData(e *torchemu.Event) {
	if e.Settled() {
		return
	}
	m.waits++
	e.WhenSettled(func() {
		m.waits--
		if m.missing == 0 && m.waits == 0 && m.broken == nil {
			m.start()
		}
	})
}

// start runs the collective: its data now, its time from each member's readiness on.
func (m *meeting) start() {
	elems, size := m.vectorElems(), m.parts[0].in.DType().Size()
	var err error
	if m.schedule, err = m.group.plan(m.collective, elems, size); err == nil {
		err = m.moveData()
	}
	if err != nil {
		m.fail(err)
		return
	}
	m.record = &Record{Collective: m.collective, Algorithm: m.schedule.Algorithm, Ranks: len(m.parts), Bytes: int64(elems * size)}
	for i := range m.parts {
		m.parts[i].work.Record = m.record
		m.parts[i].work.Settle()
	}
	if m.whole != nil {
		m.whole.Record = m.record
		m.whole.Settle()
	}
	m.moveTime(elems, size)
}

// vectorElems is the number of elements of the whole vector, the large side of the collective.
func (m *meeting) vectorElems() int { return max(m.parts[0].in.Numel(), m.parts[0].out.Numel()) }

// moveTime lets the executor play the schedule. A member whose earlier operations are still running joins in when
// they end.
func (m *meeting) moveTime(elems, size int) {
	ready := make([]sim.Time, len(m.parts))
	for i, p := range m.parts {
		ready[i] = p.ready
		if len(unfinished(p.after...)) > 0 {
			ready[i] = ccl.NotReady
		}
	}
	partial := ccl.PartialSize(m.parts[0].in.DType(), m.group.backend.Options.AccumulateF32)
	run := m.group.backend.executor.Start(ccl.Launch{
		Schedule: m.schedule, Elems: elems, ElemSize: size, PartialSize: partial, Devices: m.group.devices, Ready: ready,
		Observer: m.group.backend.Trace.steps(m),
	}, m)
	for i := range m.parts {
		if ready[i] == ccl.NotReady {
			m.joinWhenFree(run, i)
		} else {
			m.began(i, ready[i])
		}
	}
}

// joinWhenFree lets member i join in once everything it had issued before has ended.
func (m *meeting) joinWhenFree(run ccl.Joiner, i int) {
	p := &m.parts[i]
	left := unfinished(p.after...)
	count := len(left)
	for _, e := range left {
		e.WhenDone(func() {
			if count--; count == 0 {
				at := max(p.ready, m.group.backend.World.Engine.Now())
				m.began(i, at)
				run.Join(i, at)
			}
		})
	}
}

// began notes when a member's device starts.
func (m *meeting) began(member int, at sim.Time) {
	m.parts[member].ready = at
	m.record.Start = max(m.record.Start, at)
}

// RankDone ends a member's part. It implements ccl.Watcher.
func (m *meeting) RankDone(member int, now sim.Time) {
	if m.running--; m.running == 0 {
		m.record.End = now
		b := m.group.backend
		b.Log = append(b.Log, m.record)
		if m.whole != nil {
			m.whole.Finish(now)
		}
	}
	if t := m.group.backend.Trace; t != nil {
		t.collective(m.group.Members[member], m, m.parts[member].ready, now)
	}
	m.parts[member].work.Finish(now)
}

// fail ends the collective with an error for all who have joined.
func (m *meeting) fail(err error) {
	m.broken = err
	now := m.group.backend.World.Engine.Now()
	if m.whole != nil {
		m.whole.Fail(err, now)
	}
	for i := range m.parts {
		if w := m.parts[i].work; w != nil {
			w.Fail(err, now)
		}
	}
}

func (m *meeting) mismatch(member int, c call) error {
	return &MismatchError{
		Group: m.group.ID, Seq: m.seq, call: c, other: m.call,
		Rank: m.group.Members[member], Other: m.group.Members[m.first],
	}
}

// describe tells a deadlock report what a member waits for.
func (m *meeting) describe(member int) string {
	text := fmt.Sprintf("collective #%d of group %d, %v", m.seq, m.group.ID, m.call)
	if m.missing > 0 {
		return text + ", which " + m.absent() + " not joined"
	}
	for _, e := range unfinished(m.parts[member].after...) {
		return text + ", which follows " + e.String()
	}
	return text
}

// absent names the members that have not joined, as the subject of "have not joined".
func (m *meeting) absent() string {
	const shown = 8
	var names []string
	for i := range m.parts {
		if m.parts[i].work != nil {
			continue
		}
		if len(names) == shown {
			names = append(names, fmt.Sprintf("%d others", m.missing-shown))
			break
		}
		names = append(names, fmt.Sprint(m.group.Members[i]))
	}
	if len(names) == 1 {
		return "rank " + names[0] + " has"
	}
	return "ranks " + strings.Join(names, ", ") + " have"
}

// unfinished returns the events that are neither nil nor done, each once.
func unfinished(events ...*torchemu.Event) []*torchemu.Event {
	var list []*torchemu.Event
	for _, e := range events {
		if e != nil && !e.Done() && !contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

func contains(list []*torchemu.Event, e *torchemu.Event) bool {
	for _, x := range list {
		if x == e {
			return true
		}
	}
	return false
}
