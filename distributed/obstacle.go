package distributed

import (
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// loss is the fault that messages of a collective are lost to, as of when so many faults had struck.
type loss struct {
	why    string
	struck int
}

// Obstacle is the fault that the collective's messages are lost to. It implements torchemu.Operation.
func (s seat) Obstacle() string { return s.findLoss() }

// After is what the members' devices have to do before. It implements torchemu.Operation.
func (s seat) After() []*torchemu.Event {
	if s.missing > 0 {
		return nil
	}
	var all []*torchemu.Event
	for _, p := range s.parts {
		all = append(all, p.after...)
	}
	return all
}

// findLoss looks through the steps once for each fault.
func (m *meeting) findLoss() string {
	w := m.group.backend.World
	if m.schedule == nil || m.loss.why != "" || m.loss.struck == w.Struck() {
		return m.loss.why
	}
	m.loss.struck = w.Struck()
	seen := map[ccl.Step]bool{} // without their chunks
	for _, step := range m.schedule.Steps {
		members := m.schedule.AtSwitch(&step)
		step.Lo, step.Hi, step.FromInput = 0, 0, false
		if step.Src == step.Dst && members == nil || seen[step] {
			continue
		}
		seen[step] = true
		if members == nil {
			m.loss.why = w.Lost(m.group.devices[step.Src], m.group.devices[step.Dst])
		} else {
			m.loss.why = m.lostAtSwitch(step, members)
		}
		if m.loss.why != "" {
			break
		}
	}
	return m.loss.why
}

// lostAtSwitch is the fault that a step is lost to which a switch does for members.
func (m *meeting) lostAtSwitch(step ccl.Step, members []int32) string {
	var all []topology.DeviceID
	for _, r := range members {
		all = append(all, m.group.devices[r])
	}
	by := []topology.DeviceID{m.group.devices[step.Src]}
	if step.Kind == ccl.Multicast {
		return m.group.backend.World.LostAtSwitch(by, all)
	}
	return m.group.backend.World.LostAtSwitch(all, by)
}

// Obstacle is the fault that the message is lost to. It implements torchemu.Operation.
func (l *letter) Obstacle() string {
	if l.other == nil {
		return ""
	}
	send, recv := l, l.other
	if !l.sending {
		send, recv = recv, send
	}
	g := l.group
	return g.backend.World.Lost(g.devices[send.from], g.devices[recv.to])
}

// After is what the devices have to do before. It implements torchemu.Operation.
func (l *letter) After() []*torchemu.Event {
	if l.other == nil {
		return nil
	}
	return slices.Concat(l.after, l.other.after)
}
