package distributed

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// sightings are by rank: up to when it is known that what the rank's device did is over.
type sightings []sim.Time

// join makes s know all that o knows.
func (s *sightings) join(o sightings) {
	if n := len(o) - len(*s); n > 0 {
		*s = append(*s, make(sightings, n)...)
	}
	for i, at := range o {
		(*s)[i] = max((*s)[i], at)
	}
}

// KeepOrder lets the backend keep what operations between ranks make sure of from now on, for who checks device programs.
func (b *Backend) KeepOrder() {
	if b.known == nil {
		b.known = map[int]*sightings{}
	}
}

// Known is what a rank's device knows of each rank by the operations between them: up to when what that one's device did
// is over. Who did not take part in one, directly or through others, learns nothing by it.
func (b *Backend) Known(rank int) []sim.Time {
	if s := b.known[rank]; s != nil {
		return slices.Clone(*s)
	}
	return nil
}

// bring is what a rank's device brings to an operation that it comes to at a time; nil when no order is kept.
func (b *Backend) bring(rank int, at sim.Time) sightings {
	if b.known == nil {
		return nil
	}
	brought := slices.Clone(*b.sightingsOf(rank))
	brought.join(append(make(sightings, rank), at))
	return brought
}

// learn lets a rank's device know what another one has brought.
func (b *Backend) learn(rank int, brought sightings) {
	if b.known != nil {
		b.sightingsOf(rank).join(brought)
	}
}

func (b *Backend) sightingsOf(rank int) *sightings {
	s := b.known[rank]
	if s == nil {
		s = &sightings{}
		b.known[rank] = s
	}
	return s
}

// tell lets a member, for which the collective ends, know what those have brought of whom it has got something. A kernel
// has its own order, which the checker sees.
func (m *meeting) tell(member int) {
	b := m.group.backend
	if b.known == nil || m.run != nil || m.elems == 0 {
		return
	}
	for i := range m.parts {
		if i != member && m.gets(member, i) {
			b.learn(m.group.Members[member], m.parts[i].brought)
		}
	}
}

// gets says whether a member gets something that depends on another one's part.
func (m *meeting) gets(member, from int) bool {
	if m.collective.Starts().Root {
		return from == m.root
	}
	return !m.collective.Ends().Root || member == m.root
}
