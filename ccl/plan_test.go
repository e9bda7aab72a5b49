package ccl

import (
	"testing"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// A plan must know how many steps it is going to add: not fewer than there are, and no more than twice as many.
func TestPlansKnowTheirSteps(t *testing.T) {
	for _, c := range []collective.Kind{collective.AllReduce, collective.AllGather, collective.ReduceScatter} {
		for _, a := range Algorithms(c) {
			for world := 1; world <= 40; world++ {
				checkSteps(t, a.(plan), Layout{World: world}, 1)
				checkSteps(t, a.(plan), Layout{World: world, Group: remainders(world, 3)}, 1<<24)
				checkSteps(t, a.(plan), Layout{World: world, Group: remainders(world, 7), W: world, H: 1}, 1<<20)
			}
		}
	}
}

func checkSteps(t *testing.T, p plan, l Layout, bytes int64) {
	t.Helper()
	expected, got := p.steps(l, p.Depth(l, bytes)).steps, len(p.Build(l, bytes).Steps)
	if got > expected || expected > 2*got {
		t.Errorf("%s %s, layout %+v: expected %d steps, there are %d", p.collective, p.name, l, expected, got)
	}
}

// remainders makes groups of ranks that differ by multiples of n.
func remainders(world, n int) []int {
	groups := make([]int, world)
	for r := range groups {
		groups[r] = r % n
	}
	return groups
}
