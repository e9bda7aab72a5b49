package topology

// enginesConfig is the engines that copy for a device, as measured; see [Engines]. Nothing in it has a default from
// presets/default.yaml.
type enginesConfig struct {
	Units   *unitsConfig      `yaml:"units"`
	SDMA    *copyEngineConfig `yaml:"sdma"`
	NIC     *copyEngineConfig `yaml:"nic"`
	Barrier span              `yaml:"barrier"`

	HostBarrier span `yaml:"host_barrier"`
	Collective  span `yaml:"collective"`

	Beside besideConfig `yaml:"beside"`
}

// besideConfig is what products and copies take from each other.
type besideConfig struct {
	Products share `yaml:"products"`
	Copies   share `yaml:"copies"`
}

type unitsConfig struct {
	Bandwidth *bandwidth `yaml:"bandwidth"`
	Link      *bandwidth `yaml:"link"`
}

type copyEngineConfig struct {
	Engines   count      `yaml:"engines"`
	Queues    count      `yaml:"queues"`
	Packet    span       `yaml:"packet"`
	Latency   span       `yaml:"latency"`
	Ack       span       `yaml:"ack"`
	Bandwidth *bandwidth `yaml:"bandwidth"`
}

// Engines is what copies for a device: its compute units, SDMA engines for each peer of the node, and its network card.
// Times are picoseconds, rates bytes per second.
type Engines struct {
	Units   int64 // of payload, where compute units copy within their device's memory
	Link    int64 // where they copy, or collectives send, from a device to another one; 0: as the links have it
	SDMA    CopyEngine
	NIC     CopyEngine
	Barrier int64 // what a barrier on a stream takes beside its signals

	HostBarrier int64 // what a barrier of hosts takes
	Collective  int64 // what a collective of compute units takes before its first step

	Products float64 // share of the units' rates that copies, and collectives, take from kernels beside them
	Beside   float64 // share of the engines' rates that products take from copies beside them
}

// CopyEngine is a class of engines that work through queues of packets.
type CopyEngine struct {
	Engines   int   // for each peer, among which its queues are dealt out; of a network card, 0: queue pairs share it
	Queues    int   // to each peer, at most
	Packet    int64 // of the engine for each packet, before its transmission
	Latency   int64 // from when the last byte has left until it is there
	Ack       int64 // from then until the sender knows
	Bandwidth int64 // of one copy
}

// Engines is what the topology's engines section says. Without one it follows from the DMA engines: SDMA with as many
// engines and queues as AMD's devices have, and latencies of 0; see HasEngines.
func (t *Topology) Engines() Engines { return t.engines }

// HasEngines says whether the topology has an engines section.
func (t *Topology) HasEngines() bool { return t.config.Engines != nil }

const mostQueues = 8 // to a peer: 2 engines of 4 queues each

func newEngines(c *config) Engines {
	dma, bandwidth := c.PE.DMA.Setup.picoseconds(), c.PE.DMA.Bandwidth.bytesPerSecond()
	e := Engines{
		Units: c.Cube.HBM.Bandwidth.bytesPerSecond() / 2,
		SDMA:  CopyEngine{Engines: 2, Queues: mostQueues, Packet: dma, Bandwidth: bandwidth},
		NIC:   CopyEngine{Queues: mostQueues, Packet: dma, Bandwidth: bandwidth},
	}
	if s := c.Engines; s != nil {
		e.Barrier, e.HostBarrier = s.Barrier.picoseconds(), s.HostBarrier.picoseconds()
		e.Collective = s.Collective.picoseconds()
		e.Products, e.Beside = float64(s.Beside.Products), float64(s.Beside.Copies)
		s.Units.over(&e)
		s.SDMA.over(&e.SDMA)
		s.NIC.over(&e.NIC)
	}
	return e
}

func (c *unitsConfig) over(e *Engines) {
	if c != nil && c.Bandwidth != nil {
		e.Units = c.Bandwidth.bytesPerSecond()
	}
	if c != nil && c.Link != nil {
		e.Link = c.Link.bytesPerSecond()
	}
}

// over replaces an engine's figures where the section has that engine.
func (c *copyEngineConfig) over(e *CopyEngine) {
	if c == nil {
		return
	}
	rate := e.Bandwidth
	if c.Bandwidth != nil {
		rate = c.Bandwidth.bytesPerSecond()
	}
	*e = CopyEngine{
		Engines: int(c.Engines), Queues: int(c.Queues), Packet: c.Packet.picoseconds(), Latency: c.Latency.picoseconds(),
		Ack: c.Ack.picoseconds(), Bandwidth: rate,
	}
	if e.Queues == 0 {
		e.Queues = mostQueues
	}
}
