package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	File string
	Line int    // from 1; 0 for what no line of a file says
	Path string // of the key, such as system.sips.link.bandwidth; empty for the file as a whole
	Text string // what is wrong and what would be right
}

// String is the problem as "file:line: path: text", less what there is not.
func (p Problem) String() string {
	place := p.File
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if p.Path == "" {
		return place + ": " + p.Text
	}
	return place + ": " + p.Path + ": " + p.Text
}

// Error lists every problem of a file, in the order of the lines.
type Error struct {
	Problems []Problem // at least one
}

// maxShown bounds the text of an Error: a file with more problems than this is another kind of file.
const maxShown = 100

// Error has a line per problem.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s has %d problems:", e.Problems[0].File, len(e.Problems))
	for i, p := range e.Problems {
		if i == maxShown {
			fmt.Fprintf(&b, "\n  … and %d more", len(e.Problems)-maxShown)
			break
		}
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// inOrder sorts problems by line; those of one line stay as they were found.
func inOrder(problems []Problem) []Problem {
	return slices.SortedStableFunc(slices.Values(problems), func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
}

// Quote shows untrusted text in a message, shortened.
func Quote(s string) string { return strconv.Quote(shorten(s, 40)) }

// shorten cuts text that would drown an error.
func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
