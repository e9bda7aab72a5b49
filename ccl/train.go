package ccl

import (
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// MeasuredCalls is how many calls back to back a measured time is the mean of, where nobody says: nccl-tests' own number.
const MeasuredCalls = 20

// Repeat is how long a call takes on average of so many that all ranks make back to back on an idle network, each
// rank its next one when its own part of the last is done. That is how benchmarks measure. Ranks of a broadcast or a
// reduce run free of each other, so that it is less than one call alone takes.
func Repeat(t *topology.Topology, l Launch, calls int) sim.Time {
	const simulated = 3 // in which the pipeline of calls fills
	some := min(calls, simulated)
	if !l.Schedule.Collective.Rooted() {
		some = 1 // ranks end together
	}
	ends := newTrain(t, l, some).run()
	last := ends[some-1]
	if some == 1 {
		return last
	}
	rest := sim.Time(calls-some) * (last - ends[some-2])
	return (last + rest) / sim.Time(calls)
}

// train is calls back to back.
type train struct {
	engine *sim.Engine
	calls  []Joiner
	ends   []sim.Time
}

func newTrain(t *topology.Topology, l Launch, calls int) *train {
	r := &train{engine: sim.NewEngine(), ends: make([]sim.Time, calls)}
	x := NewExecutor(r.engine, network.New(r.engine, t))
	l.Ready = make([]sim.Time, l.Schedule.World)
	for i := range calls {
		r.calls = append(r.calls, x.Start(l, coach{r, i}))
		for rank := range l.Ready {
			l.Ready[rank] = NotReady // all but the first call
		}
	}
	return r
}

// run returns when the last rank ends each call.
func (r *train) run() []sim.Time {
	for r.engine.Run(1<<16) > 0 {
	}
	return r.ends
}

// coach is one call of a train. It implements Watcher.
type coach struct {
	*train
	number int
}

// RankDone lets a rank make its next call.
func (c coach) RankDone(rank int, now sim.Time) {
	c.ends[c.number] = max(c.ends[c.number], now)
	if next := c.number + 1; next < len(c.calls) {
		c.calls[next].Join(rank, now)
	}
}
