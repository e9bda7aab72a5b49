package prim

import "fmt"

// AllocateHollow is Allocate for memory without bytes, of which engines copy in their time and nothing else may use: for
// sizes that memory does not hold.
func (m *Machine) AllocateHollow(name string, ranks []int, bytes int) (*Window, error) {
	if err := m.checkDomain(name, ranks); err != nil {
		return nil, err
	}
	if bytes < 1 || bytes > m.room() {
		return nil, fmt.Errorf("window %q: %d bytes; the address space has room for 1 to %d", name, bytes, m.room())
	}
	w := m.newWindow(name, ranks, bytes)
	for _, r := range ranks {
		x := w.on(r)
		x.hollow, x.zeroed = true, true
		m.check.hostWrites(place{x, 0, bytes})
	}
	m.windows = append(m.windows, w)
	return w, nil
}
