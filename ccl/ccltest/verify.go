package ccltest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/ccl"
)

// Verify returns all that is wrong with a schedule, or nil: its structure, the edges, and what every rank ends with.
func Verify(s *ccl.Schedule) error {
	if err := structure(s); err != nil {
		return err // what follows relies on it
	}
	return errors.Join(Edges(s), results(s))
}

// structure checks that all numbers are in range and all lists have the lengths they must have.
func structure(s *ccl.Schedule) error {
	return errors.Join(shape(s), steps(s), rounds(s), adjacency(s))
}

func shape(s *ccl.Schedule) error {
	switch {
	case s.World < 1 || s.Blocks < 1 || s.Sub < 1:
		return fmt.Errorf("%d ranks, %d blocks, %d chunks a block: each must be at least 1", s.World, s.Blocks, s.Sub)
	case s.Root < 0 || s.Root >= s.World:
		return fmt.Errorf("rank %d is the root of %d ranks", s.Root, s.World)
	}
	if s.Collective.Blocks(s.World) > 0 && s.Blocks != s.World {
		return fmt.Errorf("%s over %d ranks has %d blocks: there must be one a rank", s.Collective, s.World, s.Blocks)
	}
	return nil
}

func steps(s *ccl.Schedule) error {
	var errs []error
	for i, step := range s.Steps {
		src, dst, lo, hi := int(step.Src), int(step.Dst), int(step.Lo), int(step.Hi)
		if min(src, dst) < 0 || max(src, dst) >= s.World {
			errs = append(errs, fmt.Errorf("step %d goes from rank %d to rank %d of %d", i, src, dst, s.World))
		}
		listed := lo >= s.Chunks() && hi <= s.Chunks()+len(s.Listed)
		if lo < 0 || lo >= hi || hi > s.Chunks() && !listed {
			errs = append(errs, fmt.Errorf("step %d moves chunks [%d, %d) of %d", i, lo, hi, s.Chunks()))
		}
		switch step.Kind {
		case ccl.Copy, ccl.Reduce:
		case ccl.Multicast, ccl.ReduceInSwitch:
			errs = append(errs, inSwitch(s, i))
		default:
			errs = append(errs, fmt.Errorf("step %d has kind %d", i, step.Kind))
		}
	}
	return errors.Join(append(errs, groups(s), errors.Join(lists(s)...))...)
}

// inSwitch checks a step that a switch does: that a member of a group issues it, and that inputs are reduced.
func inSwitch(s *ccl.Schedule, i int) error {
	step := s.Steps[i]
	switch {
	case int(step.Group) >= len(s.Groups):
		return fmt.Errorf("step %d is for group %d of %d", i, step.Group, len(s.Groups))
	case step.Src != step.Dst || !slices.Contains(s.Groups[step.Group], step.Src):
		return fmt.Errorf("step %d is issued by ranks %d and %d, of the group %v", i, step.Src, step.Dst, s.Groups[step.Group])
	case step.FromInput != (step.Kind == ccl.ReduceInSwitch):
		return fmt.Errorf("step %d: a switch reduces inputs, and multicasts what is there", i)
	}
	return nil
}

// groups checks that there are all members of groups, in their order, and that not both ranks and a switch reduce.
func groups(s *ccl.Schedule) error {
	for g, members := range s.Groups {
		for i, m := range members {
			if m < 0 || int(m) >= s.World || i > 0 && m <= members[i-1] {
				return fmt.Errorf("group %d is %v: ranks of %d in ascending order", g, members, s.World)
			}
		}
	}
	reduces := func(k ccl.Kind) bool {
		return slices.ContainsFunc(s.Steps, func(step ccl.Step) bool { return step.Kind == k })
	}
	if reduces(ccl.Reduce) && reduces(ccl.ReduceInSwitch) {
		return errors.New("both ranks and a switch reduce")
	}
	return nil
}

// written are the ranks that a step leaves its value with.
func written(s *ccl.Schedule, step ccl.Step) []int32 {
	if step.Kind == ccl.Multicast {
		return s.Groups[step.Group]
	}
	return []int32{step.Dst}
}

// lists checks the listed chunks: that they exist, and that no step moves one twice.
func lists(s *ccl.Schedule) (errs []error) {
	for k, c := range s.Listed {
		if c < 0 || int(c) >= s.Chunks() {
			return []error{fmt.Errorf("place %d in the lists is chunk %d of %d", k, c, s.Chunks())}
		}
	}
	for i, step := range s.Steps {
		seen := map[int]bool{}
		for place := max(step.Lo, int32(s.Chunks())); place < min(step.Hi, int32(s.Chunks()+len(s.Listed))); place++ {
			if c := s.Chunk(place); seen[c] {
				errs = append(errs, fmt.Errorf("step %d moves chunk %d twice", i, c))
			} else {
				seen[c] = true
			}
		}
	}
	return errs
}

func rounds(s *ccl.Schedule) error {
	if (len(s.Rounds) == 0) != (len(s.Steps) == 0) {
		return fmt.Errorf("%d rounds for %d steps", len(s.Rounds), len(s.Steps))
	}
	for k, first := range s.Rounds {
		if k == 0 && first != 0 || k > 0 && first <= s.Rounds[k-1] || int(first) >= len(s.Steps) {
			return fmt.Errorf("rounds start at steps %v of %d: must start at 0 and ascend", s.Rounds, len(s.Steps))
		}
	}
	return nil
}

// adjacency checks the edges' layout: that they lead forward, and that as many lead into a gate as the gate waits for.
func adjacency(s *ccl.Schedule) error {
	n := len(s.Steps)
	if len(s.EdgeStart) != n+1 || len(s.SendWaits) != n || len(s.CombineWaits) != n {
		return fmt.Errorf("%d steps have %d edge starts, %d send waits and %d combine waits",
			n, len(s.EdgeStart), len(s.SendWaits), len(s.CombineWaits))
	}
	if s.EdgeStart[0] != 0 || int(s.EdgeStart[n]) != len(s.Edges) {
		return fmt.Errorf("edge starts run from %d to %d; there are %d edges", s.EdgeStart[0], s.EdgeStart[n], len(s.Edges))
	}
	var errs []error
	waits := map[ccl.Edge]int{} // by gate
	for i := range n {
		if s.EdgeStart[i] > s.EdgeStart[i+1] {
			return fmt.Errorf("the edges of step %d end before they start", i)
		}
		for _, e := range s.Edges[s.EdgeStart[i]:s.EdgeStart[i+1]] {
			if e.To() <= i || e.To() >= n {
				errs = append(errs, fmt.Errorf("an edge leads from step %d to step %d of %d", i, e.To(), n))
			}
			waits[e]++
		}
	}
	for i := range n {
		send, combine := waits[edge(i, ccl.GateSend)], waits[edge(i, ccl.GateCombine)]
		if int(s.SendWaits[i]) != send || int(s.CombineWaits[i]) != combine {
			errs = append(errs, fmt.Errorf("step %d has %d and %d edges into its gates, but counts %d and %d",
				i, send, combine, s.SendWaits[i], s.CombineWaits[i]))
		}
	}
	return errors.Join(errs...)
}

func edge(to int, g ccl.Gate) ccl.Edge { return ccl.Edge(to)<<1 | ccl.Edge(g) }

// round returns the steps [lo, hi) of round k.
func round(s *ccl.Schedule, k int) (lo, hi int) {
	hi = len(s.Steps)
	if k+1 < len(s.Rounds) {
		hi = int(s.Rounds[k+1])
	}
	return int(s.Rounds[k]), hi
}
