package distributed

import "github.com/torchemu/torchemu/torchemu"

// Caller is who issues an operation.
type Caller struct {
	Rank   int              // of the World
	Site   Site             // the place in the rank's program
	Stream *torchemu.Stream // the operation follows what is on it; nil is the rank's default stream
	Async  bool             // the stream does not wait for the operation; the program will say when it is to
}

// Site is a place in a program, by its number in Sites.
type Site int

// Sites knows places in programs by number, so that a call passes a number and only a report looks at the text.
type Sites []string

// Add returns the number of a new place, such as "train.py:12 in step".
func (s *Sites) Add(text string) Site {
	*s = append(*s, text)
	return Site(len(*s))
}

// Text is the place of a number; "" for the zero Site, which is no place.
func (s Sites) Text(i Site) string {
	if i < 1 || int(i) > len(s) {
		return ""
	}
	return s[i-1]
}
