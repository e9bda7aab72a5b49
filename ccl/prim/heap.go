package prim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Window is memory at one offset on each of the ranks of a domain.
type Window struct {
	Name  string
	Ranks []int // in the order of the domain: its rank i is Ranks[i]
	Bytes int   // on each rank

	machine *Machine
	offset  uint64
	first   int       // the lowest member
	regions []*region // by rank from the first on; nil for those that are not members
	freed   bool
	senders map[string]bool // the names of kernels that have changed words here
	meeting *Barrier        // whose words these are; nil for others
}

// region is the memory of one rank's part of a window, or of a PE's scratch.
type region struct {
	name       string
	rank       int
	start      Addr
	window     *Window // nil for scratch memory
	limit      int     // bytes of scratch memory
	hollow     bool    // has a length and no bytes: engines' copies take time and move nothing
	zeroed     bool    // it is zero until something is written, which a program may rely on
	storage    *tensor.Storage
	bytes      []byte
	waiters    []*waiter
	shadow     *shadow           // of its own, or that of the host's memory
	shift      int               // where its first byte is there
	signallers []int             // ranks that have changed words here
	signalled  map[int]signalled // by offset in the region; the last signal of a word
	touched    map[int]touch     // by offset: the last change of a word by anything else that no signal has followed
	heard      map[int]bool      // by offset: a wait for the word has been satisfied
	cells      map[int]*cell     // by offset in the region; what the checker knows of words
	hasFlags   bool              // somebody has looked at data with flags here
	shared     bool              // it is the host's, see [Window.Share]
	mirror     func(Mirrored)
}

// place is some bytes of a region.
type place struct {
	*region
	lo, hi int
}

func (p place) data() []byte { return p.bytes[p.lo:p.hi] }

// each calls visit for what the checker knows of the place.
func (p place) each(visit func(x *stretch[accesses])) {
	p.shadow.each(p.lo+p.shift, p.hi+p.shift, visit)
}

// overwrite notes a write of the place.
func (p place) overwrite(a *access) { overwrite(p.shadow, p.lo+p.shift, p.hi+p.shift, a) }

// shares says whether two places have bytes in common.
func (p place) shares(other place) bool {
	return p.region == other.region && p.lo < other.hi && other.lo < p.hi
}

// isWord says whether the place is as long as a word.
func (p place) isWord() bool { return p.hi-p.lo == 4 || p.hi-p.lo == 8 }

// isFreed says whether the place is in a window that is gone.
func (p place) isFreed() bool { return p.window != nil && p.window.freed }

// Allocate makes a zeroed window on the given ranks. The error says what is wrong with the arguments, or that memory
// has run out.
func (m *Machine) Allocate(name string, ranks []int, bytes int) (*Window, error) {
	w, err := m.fitting(name, ranks, bytes)
	if err != nil {
		return nil, err
	}
	for _, r := range ranks {
		s, err := tensor.NewStorage(w.Bytes)
		if err != nil {
			return nil, fmt.Errorf("window %q: %w", name, err)
		}
		w.on(r).storage, w.on(r).bytes, w.on(r).zeroed = s, s.Writable(), true
	}
	m.windows = append(m.windows, w)
	return w, nil
}

// fitting is a window without memory, or an error where the ranks are wrong or the address space has no room for it.
func (m *Machine) fitting(name string, ranks []int, bytes int) (*Window, error) {
	if err := m.checkDomain(name, ranks); err != nil {
		return nil, err
	}
	if bytes < 1 || bytes > m.room() {
		return nil, fmt.Errorf("window %q: %d bytes; the address space has room for 1 to %d", name, bytes, m.room())
	}
	return m.newWindow(name, ranks, bytes), nil
}

// Attach gives bytes that exist already, such as a tensor's, an address in the memory of a rank. They count as
// written.
func (m *Machine) Attach(name string, rank int, data []byte) (*Window, error) {
	if err := m.checkDomain(name, []int{rank}); err != nil {
		return nil, err
	}
	if len(data) == 0 || len(data) > m.room() {
		return nil, fmt.Errorf("window %q: %d bytes cannot be attached", name, len(data))
	}
	w := m.newWindow(name, []int{rank}, len(data))
	w.on(rank).bytes = data
	m.check.holds(w.on(rank).whole())
	m.windows = append(m.windows, w)
	return w, nil
}

// AttachMet is Attach for memory of one length on several ranks, which have met with it.
func (m *Machine) AttachMet(name string, ranks []int, data [][]byte) (*Window, error) {
	w, err := m.attachAll(name, ranks, data)
	if err != nil {
		return nil, err
	}
	for _, r := range ranks {
		m.check.holds(w.on(r).whole())
	}
	return w, nil
}

// Share says that a window that has been attached is memory of the host from a place on: other windows, of any rank, may be of the
// same bytes, and whatever programs do there may conflict.
func (w *Window) Share(at int) {
	r := w.regions[0]
	r.shadow, r.shift, r.shared, r.zeroed = w.machine.hosts, at, true, true
}

// AttachAll is Attach for bytes on several ranks, which get one offset: a window. They are of one length. written says
// whether they count as written.
func (m *Machine) AttachAll(name string, ranks []int, data [][]byte, written bool) (*Window, error) {
	w, err := m.attachAll(name, ranks, data)
	if err != nil || !written {
		return w, err
	}
	for _, r := range ranks {
		m.check.hostWrites(w.on(r).whole())
	}
	return w, nil
}

func (m *Machine) attachAll(name string, ranks []int, data [][]byte) (*Window, error) {
	if err := m.checkDomain(name, ranks); err != nil {
		return nil, err
	}
	n := len(data[0])
	if n == 0 || n > m.room() || slices.ContainsFunc(data, func(d []byte) bool { return len(d) != n }) {
		return nil, fmt.Errorf("window %q: %d bytes on some rank cannot be attached, or not with others of another length", name, n)
	}
	w := m.newWindow(name, ranks, n)
	for i, r := range ranks {
		w.on(r).bytes = data[i]
	}
	m.windows = append(m.windows, w)
	return w, nil
}

// whole is all of the region.
func (r *region) whole() place { return place{r, 0, len(r.bytes)} }

// room is how many bytes the largest window can have.
func (m *Machine) room() int { return max(0, scratchBit-3*Granule-int(m.used)) }

// newWindow makes a window whose regions have no bytes yet, at the next free offset.
func (m *Machine) newWindow(name string, ranks []int, bytes int) *Window {
	w := &Window{Name: name, Ranks: slices.Clone(ranks), Bytes: bytes, machine: m, offset: m.used, first: slices.Min(ranks)}
	w.regions = make([]*region, slices.Max(ranks)-w.first+1)
	m.used += uint64((bytes/Granule + 2) * Granule) // with a gap, so that who runs over the end is in no window
	for _, r := range ranks {
		w.regions[r-w.first] = &region{name: fmt.Sprintf("window %q", name), rank: r, start: address(r, w.offset), window: w, shadow: newShadow()}
	}
	return w
}

func (m *Machine) checkDomain(name string, ranks []int) error {
	if len(ranks) == 0 {
		return fmt.Errorf("window %q: there must be at least one rank", name)
	}
	for i, r := range ranks {
		if r < 0 || r >= len(m.ranks) {
			return fmt.Errorf("window %q: rank %d is not one of 0 to %d", name, r, len(m.ranks)-1)
		}
		if slices.Contains(ranks[:i], r) {
			return fmt.Errorf("window %q: rank %d occurs twice", name, r)
		}
	}
	return nil
}

// Storage is the memory of a rank that is a member; nil when it was attached. It has to be written in place.
func (w *Window) Storage(rank int) *tensor.Storage { return w.on(rank).storage }

// Has says whether a rank is one of the window's.
func (w *Window) Has(rank int) bool {
	return w.on(rank) != nil
}

// on is the memory of a rank; nil when that is no member.
func (w *Window) on(rank int) *region {
	if rank < w.first || rank-w.first >= len(w.regions) {
		return nil
	}
	return w.regions[rank-w.first]
}

// At is the address of a byte of the window in the memory of a rank, which must be a member.
func (w *Window) At(rank, offset int) Addr {
	if !w.Has(rank) || offset < 0 || offset > w.Bytes {
		panic(fmt.Sprintf("prim: byte %d on rank %d is not in window %q: %d bytes on ranks %v", offset, rank, w.Name, w.Bytes, w.Ranks))
	}
	return address(rank, w.offset+uint64(offset))
}

// Free gives the memory back at once. Whatever arrives later is reported, and lost. Freeing twice does nothing.
func (w *Window) Free() {
	if w.freed {
		return
	}
	w.freed = true
	for _, r := range w.Ranks {
		w.machine.check.freed(w.on(r))
		if s := w.on(r).storage; s != nil {
			s.Release()
		}
		w.on(r).bytes = nil
	}
}

// Forget frees the window for good: what is under way is still recognised, but its addresses are of no window any more.
func (w *Window) Forget() {
	w.Free()
	order := func(o *Window, offset uint64) int { return cmp.Compare(o.offset, offset) }
	if i, found := slices.BinarySearchFunc(w.machine.windows, w.offset, order); found {
		w.machine.windows = slices.Delete(w.machine.windows, i, i+1)
	}
}

// Freed says whether the window has been freed.
func (w *Window) Freed() bool { return w.freed }

// find returns the n bytes from a on. The error says where a is instead.
func (m *Machine) find(a Addr, n int) (place, error) {
	r := m.regionOf(a)
	if r == nil {
		return place{}, m.nowhere(a)
	}
	lo := int(a - r.start)
	if n < 0 || n > r.size()-lo {
		return place{}, fmt.Errorf("%d bytes from %v reach beyond %s, which has %d after that", n, a, r.name, r.size()-lo)
	}
	r.grow(lo + n)
	return place{r, lo, lo + n}, nil
}

// nowhere says what is wrong with an address that is in no region.
func (m *Machine) nowhere(a Addr) error {
	if w := m.windowAt(a.Offset()); w != nil && a.Rank() >= 0 && !a.isScratch() {
		return fmt.Errorf("%v is in no window: window %q is memory of rank %s only; what other ranks reach is symmetric memory",
			a, w.Name, numbers(w.Ranks))
	}
	return fmt.Errorf("%v is in no window: there is no memory any more, or never was%s", a, m.near(a))
}

// near says how far an address is from the nearest window, which may be another rank's: an offset that is far too small or too
// large changes the rank, too. Where that begins after the address, it also says which one of the address's rank ends before:
// programs go beyond an end more often. It is "" where there is none.
func (m *Machine) near(a Addr) string {
	before, beyond, own := uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(math.MaxUint64)
	begins, ends, ownEnds := "", "", ""
	for _, w := range m.windows {
		if w.freed {
			continue
		}
		for _, rank := range w.Ranks {
			r := w.on(rank)
			end := r.start + Addr(w.Bytes)
			switch up, down := uint64(r.start-a), uint64(a-end); {
			case a < r.start && up < before:
				before, begins = up, fmt.Sprintf("; %d bytes before the beginning of %s of rank %d", up, r.name, rank)
			case a >= end && down < beyond:
				beyond, ends = down, fmt.Sprintf("; %d bytes beyond the end of %s of rank %d, which has %d", down, r.name, rank, w.Bytes)
			}
			if a >= end && uint64(a-end) < own && rank == a.Rank() {
				own, ownEnds = uint64(a-end), fmt.Sprintf(", and %d beyond the end of %s, which has %d", a-end, r.name, w.Bytes)
			}
		}
	}
	if beyond <= before {
		return ends
	}
	return begins + ownEnds
}

// grow makes sure that scratch memory has its first n bytes: most programs use little of it.
func (r *region) grow(n int) {
	if r.window == nil && n > len(r.bytes) {
		bytes := make([]byte, min(r.limit, max(2*n, 4096)))
		copy(bytes, r.bytes)
		r.bytes = bytes
	}
}

// size is how many bytes the region has, or had before it was freed.
func (r *region) size() int {
	if r.window != nil {
		return r.window.Bytes
	}
	return r.limit
}

// regionOf finds the region of an address; nil when there is none.
func (m *Machine) regionOf(a Addr) *region {
	rank := a.Rank()
	if rank < 0 || rank >= len(m.ranks) {
		return nil
	}
	if a.isScratch() {
		return m.ranks[rank].scratchOf(int(a.Offset()&^scratchBit) >> blockShift)
	}
	if w := m.windowAt(a.Offset()); w != nil {
		return w.on(rank)
	}
	return nil
}

// windowAt is the window at an offset; nil when there is none.
func (m *Machine) windowAt(offset uint64) *Window {
	i, found := slices.BinarySearchFunc(m.windows, offset, func(w *Window, o uint64) int { return cmp.Compare(w.offset, o) })
	if !found {
		i--
	}
	if i < 0 || offset > m.windows[i].offset+uint64(m.windows[i].Bytes) {
		return nil
	}
	return m.windows[i]
}

// Write puts bytes into memory from outside, before programs run or between runs.
func (m *Machine) Write(a Addr, data []byte) error {
	p, err := m.findLive(a, len(data))
	if err != nil {
		return err
	}
	copy(p.data(), data)
	m.check.hostWrites(p)
	return nil
}

// Read returns a copy of n bytes of memory.
func (m *Machine) Read(a Addr, n int) ([]byte, error) {
	p, err := m.findLive(a, n)
	if err != nil {
		return nil, err
	}
	return slices.Clone(p.data()), nil
}

// findLive is find for memory that must not have been freed.
func (m *Machine) findLive(a Addr, n int) (place, error) {
	p, err := m.find(a, n)
	if err == nil && p.bytes == nil && p.window != nil {
		err = fmt.Errorf("%v is in %s, which was freed", a, p.name)
	}
	return p, err
}
