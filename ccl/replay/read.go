package replay

import (
	"fmt"
	"os"
	"strings"
)

// Read reads a job from a file: GOAL, or, where its name ends in .et, Chakra execution traces, of which NAME.et stands for
// NAME.0.et, NAME.1.et, …, one a rank.
func Read(file string) (*Job, error) {
	if name, ok := strings.CutSuffix(file, ".et"); ok {
		return readChakra(strings.TrimSuffix(name, ".0"))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return ParseGOAL(file, text)
}
