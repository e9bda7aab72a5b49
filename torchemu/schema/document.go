package schema

import (
	"fmt"
	"strings"
)

// Document is a file that was read: it knows where each key stands and what is wrong so far. A path names a key, such
// as system.sips.count, or an entry of a list, such as corners[1]; the empty path is the file as a whole.
type Document struct {
	format   Format
	file     string
	lines    map[string]int // where each path of the file stands
	problems []Problem
	bad      map[string]bool // paths of problems
}

// Has tells whether the file itself has the path.
func (d *Document) Has(path string) bool { return d.lines[path] != 0 }

// Report adds a problem at a path. A path that the file does not have stands where its closest ancestor stands.
func (d *Document) Report(path, format string, args ...any) {
	at := path
	for at != "" && !d.Has(at) {
		at = parent(at)
	}
	d.add(d.lines[at], path, fmt.Sprintf(format, args...))
}

func (d *Document) add(line int, path, text string) {
	d.problems = append(d.problems, Problem{d.file, line, path, text})
	d.bad[path] = true
}

// Sound tells whether all paths, and the sections they are in, are free of problems, so that checks across values make
// sense.
func (d *Document) Sound(paths ...string) bool {
	for _, path := range paths {
		for ; path != ""; path = parent(path) {
			if d.bad[path] {
				return false
			}
		}
	}
	return !d.bad[""]
}

// Err is an *[Error] with the problems so far; nil when there are none.
func (d *Document) Err() error {
	if len(d.problems) == 0 {
		return nil
	}
	return &Error{inOrder(d.problems)}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }
