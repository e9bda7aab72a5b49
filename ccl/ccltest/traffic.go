package ccltest

import "github.com/torchemu/torchemu/ccl"

// Traffic is what a schedule costs, whatever the fabric. What a switch does for a group counts as if the member that issues
// it sent to each other one, or reduced what each other one has sent.
type Traffic struct {
	Latency  int   // messages that one after another must wait for each other, at least
	Messages []int // sent by each rank, to others
	Chunks   []int // sent by each rank, to others
	Reduced  []int // chunks that each rank reduces
}

// Measure counts a schedule's traffic.
func Measure(s *ccl.Schedule) Traffic {
	t := Traffic{Messages: make([]int, s.World), Chunks: make([]int, s.World), Reduced: make([]int, s.World)}
	ready := make([][2]int, len(s.Steps)) // the latency at which each gate opens
	turn := map[[2]int32]int{}            // where ranks send in turn, that at which the last message has arrived
	for i, step := range s.Steps {
		done, chunks := ready[i][ccl.GateSend], int(step.Hi-step.Lo)
		if step.Kind == ccl.Multicast || step.Kind == ccl.ReduceInSwitch {
			others := len(s.Groups[step.Group]) - 1
			done++
			t.Messages[step.Src] += others
			t.Chunks[step.Src] += others * chunks
			if step.Kind == ccl.ReduceInSwitch {
				t.Reduced[step.Src] += others * chunks
			}
		}
		if step.Src != step.Dst {
			done = max(done, turn[queue(s, step)]) + 1
			if s.InTurn || s.Queued {
				turn[queue(s, step)] = done
			}
			t.Messages[step.Src]++
			t.Chunks[step.Src] += chunks
		}
		if step.Kind == ccl.Reduce {
			t.Reduced[step.Dst] += chunks
		}
		done = max(done, ready[i][ccl.GateCombine])
		t.Latency = max(t.Latency, done)
		for _, e := range s.Edges[s.EdgeStart[i]:s.EdgeStart[i+1]] {
			gate := &ready[e.To()][e.Gate()]
			*gate = max(*gate, done)
		}
	}
	return t
}

// queue is the messages of which a step's is one in turn: all of its source's, or all to its destination.
func queue(s *ccl.Schedule, step ccl.Step) [2]int32 {
	if s.InTurn {
		return [2]int32{step.Src, -1}
	}
	return [2]int32{step.Src, step.Dst}
}
