package sim

import "strconv"

// Time is a point in simulated time or a span of it, in picoseconds. Its range is 106 days either way.
type Time int64

// Units of [Time].
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

var units = [...]struct {
	size   uint64
	digits int // decimal places that a whole number of picoseconds can have in this unit
	name   string
}{
	{uint64(Second), 12, "s"},
	{uint64(Millisecond), 9, "ms"},
	{uint64(Microsecond), 6, "us"},
	{uint64(Nanosecond), 3, "ns"},
	{uint64(Picosecond), 0, "ps"},
}

// String writes t exactly, in the largest unit that is not longer than t: "0s", "850ps", "1.5us", "-2.000001ms".
func (t Time) String() string {
	if t == 0 {
		return "0s"
	}
	sign, abs := "", uint64(t)
	if t < 0 {
		sign, abs = "-", -abs // two's complement: right for the smallest Time, too
	}
	for _, u := range units {
		if abs >= u.size {
			return sign + strconv.FormatUint(abs/u.size, 10) + fraction(abs%u.size, u.digits) + u.name
		}
	}
	panic("sim: unreachable: every non-zero time is at least 1 ps")
}

// fraction writes rest/10^digits with its leading point and without trailing zeros; nothing when rest is 0.
func fraction(rest uint64, digits int) string {
	if rest == 0 {
		return ""
	}
	for rest%10 == 0 {
		rest /= 10
		digits--
	}
	text := strconv.FormatUint(rest, 10)
	for len(text) < digits {
		text = "0" + text
	}
	return "." + text
}
