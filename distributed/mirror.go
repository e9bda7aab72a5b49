package distributed

import (
	"fmt"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// mirror says which ranks stand for others.
type mirror struct {
	of     topology.Fold
	broken *AsymmetryError // why the ranks of a class do not all take as long
}

// AsymmetryError says that ranks for which one stands do not all take as long as it. More ranks have to run.
type AsymmetryError struct {
	Call, Site string
	Peers      []int // of a message: the members of the group that it is sent in
	Err        error
}

func (e *AsymmetryError) Error() string {
	return fmt.Sprintf("%s%s: %v", e.Call, at(e.Site), e.Err)
}

// Mirror lets ranks stand for others that do the same: by rank, the one that stands for it, itself for those that run.
// A collective starts when those of its members have joined that stand for the others, and ends for all when it has
// ended for them. What a root sends or receives is not the same for all: all end when the last one would on an idle
// fabric, as in a barrier in which ranks differ.
//
// It is an error when the fabric is not the same to the ranks of a class, or something does not know of classes.
func (b *Backend) Mirror(of []int) error {
	switch {
	case b.World.Topology.Transport() != nil:
		return fmt.Errorf("topology %q has a transport section: one rank does not stand for others there", b.World.Topology.Name)
	case len(b.Options.Kernels) > 0:
		return fmt.Errorf("a kernel of ccl.yaml runs on ranks: one does not stand for others there")
	case b.Options.AccumulateF32:
		return fmt.Errorf("ccl.yaml says accumulate: f32: one rank does not stand for others there")
	}
	if err := b.World.Network.Fold(of); err != nil {
		return err
	}
	b.mirror = &mirror{of: of}
	return nil
}

// Asymmetry is why the ranks of a class do not all take as long; nil as long as they do.
func (b *Backend) Asymmetry() error {
	if b.mirror == nil || b.mirror.broken == nil {
		return nil
	}
	return b.mirror.broken
}

// standing is the member that stands for each member of a group; nil where each does for itself.
func (b *Backend) standing(members []int, index map[int]int) []int {
	if b.mirror == nil {
		return nil
	}
	of, alone := make([]int, len(members)), true
	for i, r := range members {
		j, ok := index[b.mirror.of[r]]
		if !ok {
			j = i // nobody of this group calls anything
		}
		of[i] = j
		alone = alone && i == j
	}
	if alone {
		return nil
	}
	return of
}

// acting is how many members call a group's collectives.
func (g *ProcessGroup) acting() int {
	n := 0
	for i := range g.Members {
		if g.of == nil || g.of[i] == i {
			n++
		}
	}
	return n
}

// isMirrored says whether another member stands for one.
func (g *ProcessGroup) isMirrored(member int) bool { return g.of != nil && g.of[member] != member }

// mirror gives the members for which one stands its part.
func (m *meeting) mirror(member int) {
	for j, of := range m.group.of {
		if of == member && j != member {
			m.parts[j] = m.parts[member]
		}
	}
}

// foldKey identifies a folded schedule.
type foldKey struct {
	schedule *ccl.Schedule
	elems    int
}

// folded is the schedule of those members that stand for others.
func (g *ProcessGroup) folded(s *ccl.Schedule, elems int) (*ccl.Folded, error) {
	key := foldKey{s, elems}
	if f, ok := g.folds[key]; ok {
		return f, nil
	}
	f, err := s.Fold(ccl.Folding{Of: g.of, Way: g.way}, elems)
	if err == nil {
		if g.folds == nil {
			g.folds = map[foldKey]*ccl.Folded{}
		}
		g.folds[key] = f
	}
	return f, err
}

// way is the kind of path between two members: within a node, how far it goes there.
func (g *ProcessGroup) way(src, dst int) int {
	t := g.backend.World.Topology
	a, b := g.Members[src], g.Members[dst]
	n := t.SIPs() / t.Nodes()
	switch {
	case a/n != b/n:
		return -1
	case t.Switched():
		return 0
	}
	return (b - a + n) % n
}

// moveMirrored lets the executor play the part of those who stand for others.
func (m *meeting) moveMirrored(l ccl.Launch) {
	if m.sizes != nil {
		m.asymmetric(fmt.Errorf("the ranks' blocks differ in size"))
		return
	}
	if m.collective.Rooted() {
		m.moveAlone(l)
		return
	}
	f, err := m.group.folded(l.Schedule, l.Elems)
	if err != nil && m.call.name == barrier {
		m.moveAlone(l)
		return
	}
	if err != nil {
		m.asymmetric(err)
		return
	}
	l.Schedule = f.Schedule
	if len(f.Together) > 0 {
		l.Observer = newArrivals(m, f.Together, l.Observer)
	}
	m.play(l)
}

// moveAlone ends a collective of a root when it would have ended on an idle fabric.
func (m *meeting) moveAlone(l ccl.Launch) {
	b := m.group.backend
	l.Ready, l.Observer = make([]sim.Time, len(m.parts)), nil
	took, err := b.idle(l)
	if err != nil {
		m.fail(err)
		return
	}
	var before []*torchemu.Event
	ready := sim.Time(0)
	for i := range m.parts {
		before = append(before, m.parts[i].after...)
		ready = max(ready, m.parts[i].ready)
	}
	torchemu.AfterAll(torchemu.Unfinished(before...), func(latest sim.Time) {
		at := max(ready, latest, b.World.Engine.Now())
		for i := range m.parts {
			m.began(i, at)
		}
		b.World.At(at+took, func(now sim.Time) {
			for i := range m.parts {
				m.RankDone(i, now)
			}
		})
	})
}

// asymmetric fails the collective, and notes that more ranks have to run.
func (m *meeting) asymmetric(err error) {
	b := m.group.backend
	m.fail(b.noteAsymmetry(&AsymmetryError{Call: m.call.String(), Site: b.Sites.Text(m.parts[m.first].site), Err: err}))
}

// noteAsymmetry keeps the first error.
func (b *Backend) noteAsymmetry(e *AsymmetryError) error {
	if b.mirror.broken == nil {
		b.mirror.broken = e
	}
	return e
}

// checkMirrored refuses a message between a rank that stands for others and one that it stands for, or that another does.
func (g *ProcessGroup) checkMirrored(l *letter) error {
	b, peer := g.backend, l.peer()
	if b.mirror == nil || peer < 0 || peer >= g.Size() || b.mirror.of[g.Members[peer]] == g.Members[peer] {
		return nil
	}
	return b.noteAsymmetry(&AsymmetryError{
		Call: l.Name(), Site: b.Sites.Text(l.site), Peers: g.Members,
		Err: fmt.Errorf("rank %d stands for rank %d", b.mirror.of[g.Members[peer]], g.Members[peer]),
	})
}

// arrivals sees to it that messages which members reduce in different orders arrive at one instant.
type arrivals struct {
	meeting *meeting
	list    map[int]int // by step, which of those that are to arrive together it belongs to
	at      []sim.Time  // by those; -1 before the first
	next    ccl.Observer
}

func newArrivals(m *meeting, together [][]int, next ccl.Observer) *arrivals {
	a := &arrivals{meeting: m, list: map[int]int{}, at: make([]sim.Time, len(together)), next: next}
	for k, steps := range together {
		a.at[k] = -1
		for _, i := range steps {
			a.list[i] = k
		}
	}
	return a
}

// StepDone looks when a message arrived. It implements ccl.Observer.
func (a *arrivals) StepDone(step int, t ccl.StepTimes) {
	if k, ok := a.list[step]; ok {
		if a.at[k] >= 0 && a.at[k] != t.Arrived && a.meeting.broken == nil {
			a.meeting.asymmetric(fmt.Errorf("%s reduces in the order of ranks what has not arrived together",
				a.meeting.schedule.Algorithm))
		}
		a.at[k] = t.Arrived
	}
	if a.next != nil {
		a.next.StepDone(step, t)
	}
}
