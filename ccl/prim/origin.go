package prim

import "fmt"

// origin says where an operation came from.
type origin struct {
	pe    *pe
	job   *Job   // of its program; nil where there is none
	block int    // which of the job's programs it is
	name  string // of the kernel
	what  string // the operation
	pipe  Pipe
	site  site
	issue moment  // of the program, when it issued the operation
	known clock   // what the program knew then; never changed
	look  *glance // of which a program has made what it stores; nil for anything else
	put   bool    // it is a put of the program's own
	apart bool    // an engine moves the bytes, in no order with what the program sends
	alone bool    // one thread stores what is a word, with one instruction
	told  clock   // what such a store tells: what the program knew at its last fence
	sent  moment  // when a store of a program's threads in another rank's memory has left them; none for anything else
	host  int     // whose host it is that does it, if no program does: the rank plus one

	number int // among the PE's operations
	stages int // effects it has had started, for the search of states
}

// origin notes who issues an operation.
func (c *Context) origin(what string, p Pipe) *origin {
	o := &origin{pe: c.pe, job: c.job, block: c.block, name: c.job.Name, what: what, pipe: p, site: c.site()}
	o.issue = c.machine().check.advance(&c.scalar().agent)
	o.known = c.machine().check.release(&c.scalar().agent)
	c.pe.issued++
	o.number = c.pe.issued
	return o
}

// String is the operation with its kernel, rank and line.
func (o *origin) String() string {
	switch {
	case o.host > 0:
		return fmt.Sprintf("%s by rank %d at %v", o.what, o.rank(), o.site)
	case o.pe == nil:
		return o.what
	}
	return fmt.Sprintf("%s by kernel %q on rank %d at %v", o.what, o.name, o.pe.rank, o.site)
}

func (o *origin) rank() int {
	if o.pe == nil {
		return o.host - 1
	}
	return o.pe.rank
}

// reachAny is reach for what engines copy: memory without bytes, too.
func (c *Context) reachAny(a Addr, n int) place {
	if p, err := c.machine().find(a, n); err == nil && p.hollow {
		return p
	}
	return c.reach(a, n)
}

// reach returns memory that the program may use: of a window, or its own scratch. It fails otherwise.
func (c *Context) reach(a Addr, n int) place {
	if a.isScratch() && a.Rank() == c.Rank() {
		c.pe.scratchMemory()
	}
	p, err := c.machine().find(a, n)
	if err != nil {
		c.fail("%v", err)
	}
	if p.window == nil && p.region != c.pe.scratch {
		c.fail("%v belongs to another PE", a)
	}
	if p.hollow {
		c.fail("%v is in %s, which has no bytes: only engines copy there", a, p.name)
	}
	return p
}

// Tile is bytes of the PE's scratch memory from an offset on.
func (c *Context) Tile(offset, bytes int) Tile {
	s := c.pe.scratchMemory()
	if offset < 0 || bytes < 0 || offset+bytes > s.limit {
		c.fail("a tile of %d bytes at %d; a PE has %d bytes of scratch memory", bytes, offset, s.limit)
	}
	return Tile{s.start + Addr(offset), bytes}
}

// ScratchBytes is the size of the PE's scratch memory.
func (c *Context) ScratchBytes() int { return c.pe.scratchMemory().limit }
