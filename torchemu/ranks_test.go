package torchemu_test

import (
	"testing"

	"github.com/torchemu/torchemu/torchemu"
)

func TestRanksInMessages(t *testing.T) {
	even := make(torchemu.Ranks, 20)
	for i := range even {
		even[i] = 2 * i
	}
	for _, k := range []struct {
		ranks torchemu.Ranks
		want  string
	}{
		{nil, "no rank"},
		{torchemu.Ranks{3}, "rank 3"},
		{torchemu.Ranks{0, 1}, "ranks 0 and 1"},
		{torchemu.Ranks{0, 1, 2}, "ranks 0-2"},
		{torchemu.Ranks{0, 2, 3}, "ranks 0, 2 and 3"},
		{torchemu.Ranks{0, 1, 2, 5, 7, 8, 9, 10}, "ranks 0-2, 5 and 7-10"},
		{even, "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 12 more"},
	} {
		if got := k.ranks.String(); got != k.want {
			t.Errorf("%v: got %q, want %q", []int(k.ranks), got, k.want)
		}
	}
}
