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
//     settled. If not it grows on, which is new: its links are dirty from this level on.
//   - A dirty link is full. Its open flows are settled at this level. For those that went on last time that is new: it
//     leaves more to others, on its clean links. These are due where they were full, and not at all if they were not.
//
// That this gives, bit by bit, what filling everything from 0 gives, follows by induction over the levels: a link's level
// is a function of its bandwidth, of the rates of its flows that are settled at lower levels, and of the number of the
// others, and for clean links none of these differs. Levels are sums and quotients of whole numbers, so it does not
// matter in which order they are worked out. Links that are full at one level give it to their flows together: dividing
// rounds down, so that one of them, looked at after another's flows are settled, might seem to have a little left.

// filling is the working memory of progressive filling. Rates are whole numbers here, in units of 2^-shift bytes per
// second; shift leaves room for the widest link that has been shared.
type filling struct {
	shift uint8
	round uint64 // counts fillings; marks the flows that one has settled

	claims []claim // by flow

	open      []opening
	lowest    uint64  // no open flow has a lower next
	due       []int32 // clean links that get dirty at link.due
	dirty     []dirt  // links of which open flows take
	saturated []int32
	tainted   []int32 // all dirty links
	moved     []int32 // flows that were settled at another rate than they had
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

// dirt is the state of a dirty link.
type dirt struct {
	residual uint64 // bandwidth that is not given away yet
	share    uint64 // of it for each of the takers; 0: to be worked out
	takers   uint32 // open flows
	link     int32
}

// settledDirt is in the place of a dirty link's state when no open flow takes of it any more.
const settledDirt = -1

// unreached is a level above all.
const unreached = 1<<64 - 1

// mostShift leaves room for a link of a byte per second.
const mostShift = 62

// rerate computes new rates where flows came or went.
func (n *Network) rerate(now sim.Time) {
	c := &n.filling
	c.round++
	c.dirty, c.tainted, c.moved = c.dirty[:0], c.tainted[:0], c.moved[:0]
	c.lowest = unreached
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
	for _, l := range c.tainted {
		n.links[l].dirt = 0
	}
	n.apply(now)
}

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
		if n.links[l].contended() {
			n.links[l].level = 0 // in the old unit it says nothing
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

// expect has a link get dirty at a level, unless it does so before.
func (n *Network) expect(l int32, level uint64) {
	x := &n.links[l]
	if level >= x.due {
		return
	}
	if x.due == unreached {
		n.filling.due = append(n.filling.due, l)
	}
	x.due = level
}

// nextDue finds the level at which the next clean links get dirty.
func (n *Network) nextDue() uint64 {
	c, level := &n.filling, uint64(unreached)
	for i := 0; i < len(c.due); {
		at := n.links[c.due[i]].due
		if at == unreached { // it is dirty already
			c.due[i] = c.due[len(c.due)-1]
			c.due = c.due[:len(c.due)-1]
			continue
		}
		level = min(level, at)
		i++
	}
	return level
}

// taintDue makes the links dirty that are due at a level.
func (n *Network) taintDue(level uint64) {
	for _, l := range n.filling.due {
		if n.links[l].due == level {
			n.taint(l, level)
		}
	}
}

// taint makes a clean link dirty from a level on. A link that is not contended any more constrains nobody: only those
// are opened whom it may have held back.
func (n *Network) taint(l int32, level uint64) {
	c, x := &n.filling, &n.links[l]
	d := dirt{link: l, residual: x.capacity << c.shift}
	for _, m := range x.members {
		f := &c.claims[m.flow]
		switch {
		case f.open > 0:
			d.takers++
		case f.settled == c.round || f.rate < level:
			d.residual -= min(f.rate, d.residual)
		default:
			c.reopen(m.flow)
			d.takers++
		}
	}
	x.level, x.due = unreached, unreached
	if x.contended() {
		c.dirty = append(c.dirty, d)
		c.tainted = append(c.tainted, l)
		x.dirt = int32(len(c.dirty))
	}
}

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
	for len(c.open)+len(c.due) > 0 {
		level, due := n.nextLevel(), n.nextDue()
		if due <= level && due <= c.lowest {
			n.taintDue(due)
			continue
		}
		if c.lowest <= level && n.settleBelow(min(level, due)) {
			continue
		}
		for _, l := range c.saturated {
			n.links[l].level = level
			for _, m := range n.links[l].members {
				if c.claims[m.flow].open > 0 {
					n.settle(m.flow, level)
				}
			}
		}
	}
}

// settleBelow looks at the open flows that come to their next level before others are full: as long as no other link
// gets dirty, links are full at this level or later. It says whether it has changed anything.
func (n *Network) settleBelow(level uint64) bool {
	c := &n.filling
	tainted := len(c.tainted)
	changed := n.settleNext(level)
	for changed && c.lowest < level && len(c.tainted) == tainted {
		n.settleNext(level)
	}
	return changed
}

// nextLevel finds the level at which the next dirty links are full, and these links.
func (n *Network) nextLevel() uint64 {
	c, level := &n.filling, uint64(unreached)
	c.saturated = c.saturated[:0]
	for i := 0; i < len(c.dirty); i++ {
		d := &c.dirty[i]
		if d.takers == 0 {
			n.dropDirt(i)
			i--
			continue
		}
		if d.share == 0 {
			d.share = max(d.residual/uint64(d.takers), 1)
		}
		if d.share < level {
			level = d.share
			c.saturated = c.saturated[:0]
		}
		if d.share == level {
			c.saturated = append(c.saturated, d.link)
		}
	}
	return level
}

// dropDirt forgets the state of a dirty link without takers.
func (n *Network) dropDirt(i int) {
	c := &n.filling
	last := c.dirty[len(c.dirty)-1]
	n.links[last.link].dirt = int32(i + 1)
	n.links[c.dirty[i].link].dirt = settledDirt
	c.dirty[i] = last
	c.dirty = c.dirty[:len(c.dirty)-1]
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
		if x := &n.links[l]; x.dirt == 0 && x.contended() {
			n.taint(l, level)
		}
	}
	return false
}

// settle fixes a flow's rate.
func (n *Network) settle(i int32, rate uint64) {
	c := &n.filling
	f := &c.claims[i]
	moved := f.rate != rate
	c.shut(f)
	f.settled, f.rate = c.round, rate
	if moved {
		c.moved = append(c.moved, i)
	}
	for _, l := range n.route[f.first:f.end] {
		x := &n.links[l]
		switch {
		case x.dirt > 0:
			d := &c.dirty[x.dirt-1]
			d.takers--
			d.residual -= min(rate, d.residual)
			d.share = 0
		case moved && x.dirt == 0 && x.contended():
			n.expect(l, x.level)
		}
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
		s.change(r, now)
		n.observeRate(i, now)
		n.departures.put(i, s.finish)
	}
}

// change sets the rate from now on.
func (s *share) change(r rate, now sim.Time) {
	if s.rate == r {
		return
	}
	s.left = s.left.less(s.rate, now-s.since)
	s.since = now
	s.rate = r
	s.finish = now + min(s.left.at(r), busy-now)
}
