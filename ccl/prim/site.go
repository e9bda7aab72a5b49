package prim

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// site is a line of a kernel: of a Go program, or as its caller names it.
type site struct {
	pc   uintptr
	text string
}

// internal remembers which code is this package's own, and so never the kernel's line.
type internal map[uintptr]bool

const ownPrefix = "github.com/torchemu/torchemu/ccl/prim."

// here is the line of the kernel that has called into this package. Nearly always that is among the nearest callers, and
// each more that is looked at costs a tenth of an operation.
func (in internal) here() site {
	var pcs [12]uintptr
	for _, depth := range [...]int{5, len(pcs)} {
		for _, pc := range pcs[:runtime.Callers(3, pcs[:depth])] {
			if !in.isOwn(pc) {
				return site{pc: pc}
			}
		}
	}
	return site{}
}

// isOwn says whether a place is in this package.
func (in internal) isOwn(pc uintptr) bool {
	own, known := in[pc]
	if !known {
		frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		own = strings.HasPrefix(frame.Function, ownPrefix)
		in[pc] = own
	}
	return own
}

// String is the file's base name and the line.
func (s site) String() string {
	switch {
	case s.text != "":
		return s.text
	case s.pc == 0:
		return "an unknown line"
	}
	frame, _ := runtime.CallersFrames([]uintptr{s.pc}).Next()
	return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
}
