package ccltest

import (
	"fmt"
	"strings"

	"github.com/torchemu/torchemu/ccl"
)

// Format writes a schedule as text, a line a step:
//
//	5  1→2  3:5  reduce  send after 0,1  combine after 2
//
// is step 5: rank 1 sends chunks 3 and 4 to rank 2, which reduces them; the sent value is ready after steps 0 and 1,
// rank 2's operand after step 2. Chunks that do not adjoin are listed: 3,6.
func Format(s *ccl.Schedule) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s: %d ranks, %d×%d chunks%s\n", s.Collective, s.Algorithm, s.World, s.Blocks, s.Sub, traits(s))
	waits := causes(s)
	for k := range s.Rounds {
		fmt.Fprintf(&out, "round %d\n", k)
		lo, hi := round(s, k)
		for i := lo; i < hi; i++ {
			fmt.Fprintf(&out, "%4d  %s%s\n", i, describe(s, s.Steps[i]), reasons(waits[i]))
		}
	}
	return out.String()
}

// traits is what only some schedules have.
func traits(s *ccl.Schedule) string {
	text := ""
	if s.Collective.Rooted() {
		text = fmt.Sprintf(", root %d", s.Root)
	}
	if s.InTurn {
		text += ", sent in turn"
	}
	if s.Queued {
		text += ", sent in turn to each rank"
	}
	return text
}

func describe(s *ccl.Schedule, step ccl.Step) string {
	kind := "copy"
	if step.Kind == ccl.Reduce {
		kind = "reduce"
	}
	if step.FromInput {
		kind += " input"
	}
	switch step.Kind {
	case ccl.Multicast:
		return fmt.Sprintf("%d→%v  %s  multicast", step.Src, s.Groups[step.Group], chunks(s, step))
	case ccl.ReduceInSwitch:
		return fmt.Sprintf("%v→%d  %s  reduce input in the switch", s.Groups[step.Group], step.Dst, chunks(s, step))
	}
	return fmt.Sprintf("%d→%d  %s  %s", step.Src, step.Dst, chunks(s, step), kind)
}

// chunks is a range, or what is listed.
func chunks(s *ccl.Schedule, step ccl.Step) string {
	if int(step.Lo) < s.Chunks() {
		return fmt.Sprintf("%d:%d", step.Lo, step.Hi)
	}
	var list []string
	for place := step.Lo; place < step.Hi; place++ {
		list = append(list, fmt.Sprint(s.Chunk(place)))
	}
	return strings.Join(list, ",")
}

// causes lists, for each step and gate, the steps that it waits for.
func causes(s *ccl.Schedule) [][2][]int {
	list := make([][2][]int, len(s.Steps))
	for i := range s.Steps {
		for _, e := range s.Edges[s.EdgeStart[i]:s.EdgeStart[i+1]] {
			gate := &list[e.To()][e.Gate()]
			*gate = append(*gate, i)
		}
	}
	return list
}

func reasons(waits [2][]int) string {
	text := ""
	for gate, what := range [2]string{"send", "combine"} {
		if len(waits[gate]) > 0 {
			text += "  " + what + " after " + strings.ReplaceAll(strings.Trim(fmt.Sprint(waits[gate]), "[]"), " ", ",")
		}
	}
	return text
}
