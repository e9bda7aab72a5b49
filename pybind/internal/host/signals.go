package host

// Signal is what somebody waits for until a program says so: in its words, and the ranks that could say it, where they
// are known.
type Signal struct {
	Text  string
	Ranks []int
}

func (s Signal) String() string { return s.Text }

// Needs are the ranks that could end it.
func (s Signal) Needs() []int { return s.Ranks }
