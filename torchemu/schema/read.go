package schema

import (
	"io"
	"os"
)

// maxBytes is far more than any of the project's files needs; it bounds what a wrong path can make us read.
const maxBytes = 64 << 10

// Read returns the contents of a file for [Format.Decode]. It stops soon after the size that Decode accepts.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}
