package torchemu

import (
	"fmt"
	"strings"
)

// Link is the reason of an event whose operation takes its turn behind another one.
type Link interface {
	Follower
	Alone() string // the operation, and what it lacks, without what it follows
}

// How many operations a chain spells out: what is waited for and the one before it, and that for which all wait.
const (
	chainHead = 2
	chainTail = 1
)

// Chain words a reason and what it follows, down to what all of them wait for. A program may be a hundred thousand
// operations ahead of its device, so those in the middle of a long chain are only counted.
func Chain(r Reason) string {
	links := linksOf(r)
	skipped := len(links) - chainHead - chainTail
	if skipped <= 0 {
		return follow(links)
	}
	verb := "follow"
	if skipped == 1 {
		verb = "follows"
	}
	return fmt.Sprintf("%s, … and %d more …, which %s %s",
		follow(links[:chainHead]), skipped, verb, follow(links[chainHead+skipped:]))
}

// Origin is the last of what a reason follows: what it all waits for.
func Origin(r Reason) Reason {
	links := linksOf(r)
	return links[len(links)-1]
}

// linksOf lists a reason and what it follows, but for events that only end with another one.
func linksOf(r Reason) []Reason {
	var links []Reason
	for {
		before := behind(r)
		if _, named := r.(Link); named || before == nil {
			links = append(links, r)
		}
		if before == nil {
			return links
		}
		r = before.Reason()
	}
}

// behind is the event that a reason follows, or nil.
func behind(r Reason) *Event {
	if f, ok := r.(Follower); ok {
		return f.Follows()
	}
	return nil
}

func follow(links []Reason) string {
	var texts []string
	for _, r := range links {
		if l, ok := r.(Link); ok {
			texts = append(texts, l.Alone())
		} else {
			texts = append(texts, r.String())
		}
	}
	return strings.Join(texts, ", which follows ")
}

// needsBehind are the ranks that have yet to do something for what a reason follows.
func needsBehind(f Follower) []int {
	if e := f.Follows(); e != nil {
		return e.Reason().Needs()
	}
	return nil
}
