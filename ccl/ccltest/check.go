package ccltest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// Check fails the test unless the algorithm's schedules are right: over many worlds and layouts, not pipelined and
// pipelined.
func Check(t *testing.T, a ccl.Algorithm) {
	t.Helper()
	for _, world := range Worlds() {
		if testing.Short() && world > 9 {
			break
		}
		good := []*ccl.Schedule{} // most algorithms build the same for all layouts of a world
		for _, l := range Layouts(world) {
			for _, l.Root = range Roots(a.Collective(), world) {
				var err error
				if good, err = checkSizes(a, l, good); err != nil {
					t.Errorf("%s %s, layout %+v: %v", a.Collective(), a.Name(), l, err)
				}
			}
		}
	}
}

// checkSizes checks the schedules for some sizes, unless they are among those already found good, and that all sizes of
// one depth have the same. It returns the good ones.
func checkSizes(a ccl.Algorithm, l ccl.Layout, good []*ccl.Schedule) ([]*ccl.Schedule, error) {
	byDepth := map[int]*ccl.Schedule{}
	for _, bytes := range []int64{1, 0, 1 << 20, 1<<20 + 1, 1 << 22} {
		s, depth := a.Build(l, bytes), a.Depth(l, bytes)
		if other := byDepth[depth]; other != nil && !same(s, other) {
			return good, fmt.Errorf("%d bytes: not the schedule of another size with the same depth, %d", bytes, depth)
		}
		byDepth[depth] = s
		if slices.ContainsFunc(good, func(g *ccl.Schedule) bool { return same(s, g) }) {
			continue
		}
		if err := Conforms(a, l, bytes); err != nil {
			return good, fmt.Errorf("%d bytes: %w", bytes, err)
		}
		good = append(good, s)
	}
	return good, nil
}

// same tells whether two schedules of one algorithm and world are equal; the counts of waits follow from the edges.
func same(a, b *ccl.Schedule) bool {
	return a.Blocks == b.Blocks && a.Sub == b.Sub && a.Root == b.Root && a.InTurn == b.InTurn && a.Queued == b.Queued &&
		slices.Equal(a.Listed, b.Listed) && slices.EqualFunc(a.Groups, b.Groups, slices.Equal) && slices.Equal(a.Steps, b.Steps) && slices.Equal(a.Rounds, b.Rounds) &&
		slices.Equal(a.Edges, b.Edges) && slices.Equal(a.EdgeStart, b.EdgeStart)
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
	root := 0
	if s.Collective.Rooted() {
		root = l.Root
	}
	if s.Root != root {
		return fmt.Errorf("schedule has root %d, want %d", s.Root, root)
	}
	return nil
}

// bounds checks what no algorithm can do without: each chunk must be reduced n-1 times, and sent n-1 times to be
// reduced, gathered by all or broadcast, twice that to be reduced and gathered; for a root alone to gather or scatter
// each of the others' chunks must be sent once, and so must n-1 of all n ranks' chunks in an exchange. (⌈log2 n⌉ messages
// of latency are no bound: they are for ranks that can only send one message at a time.)
func bounds(s *ccl.Schedule) error {
	t, others := Measure(s), s.World-1
	reduced, sent := 0, others*s.Chunks()
	switch s.Collective {
	case collective.AllReduce:
		reduced, sent = sent, 2*sent
	case collective.ReduceScatter, collective.Reduce:
		reduced = sent
	case collective.Gather, collective.Scatter:
		sent = others * s.Sub
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
