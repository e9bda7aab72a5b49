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
// rank 2's operand after step 2.
func Format(s *ccl.Schedule) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s: %d ranks, %d×%d chunks\n", s.Collective, s.Algorithm, s.World, s.Blocks, s.Sub)
	waits := causes(s)
	for k := range s.Rounds {
		fmt.Fprintf(&out, "round %d\n", k)
		lo, hi := round(s, k)
		for i := lo; i < hi; i++ {
			fmt.Fprintf(&out, "%4d  %s%s\n", i, describe(s.Steps[i]), reasons(waits[i]))
		}
	}
	return out.String()
}

func describe(step ccl.Step) string {
	kind := "copy"
	if step.Kind == ccl.Reduce {
		kind = "reduce"
	}
	if step.FromInput {
		kind += " input"
	}
	return fmt.Sprintf("%d→%d  %d:%d  %s", step.Src, step.Dst, step.Lo, step.Hi, kind)
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
