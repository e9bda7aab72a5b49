package multiprocessing

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// Recorder notes where a policy decides otherwise than first in, first out.
type Recorder struct {
	Policy
	Picks    int // so far
	Switches []Switch
	Forks    []Fork // of a replay

	delay sim.Time
}

// Switch is what is done at a pick: which of those that can run does, after how much time for others.
type Switch struct {
	Pick, Index int
	Hosts       Hosts
}

// Fork is a pick at which several could run, and how many.
type Fork struct{ Pick, Ways int }

// Hosts is how slow hosts have been before a pick.
type Hosts uint8

// How much time passes before those run that can.
const (
	Prompt Hosts = iota // none
	Late                // none beyond the present moment: what else happens at it comes before
	Slow                // as much as hosts are slow at times
	numHosts
)

// delay is that of a [Policy].
func (h Hosts) delay() sim.Time { return [...]sim.Time{Prompt: -1, Late: 0, Slow: slow}[h] }

func hosts(delay sim.Time) Hosts {
	switch {
	case delay < 0:
		return Prompt
	case delay == 0:
		return Late
	}
	return Slow
}

// Delay is the policy's.
func (r *Recorder) Delay() sim.Time {
	r.delay = r.Policy.Delay()
	return r.delay
}

// Pick is the policy's.
func (r *Recorder) Pick(tasks []int) int {
	i := r.Policy.Pick(tasks)
	if i > 0 || r.delay >= 0 {
		r.Switches = append(r.Switches, Switch{r.Picks, i, hosts(r.delay)})
	}
	if _, again := r.Policy.(*replay); again && len(tasks) > 1 {
		r.Forks = append(r.Forks, Fork{r.Picks, len(tasks)})
	}
	r.Picks++
	return i
}

// replay decides as a recording does, and else first in, first out.
type replay struct {
	switches map[int]Switch
	picks    int
}

func newReplay(switches []Switch) (*replay, error) {
	p := &replay{switches: map[int]Switch{}}
	for _, s := range switches {
		if s.Pick < 0 || s.Index < 0 || s.Hosts >= numHosts {
			return nil, fmt.Errorf("%+v is no decision of a schedule", s)
		}
		p.switches[s.Pick] = s
	}
	return p, nil
}

// Delay is that of the present pick.
func (p *replay) Delay() sim.Time { return p.switches[p.picks].Hosts.delay() }

// Pick is the recorded one, as far as there are so many tasks.
func (p *replay) Pick(tasks []int) int {
	s := p.switches[p.picks]
	p.picks++
	return min(s.Index, len(tasks)-1)
}

// attemptOf is the one that a policy is, or records; nil for others.
func attemptOf(p Policy) *Attempt {
	if r, ok := p.(*Recorder); ok {
		p = r.Policy
	}
	a, _ := p.(*Attempt)
	return a
}
