package torchemu

import (
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Launch is a kernel that a host issues with others.
type Launch struct {
	Name   string
	Kernel network.Kernel
	Beside sim.Time // what the host does before it launches the kernel
}

// Kernels adds kernels to the stream as if Kernel had been called for each, and returns the end of the last one; nil
// without any. The list is kept until then, and may be shared by ranks. The kernels are one activity, which takes a tenth
// of the memory.
//
// It is an error when the rank is dead by then, or some amount is negative or absurd; then nothing has been added.
func (s *Stream) Kernels(list []Launch) (last *Event, err error) {
	for _, l := range list {
		if err := s.rank.world.Network.Check(l.Kernel); err != nil {
			return nil, err
		}
	}
	for len(list) > 0 {
		n := s.alike(list)
		first := list[0]
		last, err = s.launch(&activity{name: first.Name, kernel: first.Kernel, beside: first.Beside, rest: list[1:n]}, nil)
		if err != nil {
			return nil, err
		}
		list = list[n:]
	}
	return last, nil
}

// alike is how many of the kernels that come next are one activity: those that take the host as long. Where somebody wants
// to know of each it is one.
func (s *Stream) alike(list []Launch) int {
	if !s.isAlike() {
		return 1
	}
	n := 1
	for n < len(list) && list[n].Beside == list[0].Beside {
		n++
	}
	return n
}

// isAlike says whether nothing but what a host does before it makes a difference to what a launch takes now, and nobody wants
// to know of each.
func (s *Stream) isAlike() bool {
	return len(s.rank.slow) == 0 && s.Line() == nil && !s.rank.world.Trace.Wants(s.rank.ID, s.rank.Now())
}

// issueRest charges the host for issuing what follows in a series.
func (s *Stream) issueRest(a *activity) {
	for i := range a.rest {
		issued := s.rank.launch(a.beside)
		if i == 0 {
			a.each = issued - a.issued
		}
	}
}

// proceed starts the next kernel of a series, now or when it has been issued.
func (a *activity) proceed(now sim.Time) {
	next := a.rest[0]
	a.name, a.kernel, a.rest = next.Name, next.Kernel, a.rest[1:]
	a.issued += a.each
	if e := a.rank.world.Engine; a.issued > now {
		e.At(a.issued, 0, a, 0)
		return
	}
	a.Handle(now, 0)
}
