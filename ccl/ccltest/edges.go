package ccltest

import (
	"errors"
	"fmt"

	"github.com/torchemu/torchemu/ccl"
)

// A dependency is one edge with both its ends.
type dependency struct {
	from, to int
	gate     ccl.Gate
}

// A chunkAt is one chunk at one rank.
type chunkAt struct{ rank, chunk int }

// Edges checks that a schedule's edges are its read-after-write dependencies, each once and no others. The schedule's
// structure must be sound.
func Edges(s *ccl.Schedule) error {
	want := dependencies(s)
	var errs []error
	for i := range s.Steps {
		for _, e := range s.Edges[s.EdgeStart[i]:s.EdgeStart[i+1]] {
			d := dependency{i, e.To(), e.Gate()}
			if !want[d] {
				errs = append(errs, fmt.Errorf("step %d waits at gate %d for step %d, without need or twice", d.to, d.gate, d.from))
			}
			delete(want, d)
		}
	}
	if len(want) > 0 {
		errs = append(errs, fmt.Errorf("%d edges are missing, among them %+v", len(want), first(want)))
	}
	return errors.Join(errs...)
}

// first returns the dependency that comes first, so that messages do not change from run to run.
func first(set map[dependency]bool) dependency {
	best := dependency{to: -1}
	for d := range set {
		if best.to < 0 || d.to < best.to || d.to == best.to && d.from < best.from {
			best = d
		}
	}
	return best
}

// dependencies finds them chunk by chunk from who wrote last.
func dependencies(s *ccl.Schedule) map[dependency]bool {
	found := map[dependency]bool{}
	writer := map[chunkAt]int{}
	depend := func(i int, g ccl.Gate, at chunkAt) {
		if w, ok := writer[at]; ok {
			found[dependency{w, i, g}] = true
		}
	}
	for k := range s.Rounds {
		lo, hi := round(s, k)
		for i := lo; i < hi; i++ {
			step := s.Steps[i]
			for place := step.Lo; place < step.Hi && !step.FromInput; place++ {
				depend(i, ccl.GateSend, chunkAt{int(step.Src), s.Chunk(place)})
			}
		}
		for i := lo; i < hi; i++ {
			step := s.Steps[i]
			for place := step.Lo; place < step.Hi; place++ {
				for _, rank := range written(s, step) {
					at := chunkAt{int(rank), s.Chunk(place)}
					if step.Kind == ccl.Reduce {
						depend(i, ccl.GateCombine, at)
					}
					writer[at] = i
				}
			}
		}
	}
	return found
}
