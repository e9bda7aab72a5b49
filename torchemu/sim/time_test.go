package sim_test

import (
	"math"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
)

func TestTimeString(t *testing.T) {
	for _, c := range []struct {
		t    sim.Time
		want string
	}{
		{0, "0s"},
		{1, "1ps"},
		{-1, "-1ps"},
		{999, "999ps"},
		{sim.Nanosecond, "1ns"},
		{1001, "1.001ns"},
		{1010, "1.01ns"},
		{1500 * sim.Nanosecond, "1.5us"},
		{sim.Millisecond - 1, "999.999999us"},
		{-2*sim.Millisecond - 1000, "-2.000001ms"},
		{sim.Second, "1s"},
		{90 * sim.Second, "90s"},
		{sim.Second + 1, "1.000000000001s"},
		{math.MaxInt64, "9223372.036854775807s"},
		{math.MinInt64, "-9223372.036854775808s"},
	} {
		if got := c.t.String(); got != c.want {
			t.Errorf("Time(%d).String() = %q, want %q", int64(c.t), got, c.want)
		}
	}
}
