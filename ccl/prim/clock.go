package prim

// clock is a vector clock: for each lane, up to which of its moments everything is known to be over.
type clock []uint32

func (c clock) at(lane int32) uint32 {
	if int(lane) < len(c) {
		return c[lane]
	}
	return 0
}

// join makes c know all that o knows.
func (c *clock) join(o clock) {
	if len(*c) == 0 {
		*c = append(*c, o...)
		return
	}
	c.reach(len(o))
	own := (*c)[:len(o)]
	for i, t := range o {
		own[i] = max(own[i], t)
	}
}

func (c *clock) set(e moment) {
	c.reach(int(e.lane) + 1)
	(*c)[e.lane] = e.tick
}

// reach makes room for n lanes.
func (c *clock) reach(n int) {
	if len(*c) < n {
		*c = append(*c, make(clock, n-len(*c))...)
	}
}

func (c clock) clone() clock { return append(clock(nil), c...) }

// moment is a point in a lane: a lane is whatever does things strictly one after another.
type moment struct {
	lane int32
	tick uint32
}

// knows says whether the moment is over for whoever has the clock.
func (c clock) knows(e moment) bool { return c.at(e.lane) >= e.tick }

// agent is a lane with what it knows.
type agent struct {
	last moment
	now  clock
}

// advance starts the agent's next moment, which knows all that came before.
func (a *agent) advance() moment {
	a.last.tick++
	a.now.set(a.last)
	return a.last
}
