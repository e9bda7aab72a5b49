package order

// Clock is a vector clock: for each lane, up to which of its moments everything is known to be over. Blocks of lanes are
// shared by clocks and never changed: most of what one clock knows most others know too.
type Clock []*block

const blockLanes = 16

type block [blockLanes]uint32

// Moment is a point in a lane: a lane is whatever does things strictly one after another.
type Moment struct {
	Lane int32
	Tick uint32
}

// Lanes gives lanes out.
type Lanes struct{ last int32 }

// New returns a lane that nothing has used.
func (l *Lanes) New() int32 {
	l.last++
	return l.last
}

// Family gives out lanes that share blocks with nobody else's. What knows the latest of one of them mostly knows the latest of
// all, and such clocks are joined without a copy.
type Family struct {
	lanes     *Lanes
	next, end int32
}

// NewFamily returns one of these lanes.
func (l *Lanes) NewFamily() *Family { return &Family{lanes: l} }

// New returns a lane that nothing has used.
func (f *Family) New() int32 {
	if f.next == f.end {
		f.next = (f.lanes.last/blockLanes + 1) * blockLanes
		f.end = f.next + blockLanes
		f.lanes.last = f.end - 1
	}
	f.next++
	return f.next - 1
}

// At is up to which moment of a lane everything is known to be over.
func (c Clock) At(lane int32) uint32 {
	if i := int(lane) / blockLanes; i < len(c) && c[i] != nil {
		return c[i][lane%blockLanes]
	}
	return 0
}

// Knows says whether the moment is over for whoever has the clock.
func (c Clock) Knows(m Moment) bool { return c.At(m.Lane) >= m.Tick }

// Join makes c know all that o knows.
func (c *Clock) Join(o Clock) {
	c.reach(len(o))
	own := (*c)[:len(o)]
	for i, b := range o {
		if own[i] != b {
			own[i] = latest(own[i], b)
		}
	}
}

// latest is what two blocks know together: one of them, where that is enough.
func latest(a, b *block) *block {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	var less, more uint64 // in the upper half: whether a knows less somewhere, and more; the ticks would mispredict branches
	for i := range a {
		x, y := uint64(a[i]), uint64(b[i])
		less |= x - y
		more |= y - x
	}
	switch {
	case less>>32 == 0:
		return a
	case more>>32 == 0:
		return b
	default:
		return maxima(a, b)
	}
}

// maxima is a block of what either of two knows.
func maxima(a, b *block) *block {
	both := *a
	for i, v := range b {
		both[i] = max(both[i], v)
	}
	return &both
}

// Set makes c know that a moment is over.
func (c *Clock) Set(m Moment) {
	i := int(m.Lane) / blockLanes
	c.reach(i + 1)
	var next block
	if old := (*c)[i]; old != nil {
		next = *old
	}
	next[m.Lane%blockLanes] = m.Tick
	(*c)[i] = &next
}

// reach makes room for n blocks.
func (c *Clock) reach(n int) {
	if len(*c) < n {
		*c = append(*c, make(Clock, n-len(*c))...)
	}
}

// Clone returns a clock that knows the same.
func (c Clock) Clone() Clock { return append(Clock(nil), c...) }

// Covers says whether c knows all that o knows.
func (c Clock) Covers(o Clock) bool {
	for i, b := range o {
		if b == nil || i < len(c) && c[i] == b {
			continue
		}
		if i >= len(c) || latest(c[i], b) != c[i] {
			return false
		}
	}
	return true
}
