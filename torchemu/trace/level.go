package trace

import (
	"fmt"
	"strings"
)

// Level is how much a Recording has of what happens.
type Level uint8

// The levels. Each has all that those before it have.
const (
	Collectives Level = iota // calls and waits of hosts; kernels, copies, collectives and messages of devices
	Steps                    // each step of a collective
	Links                    // each message on DMA engines and links, each reduction on vector units
)

var levelNames = []string{"collective", "step", "link"}

// String is the level's name.
func (l Level) String() string { return levelNames[l] }

// ParseLevel is the level of a name; an error lists the names.
func ParseLevel(name string) (Level, error) {
	for l, known := range levelNames {
		if name == known {
			return Level(l), nil
		}
	}
	return 0, fmt.Errorf("%q is no level of a trace: the levels are %s", name, strings.Join(levelNames, ", "))
}
