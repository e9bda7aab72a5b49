package prim

import "slices"

// A PE holds so many threads and programs at a time of tasks whose threads are known: those of a GPU's multiprocessor.
const (
	mostThreads  = 2048
	mostPrograms = 32
)

// Resident is how many programs of so many threads a rank runs at a time.
func (m *Machine) Resident(threads int) int {
	return m.pesOfRank() * min(mostPrograms, mostThreads/max(1, threads))
}

func (m *Machine) pesOfRank() int { return m.Topology.CubesPerSIP() * m.Topology.PEsPerCube() }

// residency is which programs a rank runs, and which are to start when there is room.
type residency struct {
	first    int // slots below are taken
	threads  int // of running programs
	programs int // that have a number of threads
	sleeping []sleeper
}

// sleeper is a job with programs that have not started on a rank: those from a block on.
type sleeper struct {
	job  *Job
	next int
}

// fits says whether there is room for another program of the job.
func (m *Machine) fits(r *residency, j *Job) bool {
	if j.Threads == 0 {
		return true
	}
	pes := m.pesOfRank()
	return r.threads+j.Threads <= pes*mostThreads && r.programs < pes*mostPrograms
}

// fill starts programs of a rank that have waited for room.
func (m *Machine) fill(rank int) {
	room := &m.ranks[rank].room
	for len(room.sleeping) > 0 {
		x := &room.sleeping[0]
		if x.next == x.job.Blocks {
			room.sleeping = room.sleeping[1:]
			continue
		}
		if !m.fits(room, x.job) {
			return
		}
		x.next++
		m.wakeUp(x.job, rank, x.next-1)
	}
}

// wakeUp starts a program of a job that has begun.
func (m *Machine) wakeUp(j *Job, rank, block int) {
	room := &m.ranks[rank].room
	if j.Threads > 0 {
		room.threads += j.Threads
		room.programs++
	}
	j.asleep--
	p := m.freePE(rank)
	m.check.order(p, j)
	c := j.start(p, block)
	j.programs = append(j.programs, c)
	m.live, m.ready = append(m.live, c), append(m.ready, c)
}

// vacate makes room where a program has run.
func (c *Context) vacate() {
	if c.pe.program != c {
		return
	}
	c.pe.program = nil
	room := &c.machine().ranks[c.Rank()].room
	room.first = min(room.first, c.pe.slot)
	if c.job.Threads > 0 {
		room.threads -= c.job.Threads
		room.programs--
	}
}

// forget drops a job that is over.
func (r *residency) forget(j *Job) {
	r.sleeping = slices.DeleteFunc(r.sleeping, func(x sleeper) bool { return x.job == j })
}
