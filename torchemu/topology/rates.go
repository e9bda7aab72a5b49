package topology

// DMA describes the engines by which one PE sends.
type DMA struct {
	Engines   int   // messages that are sent at the same time
	Bandwidth int64 // bytes per second of one engine
	Setup     int64 // picoseconds that a message takes before its first byte leaves
}

// DMA is the DMA engines of a PE.
func (t *Topology) DMA() DMA {
	d := t.config.PE.DMA
	return DMA{int(d.Engines), d.Bandwidth.bytesPerSecond(), d.Setup.picoseconds()}
}

// ReduceRate is how many bytes of result per second the vector unit of a PE makes when it combines two operands.
func (t *Topology) ReduceRate() int64 { return t.config.PE.Vector.ReduceBandwidth.bytesPerSecond() }

// LaunchOverhead is the time that a launch costs the host, in picoseconds.
func (t *Topology) LaunchOverhead() int64 { return t.config.Host.LaunchOverhead.picoseconds() }

// HostLink joins a SIP with the host of its rank.
type HostLink struct {
	Bandwidth int64 // bytes per second in each direction
	Latency   int64 // picoseconds
}

// HostLink is the link between a SIP and its host. It is none of the Links, for messages between PEs do not use it.
func (t *Topology) HostLink() HostLink {
	l := t.config.Host.Link
	return HostLink{l.Bandwidth.bytesPerSecond(), l.Latency.picoseconds()}
}

// Compute is the peak rates and the memory of one PE.
type Compute struct {
	MatrixF8   int64 // operations per second of the matrix unit
	MatrixF16  int64 // bf16 too
	MatrixF32  int64
	MatrixTF32 int64 // of float32 where a program lets products round their operands; MatrixF32 without such units
	VectorF32  int64 // operations per second of the vector unit
	Scratch    int64 // bytes of scratch memory
}

// Compute is the peak rates and the memory of one PE.
func (t *Topology) Compute() Compute {
	m, v := t.config.PE.Matrix, t.config.PE.Vector
	rounded := m.F32
	if m.TF32 > 0 {
		rounded = teraflops(m.TF32)
	}
	return Compute{
		m.F8.perSecond(), m.F16.perSecond(), m.F32.perSecond(), rounded.perSecond(), v.F32.perSecond(),
		int64(t.config.PE.ScratchKiB) << 10,
	}
}

// Memory is the HBM of one cube.
type Memory struct {
	Bandwidth int64 // bytes per second in each direction
	Latency   int64 // picoseconds
	Capacity  int64 // bytes
}

// Memory is the HBM of one cube.
func (t *Topology) Memory() Memory {
	h := t.config.Cube.HBM
	return Memory{h.Bandwidth.bytesPerSecond(), h.Latency.picoseconds(), int64(h.CapacityGiB) << 30}
}
