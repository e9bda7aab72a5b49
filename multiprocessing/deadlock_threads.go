package multiprocessing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu"
)

// holderOf is the thread of the same rank that is waited for; -1 where there is none, or nobody knows.
func holderOf(r torchemu.Reason) int {
	if w, ok := r.(*torchemu.Within); ok {
		return w.Holder
	}
	return -1
}

// circleOfThreads says which threads of a rank wait for each other, and the last for the first; "" where none do.
func (d *DeadlockError) circleOfThreads() string {
	for start := range d.Blocked {
		if circle := d.follow(start); circle != nil {
			return explainThreads(circle)
		}
	}
	return ""
}

// follow goes from a thread to the one that it waits for, and on. It returns the way if it leads back.
func (d *DeadlockError) follow(start int) []Blocked {
	var way []Blocked
	for i := start; len(way) <= len(d.Blocked); {
		b := d.Blocked[i]
		way = append(way, b)
		i = slices.IndexFunc(d.Blocked, func(x Blocked) bool { return x.Task == b.Holder })
		if i == start {
			return way
		}
		if i < 0 {
			return nil
		}
	}
	return nil
}

func explainThreads(circle []Blocked) string {
	rank := torchemu.Ranks{circle[0].Rank}
	if len(circle) == 1 {
		return fmt.Sprintf("%s of %v waits for itself", circle[0].whoWaits(), rank)
	}
	names := make([]string, len(circle))
	for i, b := range circle {
		names[i] = b.whoWaits()
	}
	last := len(names) - 1
	return fmt.Sprintf("%s and %s of %v wait for each other in a circle", strings.Join(names[:last], ", "), names[last], rank)
}

func (b Blocked) whoWaits() string {
	if b.Thread == "" {
		return "the main thread"
	}
	return "thread " + b.Thread
}
