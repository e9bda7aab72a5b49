package order

import "slices"

// Point is what is known at some point of a program. It is complete once all is over that it waits to hear of.
type Point struct {
	clock    Clock
	open     int // points that it waits for
	sealed   bool
	complete bool
	then     []*Point // that wait for it
	calls    []func()
}

// NewPoint is a point where so much is known, and what others know, or will. More can be added until it is sealed.
func NewPoint(known Clock, after ...*Point) *Point {
	p := &Point{clock: known.Clone()}
	for _, a := range after {
		p.Add(a)
	}
	return p
}

// Add makes the point know what another one does, or will.
func (p *Point) Add(o *Point) {
	if o == nil || o == p {
		return
	}
	p.clock.Join(o.clock)
	if !o.complete {
		p.open++
		o.then = append(o.then, p)
	}
}

// Tell adds to what is known.
func (p *Point) Tell(known Clock) { p.clock.Join(known) }

// Seal says that nothing will be added.
func (p *Point) Seal() *Point {
	p.sealed = true
	p.settle()
	return p
}

func (p *Point) settle() {
	if !p.sealed || p.open > 0 || p.complete {
		return
	}
	p.complete = true
	for _, o := range p.then {
		o.clock.Join(p.clock)
		o.open--
		o.settle()
	}
	calls := p.calls
	p.then, p.calls = nil, nil
	for _, f := range calls {
		f()
	}
}

// Clock is what is known, as far as that is known now. It must not be changed.
func (p *Point) Clock() Clock {
	if p == nil {
		return nil
	}
	return p.clock
}

// Complete says whether all is known.
func (p *Point) Complete() bool { return p == nil || p.complete }

// When runs f once all is known: at once if it is.
func (p *Point) When(f func()) {
	if p.complete {
		f()
		return
	}
	p.calls = append(p.calls, f)
}

// Line is something with a lane of its own that does one thing after another, and learns.
type Line struct {
	last  Moment
	knows Clock
	after []*Point // what it will know, when they are complete
	point *Point   // of what it knows now; nil when that has changed
}

// NewLine returns a line that knows nothing.
func (l *Lanes) NewLine() *Line { return &Line{last: Moment{Lane: l.New()}} }

// Advance begins the line's next moment, which knows all that came before.
func (l *Line) Advance() Moment {
	l.last.Tick++
	l.knows.Set(l.last)
	l.point = nil
	return l.last
}

// Learn lets the line know what is known at a point.
func (l *Line) Learn(p *Point) {
	if p == nil || p == l.point {
		return
	}
	if !p.complete && !slices.Contains(l.after, p) {
		l.after = append(l.after, p)
		l.point = nil
	}
	if !l.knows.Covers(p.clock) {
		l.knows.Join(p.clock)
		l.point = nil
	}
}

// Reach is Learn from a point that knows all that the line has learnt.
func (l *Line) Reach(p *Point) {
	l.after = l.after[:0]
	l.Learn(p)
}

// Here is what the line knows now.
func (l *Line) Here() *Point {
	l.hear()
	if l.point == nil {
		l.point = NewPoint(l.knows, l.after...).Seal()
	}
	return l.point
}

// hear lets the line know what has become known.
func (l *Line) hear() {
	l.after = slices.DeleteFunc(l.after, func(p *Point) bool {
		if p.complete {
			l.knows.Join(p.clock)
			l.point = nil
		}
		return p.complete
	})
}
