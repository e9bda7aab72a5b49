package ccltest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/ccl"
)

// Check fails the test unless the algorithm's schedules are right: over many worlds and layouts, not pipelined and
// pipelined.
func Check(t *testing.T, a ccl.Algorithm) {
	t.Helper()
	for _, world := range Worlds() {
		for _, l := range Layouts(world) {
			if err := checkSizes(a, l); err != nil {
				t.Errorf("%s %s, layout %+v: %v", a.Collective(), a.Name(), l, err)
			}
		}
	}
}

// checkSizes checks the schedules for some sizes: fully where the depth is new, and otherwise that they are the same.
func checkSizes(a ccl.Algorithm, l ccl.Layout) error {
	known := map[int]*ccl.Schedule{} // by depth
	for _, bytes := range []int64{1, 0, 1 << 20, 1<<20 + 1, 1 << 22} {
		depth := a.Depth(l, bytes)
		if known[depth] == nil {
			known[depth] = a.Build(l, bytes)
			if err := Conforms(a, l, bytes); err != nil {
				return fmt.Errorf("%d bytes: %w", bytes, err)
			}
		} else if s := a.Build(l, bytes); !slices.Equal(s.Steps, known[depth].Steps) || s.Chunks() != known[depth].Chunks() {
			return fmt.Errorf("%d bytes: not the schedule of another size with the same depth, %d", bytes, depth)
		}
	}
	return nil
}

// Conforms builds one schedule and returns what is wrong with it, or with what the algorithm says about it.
func Conforms(a ccl.Algorithm, l ccl.Layout, bytes int64) error {
	s := a.Build(l, bytes)
	errs := []error{Verify(s), labels(a, s, l)}
	if depth := a.Depth(l, bytes); depth < 1 || depth&(depth-1) != 0 {
		errs = append(errs, fmt.Errorf("depth %d is no power of two", depth))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return bounds(s)
}

func labels(a ccl.Algorithm, s *ccl.Schedule, l ccl.Layout) error {
	if s.Algorithm != a.Name() || s.Collective != a.Collective() || s.World != l.World {
		return fmt.Errorf("schedule is labelled %s %s for %d ranks", s.Collective, s.Algorithm, s.World)
	}
	return nil
}

// bounds checks what no algorithm can do without: each chunk must be reduced n-1 times, and sent n-1 times to be
// reduced or gathered, twice that for both. (⌈log2 n⌉ messages of latency are no bound: they are for ranks that can only
// send one message at a time.)
func bounds(s *ccl.Schedule) error {
	t, others := Measure(s), s.World-1
	reduced, sent := others*s.Chunks(), others*s.Chunks()
	switch s.Collective {
	case ccl.AllReduce:
		sent *= 2
	case ccl.AllGather:
		reduced = 0
	}
	switch {
	case sum(t.Chunks) < sent:
		return fmt.Errorf("%d chunks are sent, fewer than the bound of %d", sum(t.Chunks), sent)
	case sum(t.Reduced) < reduced:
		return fmt.Errorf("%d chunks are reduced, fewer than the bound of %d", sum(t.Reduced), reduced)
	}
	return nil
}

func sum(list []int) int {
	total := 0
	for _, n := range list {
		total += n
	}
	return total
}
