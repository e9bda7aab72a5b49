package prim

import (
	"fmt"
	"math/rand/v2"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Options are how strictly programs are run.
type Options struct {
	Check   bool   // find accesses that nothing orders; see [Finding]
	Fences  bool   // with Check: only fences order what one PE sends to one rank, in whatever order that lands
	Reorder bool   // let everything move that no rule orders
	Seed    uint64 // of the moves
}

// Config is the hardware of a Machine. The engine and the network may have other users.
type Config struct {
	Engine   *sim.Engine
	Network  *network.Network
	Topology *topology.Topology
	PEs      []topology.DeviceID // of each rank: where its memory is and its block 0 runs; see [Task.Blocks]
	Lanes    *order.Lanes        // of the checker, where others use it too; nil for some of its own
	Copied   func(EngineWork)    // is told what engines have done; nil: nobody
	Options
}

// Machine is a number of ranks with their memory, and the programs that run there. It belongs to one goroutine.
type Machine struct {
	Config
	carrier carrier
	orders  *orders    // the same, when all orders are tried out
	random  *rand.Rand // nil: nothing is moved
	check   *checker   // nil: nothing is checked
	hosts   *shadow    // of the host's memory, by its addresses

	ranks   []*rank
	windows []*Window // by offset
	used    uint64    // offsets below are taken for ever

	ready  []*Context // programs that can go on
	due    []*Computation
	live   []*Context // programs that have not ended
	jobs   []*Job     // not ended
	failed []error

	pending  []func() // what to do when something arrives, by token
	freeSlot []uint64
	buffers  buffers
	internal internal
	polls    polls
	found    []Finding
	seen     map[pair]bool // what is in found
	told     int           // findings that a run has returned

	ran map[string]bool // by the name of a kernel: one has ended
}

// rank is a worker: its PEs, and the jobs that it has to do one after another.
type rank struct {
	id    int
	pes   []*pe
	queue []*Job
	room  residency
	begun map[string]int // by the name of a kernel: how many jobs with it have begun
	grids map[string]int // likewise: the programs of the last one
	copying
	landings *order.Family // of what others send here
}

// pe is a processing element: the pipes, the scratch memory, and what it has under way.
type pe struct {
	machine  *Machine
	rank     int
	slot     int      // among those of its rank
	program  *Context // that runs on it; nil when it is free
	device   topology.DeviceID
	scratch  *region
	lanes    *order.Family // of its pipes
	pipes    [pipes]pipe
	flags    map[flagName]*flag
	channels []*channel // by destination; nil before the first use
	chains   chains     // lanes of what is in no order
	flight   flight
	stores   flight // the part of it that threads have stored
	own      flight // the part of it that goes to the PE's own rank
	storing  []*message
	fenced   *fence // the last one, for channels that there were none of then
	lock     interlock
	issued   int             // operations
	held     uint64          // a hash of what has come into the scratch memory, for the search of states
	stale    []*staleWait    // waits that no new signal had satisfied
	heard    map[int]*origin // by rank: its last signal that was waited for
	doubts   []*doubt        // of signals that its waits have learned of
	told     map[*cell]told  // what the last look at each word has told, of programs' own loops
	loose    []*loose        // uses of words that ordered less than they could, the last ones
	gone     bool            // its program was cancelled, and another has its place
}

// New makes a machine. It panics when there is no PE.
func New(c Config) *Machine {
	if len(c.PEs) == 0 {
		panic("prim: a machine needs at least one PE")
	}
	m := &Machine{Config: c, used: Granule, ranks: make([]*rank, len(c.PEs)), internal: internal{}, ran: map[string]bool{}, hosts: newShadow()}
	m.carrier = timed{m}
	if c.Reorder {
		m.random = rand.New(rand.NewPCG(c.Seed, 0))
	}
	if c.Check {
		m.check = newChecker(m)
	}
	for r := range m.ranks {
		m.ranks[r] = &rank{id: r}
	}
	return m
}

// Over makes a machine of its own over a topology: one rank a SIP, at its first PE.
func Over(t *topology.Topology, ranks int, o Options) (*Machine, error) {
	if ranks < 1 || ranks > t.SIPs() {
		return nil, fmt.Errorf("%d ranks on topology %s, which has 1 to %d SIPs", ranks, t.Name, t.SIPs())
	}
	e := sim.NewEngine()
	c := Config{Engine: e, Network: network.New(e, t), Topology: t, Options: o}
	for r := range ranks {
		c.PEs = append(c.PEs, t.PE(r, 0, 0))
	}
	return New(c), nil
}

// World is the number of ranks.
func (m *Machine) World() int { return len(m.ranks) }

// Now is the simulated time.
func (m *Machine) Now() sim.Time { return m.Engine.Now() }

// freePE returns the first PE of a rank that runs nothing. What is beyond the PEs of the topology shares those.
func (m *Machine) freePE(r int) *pe {
	k := m.ranks[r]
	for k.room.first < len(k.pes) && k.pes[k.room.first].program != nil {
		k.room.first++
	}
	if k.room.first == len(k.pes) {
		k.pes = append(k.pes, m.newPE(r, len(k.pes)))
	}
	return k.pes[k.room.first]
}

func (m *Machine) newPE(r, slot int) *pe {
	p := &pe{machine: m, rank: r, slot: slot, device: m.deviceOf(r, slot), lock: newInterlock(), flags: map[flagName]*flag{}, heard: map[int]*origin{}, channels: make([]*channel, len(m.ranks))}
	p.chains.check = m.check
	for i := range p.pipes {
		p.pipes[i].pe, p.pipes[i].id = p, Pipe(i)
		p.pipes[i].agent.last.Lane = m.check.laneOf(&p.lanes)
	}
	return p
}

// deviceOf is the PE of a slot. Slots are dealt out to the cubes of the SIP in turn, from the rank's own PE on and round
// again, so that a few programs have the memory of several cubes.
func (m *Machine) deviceOf(r, slot int) topology.DeviceID {
	d, cubes, perCube := m.Topology.Device(m.PEs[r]), m.Topology.CubesPerSIP(), m.Topology.PEsPerCube()
	return m.Topology.PE(d.SIP, (d.Cube+slot)%cubes, (d.PE+slot/cubes)%perCube)
}

// memoryOf is where p reaches a rank's memory. That is spread over the stacks of all cubes, and each of the rank's own PEs
// uses the one of its cube, so that all of them together have what a product of the host has. Others reach it at the
// rank's own PE.
func (p *pe) memoryOf(rank int) topology.DeviceID {
	if rank == p.rank {
		return p.device
	}
	return p.machine.PEs[rank]
}

// scratchOf is the scratch memory of a slot; nil when no program has run there.
func (k *rank) scratchOf(slot int) *region {
	if slot >= len(k.pes) {
		return nil
	}
	return k.pes[slot].scratchMemory()
}

// scratchMemory is the PE's scratch memory, which is made at its first use.
func (p *pe) scratchMemory() *region {
	if p.scratch == nil {
		p.scratch = &region{
			name: "the scratch memory", rank: p.rank,
			start: address(p.rank, scratchBit|uint64(p.slot)<<blockShift),
			limit: int(p.machine.Topology.Compute().Scratch), shadow: newShadow(),
		}
	}
	return p.scratch
}
