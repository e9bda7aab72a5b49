package network

import (
	"math/bits"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// Max-min fair rates are what progressive filling gives: all flows grow together until a link is full, or a flow has
// reached its peak; these flows stay at that level while the others grow on. A link's level is where it gets full, and a
// flow's rate is the least of its peak and the levels of its links.
//
// What a flow demands of a link is what its peak and its other links leave to it. The level of a link follows from the
// demands of its flows: it is the least one that is the bandwidth without what those take who demand less, divided by the
// number of the others and rounded down. If there is none, the link can meet all demands.
//
// Levels and rates that fit one another in this way are those of progressive filling, to the last bit. For take two such
// solutions, and the least rate that a flow has in one of them and not in the other, where it has more. In the one a link
// is full at that rate. Whoever has less there has the same in both, so that the link's level is no higher in the other,
// and the flow cannot have more.
//
// So it does not matter how the solution is found, and each is made of the one before. A link is stale when flows over it
// came or went, or got another rate from another link. Its level is worked out anew, and if its flows get other rates from
// that their other links are stale. The stale link with the lowest level comes first: since levels follow from lower ones,
// few links are stale twice. It ends: the links that are lowest in the solution have their level for good once they have
// been looked at; after that, those that come next.

// filling is the working memory for that. Rates and levels are whole numbers here, in units of 2^-shift bytes per second;
// shift leaves room for the widest link that has been shared. They are kept with one bit more, the lowest: it is set in
// levels and in the rates that follow from them, and not in peaks. So a peak is below a level that is as high: nothing is
// lost by rounding for a flow that comes to its peak.
type filling struct {
	shift  uint8
	rates  []uint64 // by flow
	claims []claim  // by flow

	stale   agenda
	demands []demand // on the link that is looked at
	moved   []int32  // flows that got another rate, some of them several times
}

// claim is what else filling needs to know of a flow that shares links.
type claim struct {
	peak  uint64
	first int32 // it is on the links Network.route[first:end]
	end   int32
}

// demand is what a flow demands of a link.
type demand struct {
	rate uint64
	flow int32
}

// unreached is a level above all.
const unreached = 1<<64 - 1

// mostShift leaves room for a link of a byte per second.
const mostShift = 62

// rerate computes new rates where flows came or went.
func (n *Network) rerate(now sim.Time) {
	c := &n.filling
	c.moved = c.moved[:0]
	for k := 0; k < len(n.changed); k++ {
		n.makeRoom(n.links[n.changed[k]].capacity)
	}
	for _, l := range n.changed {
		x := &n.links[l]
		x.changed = false
		if x.spare = c.spare(x); x.spare < 0 {
			c.expire(x, l)
		}
	}
	n.changed = n.changed[:0]
	for len(c.stale) > 0 {
		n.relevel(c.stale.pop())
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
	less := c.shift - shift
	c.shift = shift
	for _, d := range n.departures.heap {
		c.rates[d.flow] = shorten(c.rates[d.flow], less)
		c.claims[d.flow].peak = shorten(c.claims[d.flow].peak, less)
	}
	for l := range n.links {
		x := &n.links[l]
		if x.level != unreached {
			x.level = shorten(x.level, less)
		}
		if x.contended() {
			n.noteChange(int32(l))
		}
	}
}

// shorten takes fraction bits from a rate or level.
func shorten(rate uint64, bits uint8) uint64 { return rate>>bits&^1 | rate&1 }

// link.spare is by how much rates over a link may grow, in units of 2^roughBits, until it may be full. Where every change
// matters, since it is full, that is -aside/2; and aside is added as long as the link is stale, when none does. So it is
// more than aside/4 only for stale links, and for those that are not contended.
const (
	roughBits = 24
	aside     = 1 << 62
)

// rough is a rate in these units, rounded up: a link may be full although each flow leaves a little less than 1 of it. The
// rates of a million flows add up to less than aside/2.
func rough(rate uint64) int64 { return int64(rate>>1>>roughBits) + 1 }

// spare works out link.spare.
func (c *filling) spare(x *link) int64 {
	switch {
	case x.level != unreached:
		return -aside / 2
	case !x.contended():
		return aside
	}
	left := int64(x.capacity << c.shift >> roughBits)
	for _, m := range x.members {
		left -= rough(c.rates[m.flow])
	}
	return left
}

// expire makes a link stale that has nothing to spare.
func (c *filling) expire(x *link, l int32) {
	if x.level == unreached && !x.contended() {
		x.spare = aside // it was not counted
		return
	}
	x.spare += aside
	level := x.level
	if level == unreached {
		level = quotient(x.capacity<<c.shift, uint32(len(x.members))) << 1 // it cannot be full before
	}
	c.stale.push(expired{level, l})
}

// relevel works out the level of a stale link, and gives its flows the rates that follow.
func (n *Network) relevel(l int32) {
	c, x := &n.filling, &n.links[l]
	if x.spare >= aside { // it was nearly full, but other flows have become slower since
		x.spare -= aside
		return
	}
	switch left, share, isApart := c.divide(x); {
	case !isApart:
		n.findAllDemands(x)
		x.level = c.level(x.capacity << c.shift)
	case share > x.level:
		n.findDemands(x)
		x.level = c.level(left)
	default:
		x.level = share
	}
	n.assign(x.level)
	x.spare = c.spare(x)
}

// divide lists the takers of a link, which are the flows that it has held back, and those that come with more, and what they
// have. It returns what the others leave to them, the level if they take all of that, and whether the takers
// are apart: whether the others demand less than the link's next level whatever the takers demand.
//
// For if one of the others were not below that level the level would be no more than the share, by which the takers alone
// could go, but for being rounded down: by less than the number of all flows.
func (c *filling) divide(x *link) (left, share uint64, isApart bool) {
	if x.level == unreached {
		return 0, 0, false
	}
	flows := len(x.members)
	demands := slices.Grow(c.demands[:0], flows)[:flows]
	count, sum, most, carries := uint64(0), uint64(0), uint64(0), uint64(0)
	for _, m := range x.members { // without a branch, for no processor can predict who takes
		rate := c.rates[m.flow]
		_, less := bits.Sub64(rate, x.level, 0)
		demands[count] = demand{rate, m.flow}
		count += 1 - less
		rate = rate >> 1 & -less
		most = max(most, rate)
		sum, less = bits.Add64(sum, rate, 0)
		carries += less
	}
	c.demands = demands[:count]
	whole := x.capacity << c.shift
	if count == 0 || carries > 0 || sum > whole {
		return 0, 0, false
	}
	left = whole - sum
	each := quotient(left, uint32(count))
	return left, each<<1 | 1, most+uint64(flows) < each
}

// findDemands works out what those of the listed takers of a link demand that it has held back.
func (n *Network) findDemands(x *link) {
	for k := range n.filling.demands {
		d := &n.filling.demands[k]
		if d.rate == x.level {
			d.rate = n.demand(d.flow)
		}
	}
}

// findAllDemands lists what all flows of a link demand of it. Whoever it has not held back has what it demands.
func (n *Network) findAllDemands(x *link) {
	c := &n.filling
	c.demands = c.demands[:0]
	for _, m := range x.members {
		rate := c.rates[m.flow]
		if rate == x.level {
			rate = n.demand(m.flow)
		}
		c.demands = append(c.demands, demand{rate, m.flow})
	}
}

// demand is what a flow's peak and its links leave to it. Stale ones do not count, one of which is looked at now: if others
// of them leave less they will say so.
func (n *Network) demand(i int32) uint64 {
	f := &n.filling.claims[i]
	least := f.peak
	for _, l := range n.route[f.first:f.end] {
		if x := &n.links[l]; x.spare < aside/4 {
			least = min(least, x.level)
		}
	}
	return least
}

// level is the level at which the listed demands use up a bandwidth.
func (c *filling) level(bandwidth uint64) uint64 {
	level, left, takers := uint64(0), bandwidth, uint64(len(c.demands))
	for takers > 0 {
		next := max(quotient(left, uint32(takers)), 1)<<1 | 1
		if next == level {
			return level
		}
		level, left, takers = next, bandwidth, 0
		for _, d := range c.demands {
			_, less := bits.Sub64(d.rate, level, 0)
			takers += 1 - less
			left -= d.rate >> 1 & -less
		}
	}
	return unreached
}

// assign gives the listed flows what they demand, up to a level, and makes the other links stale to which that matters.
func (n *Network) assign(level uint64) {
	c, links := &n.filling, n.links
	for _, d := range c.demands {
		rate, last := min(d.rate, level), c.rates[d.flow]
		if rate == last {
			continue
		}
		c.rates[d.flow] = rate
		c.moved = append(c.moved, d.flow)
		more := rough(rate) - rough(last)
		f := &c.claims[d.flow]
		for _, l := range n.route[f.first:f.end] {
			x := &links[l]
			if x.spare -= more; x.spare < 0 {
				c.expire(x, l)
			}
		}
	}
}

// apply gives the flows that moved their new rates.
func (n *Network) apply(now sim.Time) {
	c := &n.filling
	for _, i := range c.moved {
		s, value := &n.shares[i], c.rates[i]>>1
		r := rate{value, c.shift}
		if atPeak := c.rates[i]&1 == 0; atPeak {
			r = rate{value: value >> c.shift} // the same rate in the same words: a flow that was never slower keeps its finish
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
