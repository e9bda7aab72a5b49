package ccl_test

import (
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/ccltest"
)

// FuzzSchedule checks any algorithm, in any world with any groups, some root, for a vector of any size.
func FuzzSchedule(f *testing.F) {
	f.Add(uint8(4), int64(1), uint8(0), []byte{0, 0, 1, 1})
	f.Add(uint8(1), int64(0), uint8(3), []byte{})
	f.Add(uint8(7), int64(1<<40), uint8(7), []byte{2, 2, 2, 9})
	f.Add(uint8(33), int64(1<<20), uint8(6), []byte{4})
	f.Fuzz(func(t *testing.T, world uint8, bytes int64, algorithm uint8, groups []byte) {
		all := everyAlgorithm()
		a := all[int(algorithm)%len(all)]
		l := ccl.Layout{World: 1 + int(world)%40}
		if a.Collective().Rooted() {
			l.Root = int(algorithm) / len(all) * 5 % l.World
		}
		if len(groups) > 0 {
			l.Group = make([]int, l.World)
			for r := range l.Group {
				l.Group[r] = int(groups[r%len(groups)]) // dealt round robin
			}
			l.W, l.H = int(groups[0]), l.World/max(1, int(groups[0])) // often no torus of that world
		}
		if err := ccltest.Conforms(a, l, bytes); err != nil {
			t.Errorf("%s %s, layout %+v, %d bytes: %v", a.Collective(), a.Name(), l, bytes, err)
		}
	})
}
