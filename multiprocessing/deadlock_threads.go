package multiprocessing

import (
	"fmt"
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
	at := map[int]int{} // index in d.Blocked, by task
	for i, b := range d.Blocked {
		at[b.Task] = i
	}
	circle := d.circleAlong(func(b Blocked) int {
		if i, isBlocked := at[b.Holder]; isBlocked {
			return i
		}
		return nobody
	})
	if circle == nil {
		return ""
	}
	return explainThreads(circle)
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
