package prim

// AllocateHollow is Allocate for memory without bytes, of which engines copy in their time and nothing else may use: for
// sizes that memory does not hold.
func (m *Machine) AllocateHollow(name string, ranks []int, bytes int) (*Window, error) {
	w, err := m.fitting(name, ranks, bytes)
	if err != nil {
		return nil, err
	}
	for _, r := range ranks {
		x := w.on(r)
		x.hollow, x.zeroed = true, true
		m.check.hostWrites(place{x, 0, bytes})
	}
	m.windows = append(m.windows, w)
	return w, nil
}
