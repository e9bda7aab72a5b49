package multiprocessing

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// Recorder notes where a policy decides otherwise than first in, first out.
type Recorder struct {
	Policy
	Picks int // so far

	delay    sim.Time
	switches []decision
	forks    []string // of a replay: picks at which several could run, and how many
}

// decision is what is done at a pick: which of those that can run does, after how much time for others.
type decision struct {
	pick, index int
	delay       sim.Time
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
		r.switches = append(r.switches, decision{r.Picks, i, r.delay})
	}
	if _, again := r.Policy.(*replay); again && len(tasks) > 1 {
		r.forks = append(r.forks, fmt.Sprintf("%d:%d", r.Picks, len(tasks)))
	}
	r.Picks++
	return i
}

// Forks lists, of a replay, the picks at which several could run: "3:2,4:2" when two could at picks 3 and 4.
func (r *Recorder) Forks() string { return strings.Join(r.forks, ",") }

// What marks a decision that lets time pass: none beyond the present moment, or as much as hosts are slow.
const (
	markMoment = "~"
	markSlow   = "+"
)

// String is the recording: "3:1,7:0+" says that at pick 3 the second of those that could run did, and at pick 7 the first
// one, when hosts had been slow.
func (r *Recorder) String() string {
	parts := make([]string, len(r.switches))
	for i, d := range r.switches {
		parts[i] = fmt.Sprintf("%d:%d%s", d.pick, d.index, mark(d.delay))
	}
	return strings.Join(parts, ",")
}

func mark(d sim.Time) string {
	switch {
	case d < 0:
		return ""
	case d == 0:
		return markMoment
	}
	return markSlow
}

// replay decides as a recording does, and else first in, first out.
type replay struct {
	switches map[int]decision
	picks    int
}

func parseReplay(text string) (*replay, error) {
	p := &replay{switches: map[int]decision{}}
	if text == "" {
		return p, nil
	}
	for _, part := range strings.Split(text, ",") {
		d, err := parseDecision(part)
		if err != nil {
			return nil, fmt.Errorf("%q is no decision of a schedule: they are such as 3:1 and 7:0+", part)
		}
		p.switches[d.pick] = d
	}
	return p, nil
}

func parseDecision(text string) (d decision, err error) {
	d.delay = -1
	if rest, ok := strings.CutSuffix(text, markSlow); ok {
		text, d.delay = rest, slow
	} else if rest, ok := strings.CutSuffix(text, markMoment); ok {
		text, d.delay = rest, 0
	}
	pick, index, _ := strings.Cut(text, ":")
	if d.pick, err = strconv.Atoi(pick); err == nil {
		d.index, err = strconv.Atoi(index)
	}
	if err == nil && (d.pick < 0 || d.index < 0) {
		err = strconv.ErrRange
	}
	return d, err
}

// Delay is that of the present pick.
func (p *replay) Delay() sim.Time {
	if d, ok := p.switches[p.picks]; ok {
		return d.delay
	}
	return -1
}

// Pick is the recorded one, as far as there are so many tasks.
func (p *replay) Pick(tasks []int) int {
	d := p.switches[p.picks]
	p.picks++
	return min(d.index, len(tasks)-1)
}
