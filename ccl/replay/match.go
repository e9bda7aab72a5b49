package replay

// join puts the blocks' operations one after another, with their edges.
func (j *Job) join(blocks []*block) {
	count, needs, starts := 0, 0, false
	for _, b := range blocks {
		count += len(b.operations)
		needs += len(b.needs)
	}
	j.operations = make([]operation, 0, count)
	j.edgeStart = make([]uint32, count+1)
	for _, b := range blocks {
		base := uint32(len(j.operations))
		j.operations = append(j.operations, b.operations...)
		for _, n := range b.needs {
			j.edgeStart[base+n.from+1]++
			starts = starts || n.start
		}
	}
	for i := range count {
		j.edgeStart[i+1] += j.edgeStart[i]
	}
	j.edges = make([]uint32, needs)
	next := append([]uint32(nil), j.edgeStart[:count]...)
	base := uint32(0)
	put := func(b *block, start bool) {
		for _, n := range b.needs {
			if n.start == start {
				j.edges[next[base+n.from]] = base + n.to
				next[base+n.from]++
			}
		}
	}
	for _, b := range blocks {
		put(b, false)
		base += uint32(len(b.operations))
	}
	if !starts {
		return
	}
	j.startsAt = append([]uint32(nil), next...)
	base = 0
	for _, b := range blocks {
		put(b, true)
		base += uint32(len(b.operations))
	}
}

// channel is the messages from one rank to another, in the order of the file.
type channel struct {
	sends []uint32
	first int                // those before it have receives
	byTag map[int32][]uint32 // what is left, where tags come in another order; nil: they do not
}

// match gives each send its receive: the k-th of a sender, receiver and tag goes to the k-th. The error lists those
// without, and pairs of different sizes.
func (j *Job) match() error {
	channels := make(map[[2]int32]*channel)
	var last *channel
	key := [2]int32{-1, -1}
	at := func(from, to int32) *channel {
		if k := [2]int32{from, to}; k != key {
			if last = channels[k]; last == nil {
				last = &channel{}
				channels[k] = last
			}
			key = k
		}
		return last
	}
	for i := range j.operations {
		if o := &j.operations[i]; o.kind == send {
			c := at(o.rank, o.peer)
			c.sends = append(c.sends, uint32(i))
		}
	}
	var wrong mistakes
	for i := range j.operations {
		o := &j.operations[i]
		if o.kind != receive {
			continue
		}
		s := at(o.peer, o.rank).take(j.operations, o.tag)
		switch {
		case s == none:
			wrong = append(wrong, j.show(uint32(i))+": there is no send for it")
		case j.operations[s].amount != o.amount:
			wrong = append(wrong, j.show(uint32(i))+": its send is of another size, "+j.show(s))
		default:
			j.operations[s].mate = uint32(i)
		}
	}
	for i := range j.operations {
		if o := &j.operations[i]; o.kind == send && o.mate == none && len(wrong) <= maxShown {
			wrong = append(wrong, j.show(uint32(i))+": there is no recv for it")
		}
	}
	return wrong.error()
}

// taken marks a send that has a receive.
const taken = none

// maxPassed is how many sends with other tags are passed over before they are sorted by their tags.
const maxPassed = 32

// take finds the next send with a tag.
func (c *channel) take(operations []operation, tag int32) uint32 {
	for k := c.first; k < len(c.sends) && c.byTag == nil; k++ {
		s := c.sends[k]
		if k == c.first+maxPassed {
			c.sort(operations)
			break
		}
		if s == taken || operations[s].tag != tag {
			continue
		}
		c.sends[k] = taken
		for c.first < len(c.sends) && c.sends[c.first] == taken {
			c.first++
		}
		return s
	}
	list := c.byTag[tag]
	if len(list) == 0 {
		return none
	}
	c.byTag[tag] = list[1:]
	return list[0]
}

func (c *channel) sort(operations []operation) {
	c.byTag = map[int32][]uint32{}
	for _, s := range c.sends[c.first:] {
		if s != taken {
			c.byTag[operations[s].tag] = append(c.byTag[operations[s].tag], s)
		}
	}
}
