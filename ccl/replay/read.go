package replay

import (
	"fmt"
	"os"
)

// Read reads a job from a file: GOAL.
func Read(file string) (*Job, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return ParseGOAL(file, text)
}
