package network

import (
	"math/bits"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// Max-min fair rates come from progressive filling: all flows grow together until a link is full, or a flow has reached
// its peak; these flows stay at that level while the others grow on. Here the filling of one instant repeats that of
// the one before as far as nothing has changed.
//
// A link is clean up to the level at which something else may happen on it than last time. What a clean link does is
// known: if it was full at a level last time it is full there again, and its flows keep their rates. So only flows over
// dirty links are open, that is, have to be looked at.
//
//   - Flows came or went on a link. As long as its flows have the rates that they had (new ones count with their peaks)
//     it can differ from last time only where it was full then or would be full now, so it is due to get dirty there.
//   - An open flow comes to its last rate. If a clean link, full at this level, holds it there, or its peak does, it is
//     settled. If not it grows on, which is new: its links are dirty from this level on if they were full last time.
//     The others are watched.
//   - A watched link was not full, and few come to be, since its flows are settled elsewhere before. So it holds back
//     nobody until all flows are settled. If it has been given away more than once then, it is as if its flows had come
//     just now, and what has changed is filled again.
//   - A dirty link is full. Its open flows are settled at this level. For those that went on last time that is new: it
//     leaves more to others, on its clean links. These are due where they were full, and not at all if they were not.
//
// That this gives, bit by bit, what filling everything from 0 gives, follows by induction over the levels: a link's level
// is a function of its bandwidth, of the rates of its flows that are settled at lower levels, and of the number of the
// others, and for clean links none of these differs. Levels are sums and quotients of whole numbers, so it does not
// matter in which order they are worked out. Links that are full at one level give it to their flows together: dividing
// rounds down, so that one of them, looked at after another's flows are settled, might seem to have a little left.
//
// Filling again comes to an end: of the watched links that are full after all, the one that is full at the lowest level
// stays so, because nothing changes below that level any more.

// filling is the working memory of progressive filling. Rates are whole numbers here, in units of 2^-shift bytes per
// second; shift leaves room for the widest link that has been shared.
type filling struct {
	shift uint8
	round uint64 // counts fillings; marks the flows that one has settled

	claims []claim // by flow

	open    []opening
	lowest  uint64   // no open flow has a lower next
	pending []onLink // links that are not clean, as long as something may happen on them
	next    uint64   // nothing happens on links below this level
	stale   bool     // perhaps not at it either: what was to happen there does so later, or not at all
	reached []int32  // the links on which something happens there
	touched []int32  // all links that have not been clean throughout
	moved   []int32  // flows that were settled at another rate than they had
}

// claim is what filling needs to know of a flow that shares links.
type claim struct {
	rate    uint64
	peak    uint64
	settled uint64 // the last round that settled it
	open    int32  // one more than its place in filling.open; 0 when it is not there
	first   int32  // it is on the links Network.route[first:end]
	end     int32
}

// opening is an open flow.
type opening struct {
	next uint64 // the level at which it may settle by itself: its last rate, or its peak
	flow int32
}

// onLink is what may happen on a link that is not clean.
type onLink struct {
	residual uint64 // bandwidth that is not given away yet
	level    uint64 // where it happens: residual for each of the takers, 0 while that is to be worked out; or where it is due
	takers   uint32 // open flows; 1 while the link is due
	link     int32
}

// state is what filling knows of a link.
type state uint8

const (
	clean   state = iota
	due           // it gets dirty at a known level
	watched       // it was not full, and has flows that grow
	dirty
	spent // it was dirty, and all its flows are settled
)

// unreached is a level above all.
const unreached = 1<<64 - 1

// mostShift leaves room for a link of a byte per second.
const mostShift = 62

// rerate computes new rates where flows came or went.
func (n *Network) rerate(now sim.Time) {
	c := &n.filling
	c.moved = c.moved[:0]
	c.begin()
	for k := 0; k < len(n.changed); k++ {
		n.makeRoom(n.links[n.changed[k]].capacity)
	}
	for _, l := range n.changed {
		x := &n.links[l]
		level := x.level // if flows only left it is not full any earlier
		if x.joined {
			level = min(level, n.full(x))
		}
		x.changed, x.joined = false, false
		n.expect(l, level)
	}
	n.changed = n.changed[:0]
	n.fill()
	for n.findOverrun() {
		n.fill()
	}
	n.apply(now)
}

// begin makes ready for a filling.
func (c *filling) begin() {
	c.round++
	c.touched = c.touched[:0]
	c.lowest, c.next, c.stale = unreached, unreached, false
}

// findOverrun makes all links clean after a filling, and has the watched ones get dirty that turn out to be full. It says
// whether there are any.
func (n *Network) findOverrun() bool {
	c := &n.filling
	overrun := c.reached[:0]
	for _, l := range c.touched {
		x := &n.links[l]
		if x.state == watched && x.used > x.capacity<<c.shift>>roughBits {
			overrun = append(overrun, l)
		}
		x.state = clean
	}
	c.reached = overrun
	c.begin()
	for _, l := range overrun {
		n.expect(l, n.full(&n.links[l]))
	}
	return len(c.pending) > 0
}

// roughBits is how many bits of a rate do not count in a sum of rates, so that two million flows do not overflow it.
const roughBits = 20

// rough is a rate as it counts in a sum, rounded up: filling rounds down, so that each flow may leave less than there
// seems to be, by less than 1.
func rough(rate uint64) uint64 { return rate>>roughBits + 1 }

// makeRoom sees to it that rates have room for so many bytes per second. If they had more fraction bits so far all are
// worked out anew: that happens as often as links are shared that are wider than all before.
func (n *Network) makeRoom(bytesPerSecond uint64) {
	c := &n.filling
	shift := uint8(bits.LeadingZeros64(bytesPerSecond) - 1)
	if shift >= c.shift {
		return
	}
	for _, d := range n.departures.heap {
		f := &c.claims[d.flow]
		f.rate >>= c.shift - shift
		f.peak >>= c.shift - shift
	}
	c.shift = shift
	for l := range n.links {
		x := &n.links[l]
		x.used = 0
		for _, m := range x.members {
			x.used += rough(c.claims[m.flow].rate)
		}
		if x.contended() {
			x.level = 0 // in the old unit it says nothing
			n.noteChange(int32(l))
		}
	}
}

// full is the level at which a link is full if no flow over it exceeds the rate that it has.
func (n *Network) full(x *link) uint64 {
	if !x.contended() {
		return unreached
	}
	c, takers := &n.filling, len(x.members)
	level := x.capacity << c.shift / uint64(takers)
	for {
		left, over := x.capacity<<c.shift, 0
		for _, m := range x.members {
			if r := c.claims[m.flow].rate; r < level {
				left -= r
			} else {
				over++
			}
		}
		switch over {
		case 0:
			return unreached
		case takers:
			return level
		}
		level, takers = left/uint64(over), over
	}
}

// expect has a clean link get dirty at a level, unless it does so before.
func (n *Network) expect(l int32, level uint64) {
	switch x := &n.links[l]; {
	case level == unreached:
	case x.state == clean:
		n.attend(l, due, onLink{level: level, takers: 1, link: l})
	default:
		p := &n.filling.pending[x.place]
		n.filling.hasten(p, min(p.level, level))
	}
}

// attend notes what may happen on a link that has been clean.
func (n *Network) attend(l int32, s state, p onLink) {
	c, x := &n.filling, &n.links[l]
	x.state, x.place = s, int32(len(c.pending))
	c.pending = append(c.pending, p)
	c.touched = append(c.touched, l)
	c.next = min(c.next, p.level)
}

// hasten has something happen on a link at a level that is not above the one that it was expected at.
func (c *filling) hasten(p *onLink, level uint64) {
	p.level = level
	c.next = min(c.next, level)
}

// putOff has something happen later on a link than was to be expected.
func (c *filling) putOff(p *onLink) {
	c.stale = c.stale || p.level == c.next
	p.level = 0
}

// drop forgets a link on which nothing can happen any more.
func (n *Network) drop(x *link, s state) {
	c := &n.filling
	c.stale = c.stale || c.pending[x.place].level == c.next
	last := c.pending[len(c.pending)-1]
	n.links[last.link].place = x.place
	c.pending[x.place] = last
	c.pending = c.pending[:len(c.pending)-1]
	x.state = s
}

// taint makes a link dirty from a level on. A link that is not contended any more constrains nobody: only those are opened
// whom it may have held back.
func (n *Network) taint(l int32, level uint64) {
	c, x := &n.filling, &n.links[l]
	p := onLink{link: l, residual: x.capacity << c.shift}
	for _, m := range x.members {
		f := &c.claims[m.flow]
		switch {
		case f.open > 0:
			p.takers++
		case f.settled == c.round || f.rate < level:
			p.residual -= min(f.rate, p.residual)
		default:
			c.reopen(m.flow)
			p.takers++
		}
	}
	x.level = unreached
	if x.state != clean {
		n.drop(x, clean)
	}
	switch {
	case !x.contended():
	case p.takers == 0:
		x.state = spent
	default:
		p.level = p.share()
		n.attend(l, dirty, p)
	}
}

// share is what is left for each of the takers of a link.
func (p *onLink) share() uint64 { return max(quotient(p.residual, p.takers), 1) }

// reopen has a flow looked at.
func (c *filling) reopen(i int32) {
	f := &c.claims[i]
	c.open = append(c.open, opening{f.rate, i})
	f.open = int32(len(c.open))
	c.lowest = min(c.lowest, f.rate)
}

// shut takes a flow from the open ones.
func (c *filling) shut(f *claim) {
	last := c.open[len(c.open)-1]
	c.open[f.open-1] = last
	c.claims[last.flow].open = f.open
	c.open = c.open[:len(c.open)-1]
	f.open = 0
}

// fill settles all open flows.
func (n *Network) fill() {
	c := &n.filling
	for len(c.open)+len(c.pending) > 0 {
		if c.stale {
			c.findNext()
		}
		switch {
		case c.next <= c.lowest && n.taintReached():
		case c.lowest <= c.next && n.settleBelow():
		default:
			n.saturate()
		}
	}
}

// findNext finds the level at which something happens on links.
func (c *filling) findNext() {
	c.next, c.stale = unreached, false
	for i := range c.pending {
		p := &c.pending[i]
		if p.level == 0 {
			p.level = p.share()
		}
		c.next = min(c.next, p.level)
	}
}

// taintReached finds the links on which something happens next. It makes those dirty that are not, and says whether there
// were any.
func (n *Network) taintReached() (found bool) {
	c := &n.filling
	c.reached = c.reached[:0]
	for i := range c.pending {
		if c.pending[i].level == c.next {
			c.reached = append(c.reached, c.pending[i].link)
		}
	}
	level := c.next
	for _, l := range c.reached {
		if n.links[l].state == due {
			n.taint(l, level)
			found = true
		}
	}
	return found
}

// saturate settles the open flows of the links that are full now.
func (n *Network) saturate() {
	c := &n.filling
	level := c.next
	for _, l := range c.reached {
		n.links[l].level = level
		for _, m := range n.links[l].members {
			if c.claims[m.flow].open > 0 {
				n.settle(m.flow, level)
			}
		}
	}
}

// settleBelow looks at the open flows that come to their next level before something happens on links. It says whether it
// has changed anything.
func (n *Network) settleBelow() bool {
	c := &n.filling
	changed := n.settleNext(c.next)
	for changed && c.lowest < c.next {
		n.settleNext(c.next)
	}
	return changed
}

// settleNext looks at the open flows that come to their next level first: below the given one, or to their peak there.
// It says whether more has to be done below that level.
func (n *Network) settleNext(level uint64) (found bool) {
	c := &n.filling
	at, rest := c.lowest, uint64(unreached)
	c.lowest = unreached
	for k := 0; k < len(c.open); {
		o := c.open[k]
		if o.next == at && (at < level || c.claims[o.flow].peak == at) {
			found = true
			if n.comeTo(o.flow, at) {
				continue // another is in its place now
			}
		}
		rest = min(rest, c.open[k].next)
		k++
	}
	c.lowest = min(c.lowest, rest)
	return found || at < level
}

// comeTo settles a flow at its next level, or lets it grow on, up to its peak at most.
func (n *Network) comeTo(i int32, level uint64) (settled bool) {
	c := &n.filling
	f := &c.claims[i]
	links := n.route[f.first:f.end]
	if f.peak == level {
		n.settle(i, level)
		return true
	}
	for _, l := range links {
		if n.links[l].level == level {
			n.settle(i, level)
			return true
		}
	}
	c.open[f.open-1].next = f.peak
	for _, l := range links {
		n.grow(l, level)
	}
	return false
}

// grow takes note that a flow will have more of a link than last time, from a level on.
func (n *Network) grow(l int32, level uint64) {
	switch x := &n.links[l]; {
	case x.state > due || !x.contended():
	case x.state == clean && x.level == unreached:
		x.state = watched
		n.filling.touched = append(n.filling.touched, l)
	default:
		n.taint(l, level)
	}
}

// settle fixes a flow's rate.
func (n *Network) settle(i int32, rate uint64) {
	c := &n.filling
	f := &c.claims[i]
	c.shut(f)
	last := f.rate
	f.settled, f.rate = c.round, rate
	if last != rate {
		c.moved = append(c.moved, i)
	}
	more := rough(rate) - rough(last)
	for _, l := range n.route[f.first:f.end] {
		x := &n.links[l]
		x.used += more
		switch {
		case x.state == dirty:
			n.give(x, rate)
		case last != rate && x.state <= due && x.contended():
			n.expect(l, x.level)
		}
	}
}

// give settles one of the takers of a link.
func (n *Network) give(x *link, rate uint64) {
	p := &n.filling.pending[x.place]
	p.residual -= min(rate, p.residual)
	n.filling.putOff(p)
	if p.takers--; p.takers == 0 {
		n.drop(x, spent)
	}
}

// apply gives the flows that moved their new rates.
func (n *Network) apply(now sim.Time) {
	c := &n.filling
	for _, i := range c.moved {
		f, s := &c.claims[i], &n.shares[i]
		r := rate{f.rate, c.shift}
		if f.rate == f.peak {
			r = rate{value: f.peak >> c.shift} // the same rate in the same words: a flow that was never slower keeps its finish
		}
		if s.rate == r {
			continue
		}
		slower := r.shift > 0 && (s.rate.shift == 0 || s.rate.shift == r.shift && r.value < s.rate.value)
		s.change(r, now)
		n.observeRate(i, now)
		if slower {
			s.late = true
		} else {
			n.departures.put(i, s.finish())
			s.late = false
		}
	}
}

// change sets the rate from now on.
func (s *share) change(r rate, now sim.Time) {
	s.left = s.left.less(s.rate, now-s.since)
	s.since = now
	s.rate = r
}

// finish is when nothing will be left.
func (s *share) finish() sim.Time {
	return s.since + min(s.left.at(s.rate), busy-s.since)
}
