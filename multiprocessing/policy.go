package multiprocessing

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// A Policy decides which of several ranks that can run does. A program whose results depend on it has a race.
type Policy interface {
	Pick(tasks []int) int // index of the one to run; those up to the number of ranks are their main programs

	// Delay is how much simulated time may pass until those run that can: hosts are slow at times, and others that have
	// to wait for a device come before them. Less than nothing: not even what else happens at this moment comes before.
	Delay() sim.Time
}

// slow is how long hosts take at most: much for a device, and little for a watchdog.
const slow = 10 * sim.Millisecond

// Schedule says how ranks take turns. The same one gives the same choices.
type Schedule struct {
	// Policy is "fifo", which runs ranks in the order in which they became able to; "random": any of them; "pct": always
	// the one of highest priority, where priorities are random and a few fall at random moments (which finds bugs of few
	// orderings with known probability: Burckhardt et al., ASPLOS 2010); or "replay".
	Policy string
	Seed   uint64

	Depth int // of pct: how many orderings a bug may need; 0: usualDepth
	Forks int // of pct: at how many picks of the program several can run; 0: nobody has counted

	Switches []Switch // of a replay: those of a [Recorder]
}

// NewPolicy returns the policy of a schedule.
func NewPolicy(s Schedule, ranks int) (Policy, error) {
	rng := rand.New(rand.NewPCG(s.Seed, 0x70726f63)) // any second word; it only has to be always the same
	switch s.Policy {
	case "fifo":
		return fifo{}, nil
	case "random":
		return random{rng}, nil
	case "pct":
		return newPCT(rng, ranks, s)
	case "replay":
		return newReplay(s.Switches)
	}
	return nil, fmt.Errorf("unknown schedule %q: choose one of fifo, pct, random", s.Policy)
}

type fifo struct{}

func (fifo) Pick([]int) int  { return 0 }
func (fifo) Delay() sim.Time { return -1 }

type random struct{ *rand.Rand }

func (r random) Pick(ranks []int) int { return r.IntN(len(ranks)) }
func (r random) Delay() sim.Time      { return sim.Time(r.IntN(2)) * slow }

// pct is probabilistic concurrency testing.
type pct struct {
	rng      *rand.Rand
	ranks    int
	depth    int
	delay    sim.Time
	priority []float64 // by task; the highest runs
	falls    map[int]float64
	forks    int // picks of several, so far
}

// usualDepth is how many ordering constraints a bug may need to be found. Where nobody has counted a program's forks, the
// changes of priority are anywhere among the first mostSteps, early ones more often.
const (
	usualDepth = 3
	mostSteps  = 10_000
)

func newPCT(rng *rand.Rand, ranks int, s Schedule) (*pct, error) {
	depth := s.Depth
	if depth < 0 || s.Forks < 0 {
		return nil, fmt.Errorf("schedule pct of depth %d for %d forks: neither can be negative", depth, s.Forks)
	}
	if depth == 0 {
		depth = usualDepth
	}
	p := &pct{rng: rng, ranks: ranks, depth: depth, falls: map[int]float64{}}
	p.delay = []sim.Time{-1, 0, slow}[rng.IntN(3)]
	for _, place := range rng.Perm(ranks) {
		p.priority = append(p.priority, float64(depth+place)) // the lower ones are for tasks that have fallen
	}
	for i := range depth - 1 {
		share := rng.Float64()
		if i == 0 {
			_, share = math.Modf(float64(s.Seed) * math.Phi) // seeds in a row are at all places soon, and at none twice
		}
		p.falls[fall(share, s.Forks)] = float64(i)
	}
	return p, nil
}

// fall is the fork at which a priority changes, by a number below 1.
func fall(share float64, forks int) int {
	if forks > 0 {
		return int(share * float64(forks))
	}
	return int(math.Exp(share*math.Log(mostSteps))) - 1
}

// Delay lets a rank of higher priority, which waits for its device only, come before the others, with some seeds.
func (p *pct) Delay() sim.Time { return p.delay }

// Pick is the one of highest priority, which may fall before.
func (p *pct) Pick(tasks []int) int {
	best := p.best(tasks)
	if len(tasks) == 1 {
		return best
	}
	low, falls := p.falls[p.forks]
	p.forks++
	if !falls {
		return best
	}
	p.priority[tasks[best]] = low
	return p.best(tasks)
}

func (p *pct) best(tasks []int) int {
	best := 0
	for i, t := range tasks {
		if p.of(t) > p.of(tasks[best]) {
			best = i
		}
	}
	return best
}

// of is the priority of a task. That of a thread, which begins later, is among those of the ranks.
func (p *pct) of(task int) float64 {
	for len(p.priority) <= task {
		p.priority = append(p.priority, float64(p.depth)+p.rng.Float64()*float64(p.ranks))
	}
	return p.priority[task]
}
