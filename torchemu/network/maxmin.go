package network

import (
	"math/bits"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// Max-min fair rates come from progressive filling: all flows grow together until a link is full, or a flow has reached
// its peak; these flows stay at that level while the others grow on. Here the filling of one instant repeats that of
// the one before as far as nothing has changed.
//
// A link is clean as long as all that has happened on it, from level 0 up to the present one, is what happened last
// time. It is dirty from level 0 on when flows came or went on it, and from the level on at which a flow over it first
// did something else than last time. What a clean link does at a level is known: if it was full there last time it is
// full there again, and its flows keep their rates. So only flows over dirty links are open, that is, have to be looked
// at; and a flow that ends with another rate than it had makes its other links dirty.
//
//   - An open flow comes to its last rate. If a clean link, full at this level, holds it there, or its peak does, it is
//     settled. If not it grows on, which is new: its links are dirty from this level on.
//   - A dirty link is full. Its open flows are settled at this level. For those that went on last time that is new, and
//     their links are dirty from this level on.
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

	open      []int32 // flows to look at; settled ones are dropped when they are come upon
	left      int     // open ones that are not settled
	lowest    uint64  // no open flow has a lower next
	dirty     []dirt
	saturated []int32 // of dirty
	moved     []int32 // flows that were settled at another rate than they had
}

// claim is what filling needs to know of a flow that shares links.
type claim struct {
	rate    uint64
	peak    uint64
	next    uint64 // of an open flow: the level at which it may settle by itself, its last rate or its peak
	settled uint64 // the last round that settled it
	first   int32  // it is on the links Network.route[first:end]
	end     int32
	open    bool
}

// dirt is the state of a dirty link.
type dirt struct {
	residual uint64 // bandwidth that is not given away yet
	share    uint64 // of it for each of the takers; 0: to be worked out
	level    uint64 // at which the link was full; never full before that
	takers   uint32 // open flows
	link     int32
}

// unreached is a level above all.
const unreached = 1<<64 - 1

// mostShift leaves room for a link of a byte per second.
const mostShift = 62

// rerate computes new rates where flows came or went.
func (n *Network) rerate(now sim.Time) {
	c := &n.filling
	c.round++
	c.open, c.dirty, c.moved = c.open[:0], c.dirty[:0], c.moved[:0]
	c.lowest = unreached
	for k := 0; k < len(n.changed); k++ {
		n.makeRoom(n.links[n.changed[k]].capacity)
	}
	for _, l := range n.changed {
		n.links[l].changed = false
		n.taint(l, 0)
	}
	n.changed = n.changed[:0]
	n.fill()
	for i := range c.dirty {
		x := &n.links[c.dirty[i].link]
		x.dirt, x.level = 0, c.dirty[i].level
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
			n.noteChange(int32(l))
		}
	}
}

// taint makes a clean link dirty from a level on. A link that is not contended any more constrains nobody: only those
// are opened whom it may have held back.
func (n *Network) taint(l int32, level uint64) {
	c, x := &n.filling, &n.links[l]
	d := dirt{link: l, residual: x.capacity << c.shift, level: unreached}
	for _, m := range x.members {
		f := &c.claims[m.flow]
		switch {
		case f.open:
			d.takers++
		case f.settled == c.round || f.rate < level:
			d.residual -= min(f.rate, d.residual)
		default:
			c.reopen(m.flow)
			d.takers++
		}
	}
	x.level = unreached
	if x.contended() {
		c.dirty = append(c.dirty, d)
		x.dirt = int32(len(c.dirty))
	}
}

// reopen has a flow looked at.
func (c *filling) reopen(i int32) {
	f := &c.claims[i]
	f.open, f.next = true, f.rate
	c.lowest = min(c.lowest, f.next)
	c.open = append(c.open, i)
	c.left++
}

// fill settles all open flows.
func (n *Network) fill() {
	c := &n.filling
	for c.left > 0 {
		level := c.nextLevel()
		if c.lowest <= level && n.settleBelow(level) {
			continue
		}
		for _, i := range c.saturated {
			c.dirty[i].level = level
			for _, m := range n.links[c.dirty[i].link].members {
				if c.claims[m.flow].open {
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
	dirty := len(c.dirty)
	changed := n.settleNext(level)
	for changed && c.lowest < level && len(c.dirty) == dirty {
		n.settleNext(level)
	}
	return changed
}

// nextLevel finds the level at which the next dirty links are full, and these links.
func (c *filling) nextLevel() uint64 {
	level := uint64(unreached)
	c.saturated = c.saturated[:0]
	for i := range c.dirty {
		d := &c.dirty[i]
		if d.takers == 0 {
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
			c.saturated = append(c.saturated, int32(i))
		}
	}
	return level
}

// settleNext looks at the open flows that come to their next level first: below the given one, or to their peak there.
// It says whether more has to be done below that level.
func (n *Network) settleNext(level uint64) (found bool) {
	c := &n.filling
	at, rest := c.lowest, uint64(unreached)
	c.lowest = unreached
	for k := 0; k < len(c.open); {
		i := c.open[k]
		f := &c.claims[i]
		if !f.open {
			last := len(c.open) - 1
			c.open[k] = c.open[last]
			c.open = c.open[:last]
			continue
		}
		if f.next == at && (at < level || f.peak == at) {
			found = true
			n.comeTo(i, at)
		}
		if f := &c.claims[i]; f.open {
			rest = min(rest, f.next)
		}
		k++
	}
	c.lowest = min(c.lowest, rest)
	return found || at < level
}

// comeTo settles a flow at its next level, or lets it grow on, up to its peak at most.
func (n *Network) comeTo(i int32, level uint64) {
	c := &n.filling
	f := &c.claims[i]
	links := n.route[f.first:f.end]
	if f.peak == level {
		n.settle(i, level)
		return
	}
	for _, l := range links {
		if n.links[l].level == level {
			n.settle(i, level)
			return
		}
	}
	f.next = f.peak
	for _, l := range links {
		if x := &n.links[l]; x.dirt == 0 && x.contended() {
			n.taint(l, level)
		}
	}
}

// settle fixes a flow's rate.
func (n *Network) settle(i int32, rate uint64) {
	c := &n.filling
	f := &c.claims[i]
	moved := f.rate != rate
	f.open, f.settled, f.rate = false, c.round, rate
	c.left--
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
		case moved && x.contended():
			n.taint(l, rate)
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
