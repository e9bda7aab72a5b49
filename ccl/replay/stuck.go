package replay

import (
	"fmt"
	"strings"
)

// maxShown bounds how many operations a message lists.
const maxShown = 8

// stuck explains why operations never started: it follows what each waits for until that comes round. What waits never
// ended, so it waits for something itself.
func (j *Job) stuck(waits []uint32) error {
	blocked := map[uint32]uint32{} // by operation: one that it waits for
	for i := range j.operations {
		if waits[i] == 0 {
			continue
		}
		for _, to := range j.edges[j.edgeStart[i]:j.edgeStart[i+1]] {
			if _, known := blocked[to]; !known {
				blocked[to] = uint32(i)
			}
		}
		if o := &j.operations[i]; o.kind == meetingReceive || o.kind == send && o.mate != none {
			if _, known := blocked[o.mate]; !known {
				blocked[o.mate] = uint32(i)
			}
		}
	}
	at := uint32(0)
	for waits[at] == 0 {
		at++
	}
	seen := map[uint32]bool{}
	for !seen[at] {
		seen[at] = true
		at = blocked[at]
	}
	var lines []string
	for first := at; len(lines) == 0 || at != first; at = blocked[at] {
		if len(lines) == maxShown {
			lines = append(lines, "…")
			break
		}
		lines = append(lines, j.show(at))
	}
	return fmt.Errorf("%s: operations wait for each other for ever:\n  %s\n  which waits for the first",
		j.file, strings.Join(lines, ", which waits for\n  "))
}

// show names an operation and its place.
func (j *Job) show(i uint32) string {
	o := &j.operations[i]
	if j.files != nil {
		return fmt.Sprintf("%s: node %d (%s)", j.files[o.rank], o.line, j.names[i])
	}
	text := fmt.Sprintf("%s:%d: rank %d: %s", j.file, o.line, o.rank, kindNames[o.kind])
	switch o.kind {
	case send:
		text += fmt.Sprintf(" %db to %d tag %d", o.amount, o.peer, o.tag)
	case receive:
		text += fmt.Sprintf(" %db from %d tag %d", o.amount, o.peer, o.tag)
	}
	return text
}
