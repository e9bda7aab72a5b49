package network

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// picobytes is an amount of work: 10^-12 bytes are what a rate of 1 byte per second moves in 1 ps.
type picobytes struct{ hi, lo uint64 }

// rate is a speed of value/2^shift bytes per second. value is less than 2^63.
type rate struct {
	value uint64
	shift uint8
}

// perSecond is the rate in bytes per second.
func (r rate) perSecond() float64 { return math.Ldexp(float64(r.value), -int(r.shift)) }

// amount is bytes as work.
func amount(bytes int64) picobytes {
	hi, lo := bits.Mul64(uint64(bytes), 1e12)
	return picobytes{hi, lo}
}

// each is the part of w that goes over one of so many lanes, rounded to the nearest picobyte.
func (w picobytes) each(lanes uint32) picobytes {
	n := uint64(lanes)
	lo, carry := bits.Add64(w.lo, n/2, 0)
	hi := w.hi + carry
	lo, _ = bits.Div64(hi%n, lo, n)
	return picobytes{hi / n, lo}
}

// less is what is left of w after some time at a rate. It does not fall below zero.
func (w picobytes) less(r rate, t sim.Time) picobytes {
	hi, lo := bits.Mul64(r.value, uint64(t))
	lo = lo>>r.shift | hi<<(64-r.shift)
	hi >>= r.shift
	lo, borrow := bits.Sub64(w.lo, lo, 0)
	hi, borrow = bits.Sub64(w.hi, hi, borrow)
	if borrow != 0 {
		return picobytes{}
	}
	return picobytes{hi, lo}
}

// at is how long w takes at a rate, rounded to the nearest picosecond, halves up; busy when a Time cannot hold that.
//
// A rate with a shift is a fair share, which was rounded to its last bit. So that a time of exactly a half does not
// fall to one side or the other by chance, halves begin a millionth of a picosecond early then.
func (w picobytes) at(r rate) sim.Time {
	half := r.value / 2
	if r.shift > 0 {
		half += r.value >> 20
	}
	hi := w.hi<<r.shift | w.lo>>(64-r.shift)
	lo, carry := bits.Add64(w.lo<<r.shift, half, 0)
	hi += carry
	if bits.LeadingZeros64(w.hi) <= int(r.shift) || hi >= r.value { // the quotient does not fit 64 bits
		return busy
	}
	t, _ := bits.Div64(hi, lo, r.value)
	return sim.Time(min(t, uint64(busy)))
}

// quotient is a/b, for a less than 2^63. Where links are shared, b is small and known for many a: to multiply is three times
// as fast as to divide.
func quotient(a uint64, b uint32) uint64 {
	if b >= uint32(len(inverses)) {
		return a / uint64(b)
	}
	q, _ := bits.Mul64(a, inverses[b])
	if a-q*uint64(b) >= uint64(b) {
		q++
	}
	return q
}

// inverses[b] is a little less than 2^64/b, so little that quotients are at most 1 too small.
var inverses = func() (list [256]uint64) {
	for b := uint64(1); b < uint64(len(list)); b++ {
		list[b] = math.MaxUint64 / b
	}
	return list
}()

// pace is a rate in bytes per second. It remembers the last time that was asked of it, which saves a division: the
// messages of a collective are alike.
type pace struct {
	rate  uint64
	bytes int64
	took  sim.Time
}

// time is how long bytes take that go at this pace on each of so many lanes, rounded to the nearest picosecond.
func (p *pace) time(bytes int64, lanes uint32) sim.Time {
	if p.bytes != bytes {
		p.bytes, p.took = bytes, transmission(bytes, p.rate*uint64(lanes))
	}
	return p.took
}

func transmission(bytes int64, bytesPerSecond uint64) sim.Time {
	t := amount(bytes).at(rate{value: bytesPerSecond})
	if t == busy {
		panic(fmt.Sprintf("network: %d bytes at %d bytes per second take longer than the 106 days that a time can hold",
			bytes, bytesPerSecond))
	}
	return t
}
