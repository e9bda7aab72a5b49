package torchemu

import (
	"fmt"
	"strings"
)

// Ranks names ranks, in ascending order, in messages: "rank 3", "ranks 0-2, 5 and 7".
type Ranks []int

// shownSpans bounds how many parts a list of ranks has that is spelled out.
const shownSpans = 8

func (r Ranks) String() string {
	switch len(r) {
	case 0:
		return "no rank"
	case 1:
		return fmt.Sprintf("rank %d", r[0])
	}
	var parts []string
	for rest := r; len(rest) > 0; {
		if len(parts) == shownSpans {
			parts = append(parts, fmt.Sprintf("%d more", len(rest)))
			break
		}
		n := rest.span()
		parts = append(parts, rest[:n].spell())
		rest = rest[n:]
	}
	last := len(parts) - 1
	if last == 0 {
		return "ranks " + parts[0]
	}
	return "ranks " + strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// span is how many ranks at the front are one part of the list: three or more that follow each other, or one.
func (r Ranks) span() int {
	n := 1
	for n < len(r) && r[n] == r[n-1]+1 {
		n++
	}
	if n < 3 {
		return 1
	}
	return n
}

func (r Ranks) spell() string {
	if len(r) == 1 {
		return fmt.Sprint(r[0])
	}
	return fmt.Sprintf("%d-%d", r[0], r[len(r)-1])
}

// Verb is the form of a verb that goes with so many ranks: Verb("has", "have").
func (r Ranks) Verb(one, many string) string {
	if len(r) == 1 {
		return one
	}
	return many
}
