package torchemu

// Poll is the reason of an event that a host waits for which has looked in vain whether something has happened, perhaps
// in a loop: the time that the look takes.
type Poll struct {
	What  string // the call and its place in the program: "is_completed() at train.py:7 in main"
	Of    *Event // what it looks for; nil where nobody knows what would bring it about
	Timed bool   // the program has read a clock since its last look: it may give up by itself
}

// String describes what is looked for. It implements Reason.
func (p *Poll) String() string {
	if p.Of == nil || p.Of.Done() {
		return p.What
	}
	return p.What + ", which is asked again and again: " + p.Of.Reason().String()
}

// Needs are those who have yet to do something for what is looked for. It implements Reason.
func (p *Poll) Needs() []int {
	if e := p.Follows(); e != nil {
		return e.Reason().Needs()
	}
	return nil
}

// Follows is what is looked for. It implements Follower.
func (p *Poll) Follows() *Event {
	if p.Of == nil || p.Of.Done() {
		return nil
	}
	return p.Of
}
