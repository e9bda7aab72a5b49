package ccl

import (
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// pair is who sends to whom. Of what a switch does it is who issues it, and the complement of twice the group, plus one for
// a reduction.
func (s *Schedule) pair(step *Step) pair {
	if step.Kind.inSwitch() {
		return pair{step.Src, ^(int32(step.Group)<<1 | int32(step.Kind-Multicast))}
	}
	return pair{step.Src, step.Dst}
}

// AtSwitch are the ranks for which a switch does a step; nil where it is a message.
func (s *Schedule) AtSwitch(step *Step) []int32 {
	if !step.Kind.inSwitch() {
		return nil
	}
	return s.Groups[step.Group]
}

func (p pair) inSwitch() bool { return p.dst < 0 }

// atSwitch tells what a switch does for a pair, and the devices that send to it and get from it.
func (s *Schedule) atSwitch(p pair, devices []topology.DeviceID) (k Kind, up, down []topology.DeviceID) {
	var members []topology.DeviceID
	for _, m := range s.Groups[^p.dst>>1] {
		members = append(members, devices[m])
	}
	by := []topology.DeviceID{devices[p.src]}
	if ^p.dst&1 == 0 {
		return Multicast, by, members
	}
	return ReduceInSwitch, members, by
}

// path is that of a pair's messages.
func (s *Schedule) path(n *network.Network, p pair, devices []topology.DeviceID) network.PathID {
	if !p.inSwitch() {
		return n.Path(devices[p.src], devices[p.dst])
	}
	kind, up, down := s.atSwitch(p, devices)
	if kind == Multicast {
		return n.Multicast(up[0], down)
	}
	return n.ReduceInSwitch(up, down[0])
}

// links are those that a pair's messages cross, each once.
func (s *Schedule) links(t *topology.Topology, p pair, devices []topology.DeviceID) []topology.LinkID {
	if !p.inSwitch() {
		return t.Route(devices[p.src], devices[p.dst])
	}
	var list []topology.LinkID
	_, up, down := s.atSwitch(p, devices)
	for _, pe := range up {
		list = append(list, t.ToSwitch(pe)...)
	}
	for _, pe := range down {
		list = append(list, t.FromSwitch(pe)...)
	}
	return list
}

// findGroups finds what a switch does for each group. All members take part in it.
func (w *wiring) findGroups(s *Schedule) {
	if len(s.Groups) == 0 {
		return
	}
	w.groupSteps, w.groupsOf = make([][]uint32, len(s.Groups)), make([][]uint32, s.World)
	for i := range s.Steps {
		if step := &s.Steps[i]; step.Kind.inSwitch() {
			w.groupSteps[step.Group] = append(w.groupSteps[step.Group], uint32(i))
		}
	}
	for g, members := range s.Groups {
		for _, m := range members {
			w.groupsOf[m] = append(w.groupsOf[m], uint32(g))
			w.steps[m] += uint32(len(w.groupSteps[g]))
		}
	}
}

// joinGroups lets what a switch does for a group begin when the rank is its last member to join, and appends the steps that
// wait for nothing else.
func (r *run) joinGroups(rank uint32, steps []uint32) []uint32 {
	for _, g := range r.wiring.groupsOf[rank] {
		if r.apart[g]--; r.apart[g] > 0 {
			continue
		}
		for _, i := range r.wiring.groupSteps[g] {
			if r.waits[i].send--; r.waits[i].send == 0 {
				steps = append(steps, i)
			}
		}
	}
	return steps
}

// inLibrary says whether the launch is one of a library, for which a switch works.
func (r *run) inLibrary() bool {
	return r.executor.topology.Transport() != nil && len(r.launch.Schedule.Groups) > 0
}
