package distributed

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// meeting is one collective of a group, from the first member's arrival to the last member's completion.
type meeting struct {
	group      *ProcessGroup
	seq        uint64
	collective collective.Kind
	op         tensor.ReduceOp
	root       int
	algorithm  string
	call       call // the first arrival's, which the others must match

	parts   []part         // by group rank
	whole   *Work          // of all members together, where one host is all of them; else nil
	single  *torchemu.Rank // that host
	first   int            // the group rank that arrived first
	missing int            // members yet to join
	waits   int            // operations whose data the collective needs and that have not settled
	running int            // members that have yet to complete
	broken  error          // why the collective can never run
	loss    loss           // why it cannot go on

	// Once all have joined:
	sizes    []int // elements of each block; nil when they are equal
	elems    int   // of all blocks together
	scalars  scalars
	schedule *ccl.Schedule
	carriage ccl.Carriage
	record   *Record
	trace    *trace.Call // nil until it is asked for

	// Of a collective that a kernel runs:
	run     KernelRun
	results [][]byte // by group rank
}

// part is one member's side of a meeting.
type part struct {
	work    *Work
	out, in []*tensor.Tensor
	factor  *float64
	site    Site
	number  uint64   // in recordings
	called  sim.Time // when the host began to issue it
	issued  sim.Time
	ready   sim.Time          // when the host issued it; later, when the device started it
	after   []*torchemu.Event // what must end before the member's device can start
	errand  *errand
}

func newMeeting(g *ProcessGroup, seq uint64, o *Operation) *meeting {
	return &meeting{
		group: g, seq: seq, collective: o.Collective, op: o.Reduce, root: o.Root, algorithm: o.Algorithm, call: callOf(o),
		parts: make([]part, g.Size()), first: -1, missing: g.acting(), running: g.Size(),
	}
}

// join adds a member. The last one to join starts the collective. A member whose call does not match breaks the
// meeting for everybody: those who came before learn it from their Work, this one and later ones at once.
func (m *meeting) join(member int, host *torchemu.Rank, c Caller, o *Operation) (*Work, error) {
	errand := m.group.backend.run(&m.group.lines[member], c, o.Name)
	if err := errand.touches(torchemu.Uses{Reads: o.In, Writes: o.Out}); err != nil {
		return nil, err
	}
	if m.first < 0 {
		m.first = member
	}
	m.missing--
	if m.missing == 0 {
		delete(m.group.open, m.seq)
	}
	if theirs := callOf(o); m.broken == nil && theirs != m.call {
		m.fail(m.mismatch(member, c.Site, o))
	}
	if m.broken != nil {
		return nil, m.broken
	}
	w := m.arrive(member, host, c, o, errand)
	if m.group.of != nil {
		m.mirror(member)
	}
	if m.missing == 0 && m.waits == 0 {
		m.start()
	}
	if m.broken != nil {
		return nil, m.broken
	}
	return w, nil
}

func (m *meeting) arrive(member int, host *torchemu.Rank, c Caller, o *Operation, errand *errand) *Work {
	uses := torchemu.Uses{Reads: o.In, Writes: o.Out}
	data := uses.Before()
	p := part{out: o.Out, in: o.In, factor: o.Factor, site: c.Site, errand: errand}
	p.number, p.called, p.issued = m.group.backend.launch(host)
	p.ready = p.issued
	p.after = torchemu.Unfinished(append(data, m.group.last[member], c.Stream.Tail())...)
	w := m.place(member, p)
	errand.tellOf(w.Event, host)
	uses.Pend(w.Event)
	host.Issued(w.Event)
	m.group.watch(member, w, p.ready)
	m.group.last[member] = w.Event
	if !c.Async {
		c.Stream.Wait(w.Event)
	}
	m.awaitData(data)
	m.follow(p.after)
	return w
}

// place fills in a member's part.
func (m *meeting) place(member int, p part) *Work {
	p.work = &Work{Event: torchemu.NewEvent(seat{m, member}), Seq: m.seq, meeting: m}
	m.parts[member] = p
	return p.work
}

// joinAll lets one host join as every member at once, each with its own shards, and returns the work of the whole.
func (m *meeting) joinAll(host *torchemu.Rank, c Caller, last *torchemu.Event, s sharded) *Work {
	uses := torchemu.Uses{Reads: []*tensor.Tensor{s.in}, Writes: []*tensor.Tensor{s.out}}
	data := torchemu.Unfinished(uses.Before()...)
	_, called, issued := m.group.backend.launch(host)
	after := torchemu.Unfinished(append(data, last, c.Stream.Tail())...)
	m.first, m.missing, m.single = 0, 0, host
	m.whole = &Work{Event: torchemu.NewEvent(seat{m, 0}), Seq: m.seq}
	for i := range m.parts {
		m.place(i, part{
			out: []*tensor.Tensor{s.outs[i].View}, in: []*tensor.Tensor{s.ins[i].View}, site: c.Site,
			number: m.group.backend.World.Trace.Call(), called: called, issued: issued, ready: issued, after: after,
		})
	}
	uses.Pend(m.whole.Event)
	host.Issued(m.whole.Event)
	if !c.Async {
		c.Stream.Wait(m.whole.Event)
	}
	m.awaitData(data)
	m.follow(after)
	if m.waits == 0 && m.broken == nil {
		m.start()
	}
	return m.whole
}

// awaitData holds the start back until what other operations are to put into the tensors is in place.
func (m *meeting) awaitData(events []*torchemu.Event) {
	for _, e := range events {
		if e.Settled() {
			continue
		}
		m.waits++
		e.WhenSettled(func() {
			if e.Err() != nil {
				return // there will be no such data
			}
			if m.waits--; m.waits == 0 && m.missing == 0 && m.broken == nil {
				m.start()
			}
		})
	}
}

// follow fails the collective for everybody when an operation fails that a member's part follows.
func (m *meeting) follow(after []*torchemu.Event) {
	for _, e := range after {
		e.WhenDone(func() {
			if e.Err() != nil && m.broken == nil {
				m.fail(e.Err())
			}
		})
	}
}

// start runs the collective.
func (m *meeting) start() {
	err := m.measure()
	if err == nil {
		m.scalars = scalarsOf(m.call.dtype, m.elems, m.sizes)
		if name := m.kernel(); name != "" && m.algorithm == "" {
			err = m.startKernel(name)
		} else {
			err = m.startSchedule()
		}
	}
	if err != nil {
		m.fail(err)
		return
	}
	m.exchange()
}

// newRecord is the collective for the log.
func (m *meeting) newRecord(algorithm string) *Record {
	return &Record{
		Name: m.call.name, Collective: m.collective, Algorithm: algorithm, Ranks: len(m.parts),
		Bytes: int64(m.elems * m.call.dtype.Size()),
	}
}

// startSchedule runs an algorithm: its data now, its time from each member's readiness on.
func (m *meeting) startSchedule() error {
	size := m.scalars.dtype.Size()
	plan, err := m.group.plan(planKey{m.collective, m.op, m.root, m.scalars.elems, size, m.algorithm})
	if err != nil {
		return err
	}
	m.schedule, m.carriage = plan.schedule, plan.carriage
	if err := m.moveData(); err != nil {
		return err
	}
	m.record = m.newRecord(m.schedule.Algorithm)
	for i := range m.parts {
		m.parts[i].work.Record = m.record
		m.parts[i].work.Settle()
	}
	if m.whole != nil {
		m.whole.Record = m.record
		m.whole.Settle()
	}
	m.moveTime(size)
	return nil
}

// moveTime lets the executor play the schedule. A member whose earlier operations are still running joins in when
// they end.
func (m *meeting) moveTime(size int) {
	ready := make([]sim.Time, len(m.parts))
	for i := range m.parts {
		p := &m.parts[i]
		ready[i] = p.ready
		if p.after = torchemu.Unfinished(p.after...); len(p.after) > 0 {
			ready[i] = ccl.NotReady
		}
	}
	l := ccl.Launch{
		Schedule: m.schedule, Elems: m.scalars.elems, Sizes: m.scalars.sizes, ElemSize: size,
		PartialSize: ccl.PartialSize(m.scalars.dtype, m.group.backend.Options.AccumulateF32),
		Devices:     m.group.devices, Ready: ready, Carriage: m.carriage, Observer: m.observer(),
	}
	if m.group.of != nil {
		m.moveMirrored(l)
	} else {
		m.play(l)
	}
}

// play starts the steps, and lets members join in.
func (m *meeting) play(l ccl.Launch) {
	run := m.group.backend.executor.Start(l, m)
	for i := range m.parts {
		if l.Ready[i] != ccl.NotReady {
			m.began(i, l.Ready[i])
			continue
		}
		p := &m.parts[i]
		torchemu.AfterAll(p.after, func(latest sim.Time) {
			at := max(p.ready, latest)
			m.began(i, at)
			run.Join(i, at)
		})
	}
}

// began notes when a member's device starts.
func (m *meeting) began(member int, at sim.Time) {
	m.parts[member].ready = at
	m.parts[member].after = nil // it has ended; a chain would keep all that ever was in it
	m.parts[member].work.start = at
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
	if m.group.isMirrored(member) {
		return
	}
	m.recordPart(member, now)
	m.parts[member].work.Finish(now)
}

// fail ends the collective with an error for all who have joined.
func (m *meeting) fail(err error) {
	m.broken = err
	m.group.backend.World.Footprint.Fails()
	if m.run != nil {
		m.run.Cancel()
	}
	now := m.group.backend.World.Engine.Now()
	if m.whole != nil {
		m.whole.Fail(err, now)
	}
	for i := range m.parts {
		m.parts[i].errand.fails()
		if w := m.parts[i].work; w != nil {
			w.Fail(err, now)
		}
	}
}

// mark tells calls of collectives apart that some rank makes, by a number.
func (m *meeting) mark(o *Operation) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, m.group.Name, m.group.Members, m.seq, callOf(o), o.Algorithm)
	return h.Sum64()
}

func (m *meeting) mismatch(member int, site Site, o *Operation) error {
	c := callOf(o)
	return &MismatchError{
		Group: m.group.Name, Seq: m.seq,
		Rank: m.group.Members[m.first], Other: m.group.Members[member],
		Call: m.call.String(), OtherCall: c.String(),
		Site: m.group.backend.Sites.Text(m.parts[m.first].site), OtherSite: m.group.backend.Sites.Text(site),
		Differ: "the " + strings.Join(m.call.differences(c), " and the "), Right: m.call.right(c),
		Calls: []Fingerprint{m.fingerprintOf(m.first), m.fingerprint(member, c, o.In, o.Out)},
	}
}
