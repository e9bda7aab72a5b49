package distributed

import (
	"cmp"
	"fmt"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// traced is the group as recordings have it.
func (g *ProcessGroup) traced() *trace.Group {
	return &trace.Group{ID: g.ID, Name: cmp.Or(g.Description, g.Name), Ranks: g.Members}
}

// hostOf is the rank whose host called as a member: for the shards of a single worker, that worker.
func (m *meeting) hostOf(member int) int {
	if m.single != nil {
		return m.single.ID
	}
	return m.group.Members[member]
}

// traced is what the members have in common in the collective, as recordings have it.
func (m *meeting) traced() *trace.Call {
	if m.trace != nil {
		return m.trace
	}
	m.trace = &trace.Call{
		Name: m.call.name, Collective: m.collective, Algorithm: m.record.Algorithm, Group: m.group.traced(),
		Seq: m.seq, Root: -1, Elems: m.elems, Bytes: m.record.Bytes,
	}
	if m.schedule != nil {
		m.trace.Steps = len(m.schedule.Steps)
	}
	if m.collective.Reduces() {
		m.trace.Op = m.op.String()
	}
	if m.collective.Rooted() {
		m.trace.Root = m.root
	}
	return m.trace
}

// recordPart records a member's part in a collective that has ended for it.
func (m *meeting) recordPart(member int, now sim.Time) {
	p, r := &m.parts[member], &m.group.backend.World.Trace
	if !r.Wants(m.hostOf(member), p.called) {
		return
	}
	call := m.traced()
	track := trace.Track{Kind: trace.GroupTrack, ID: m.group.ID, Name: m.group.Name}
	if m.single != nil {
		pe := m.group.backend.World.Topology.Device(m.group.devices[member])
		track = trace.Track{Kind: trace.ShardTrack, ID: int(pe.ID), Name: pe.Name()}
	}
	r.Activity(trace.Activity{
		Rank: m.hostOf(member), Kind: trace.Collective, Name: m.call.name, Track: track, Number: p.number,
		Called: p.called, Issued: p.issued, Start: p.work.start, End: now, Bytes: call.Bytes,
		DType: m.call.dtype.String(), Site: m.group.backend.Sites.Text(p.site), Call: call, In: sizes(p.in),
		Out: sizes(p.out), Group: call.Group, Member: member, Peer: -1,
	})
}

// sizes are the elements of each tensor.
func sizes(tensors []*tensor.Tensor) []int {
	list := make([]int, len(tensors))
	for i, t := range tensors {
		list[i] = t.Numel()
	}
	return list
}

// observer records the steps of a meeting; nil when nobody wants them.
func (m *meeting) observer() ccl.Observer {
	if m.group.backend.World.Trace.WantsDetails(trace.Steps) {
		return stepRecorder{m}
	}
	return nil
}

type stepRecorder struct{ *meeting }

// StepDone records a step. It implements ccl.Observer.
func (s stepRecorder) StepDone(i int, at ccl.StepTimes) {
	step, g := s.schedule.Steps[i], s.group
	g.backend.World.Trace.Step(trace.Step{
		Call: s.traced(), Rank: s.hostOf(int(step.Src)), Index: i, Src: g.Members[step.Src], Dst: g.Members[step.Dst],
		From: g.devices[step.Src], To: g.devices[step.Dst], Lo: int(step.Lo), Hi: int(step.Hi),
		Reduce: step.Kind == ccl.Reduce || step.Kind == ccl.ReduceInSwitch, Bytes: at.Bytes,
		Start: at.Start, Arrived: at.Arrived, Combine: at.Combine, End: at.End, AtSwitch: s.atSwitch(&step),
	})
}

// atSwitch are the ranks for which a switch does a step; nil where it is a message.
func (s stepRecorder) atSwitch(step *ccl.Step) []int {
	var ranks []int
	for _, member := range s.schedule.AtSwitch(step) {
		ranks = append(ranks, s.group.Members[member])
	}
	return ranks
}

// record records a message that has arrived, at both sides.
func (t transmission) record(now sim.Time) {
	for _, l := range []*letter{t.send, t.recv} {
		if r := &l.group.backend.World.Trace; r.Wants(l.host(), l.called) {
			r.Activity(l.activity(t.send, t.recv, now))
		}
	}
}

// host is the World rank that posted the letter.
func (l *letter) host() int { return l.group.Members[l.owner()] }

func (l *letter) activity(send, recv *letter, now sim.Time) trace.Activity {
	g := l.group.traced()
	a := trace.Activity{
		Rank: l.host(), Kind: trace.Receive, Name: fmt.Sprintf("recv from %d", send.host()), Number: l.number,
		Track:  trace.Track{Kind: trace.MessageTrack, ID: g.ID, Name: g.Name},
		Called: l.called, Issued: l.ready, Start: l.work.start, End: now,
		Bytes: int64(l.tensor.Numel() * l.tensor.DType().Size()), DType: l.tensor.DType().String(),
		Site: l.group.backend.Sites.Text(l.site), Group: g, Member: l.owner(), Peer: send.host(), Tag: send.tag,
	}
	elems := sizes([]*tensor.Tensor{l.tensor})
	if l == send {
		a.Kind, a.Name, a.Peer, a.In = trace.Send, fmt.Sprintf("send to %d", recv.host()), recv.host(), elems
	} else {
		a.Out = elems
	}
	return a
}

// launch charges a rank's host for issuing an operation, and returns its number in recordings and when the host began
// and ended to issue it.
func (b *Backend) launch(host *torchemu.Rank) (number uint64, called, issued sim.Time) {
	called = host.Now()
	issued = host.LaunchTogether()
	return b.World.Trace.Call(), called, issued
}
