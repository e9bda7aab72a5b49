package network

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Unit is what a kernel computes with: the vector units of all PEs of a SIP, or their matrix units on one kind of
// elements.
type Unit uint8

// The units, with their rates in the topology.
const (
	Vector    Unit = iota // pe.vector.f32_tflops, whatever the elements are
	MatrixF8              // pe.matrix.f8_tflops
	MatrixF16             // pe.matrix.f16_tflops; bfloat16 too
	MatrixF32             // pe.matrix.f32_tflops
	Idle                  // no unit: an operation is a picosecond in which a kernel holds up its stream
	units     = iota
)

// String is the unit's name, for reports.
func (u Unit) String() string {
	return [units]string{Vector: "vector", MatrixF8: "matrix f8", MatrixF16: "matrix f16", MatrixF32: "matrix f32", Idle: "idle"}[u]
}

// MatrixUnit is what multiplies matrices of a dtype: the matrix units if they know it, or else the vector units.
func MatrixUnit(d dtype.DType) Unit {
	switch d {
	case dtype.F8E4M3, dtype.F8E5M2:
		return MatrixF8
	case dtype.F16, dtype.BF16:
		return MatrixF16
	case dtype.F32:
		return MatrixF32
	}
	return Vector
}

// Kernel is what a program of a whole SIP costs.
type Kernel struct {
	Bytes int64 // read from and written to the SIP's memories
	Ops   int64 // operations of the unit: a multiplication and an addition are two
	Unit  Unit
}

// sip is what kernels and copies use of a SIP: segments, or none before their first use.
type sip struct {
	memory, matrix, vector int32
	little                 int32 // the memory, for kernels of the vector units, whose launch is another
	copies                 [ways]int32
	brakes                 [3]int32 // the links by which a fault slows its kernels
	factor                 float64  // by which it does; 0: by none
	collectives            int      // that take of its units
	number                 int32
	products               int     // that slow copies
	lanes                  []int32 // the links by which they do
}

// full is the rate of a SIP's units: a flow over one has a byte for each picosecond that the unit takes for it alone.
const full = 1e12

// pair is a kernel with two flows, which is done when both are.
type pair struct {
	sink  Sink
	token uint64
	half  bool  // one of them has ended
	next  int32 // in the list of free ones
}

// halves is the sink of the two flows of a kernel.
type halves Network

// Kernel starts a kernel on the SIP of a PE: a flow over all memories of the SIP at once and evenly, and a flow over
// the unit. When both have ended, s.Delivered is called with the token.
func (n *Network) Kernel(at topology.DeviceID, k Kernel, s Sink, token uint64) {
	if k.Bytes < 0 || k.Ops < 0 {
		panicNegative(min(k.Bytes, k.Ops))
	}
	if k.Unit == Idle {
		n.after(n.KernelTime(k), s, token)
		return
	}
	d, work := n.sip(at), n.unitTime(k)
	if work > 0 && k.Unit != Vector {
		s, token = n.slowing(d, s, token)
	}
	switch {
	case k.Bytes > 0 && work > 0:
		both := n.newPair(s, token)
		n.flow(d.memoryFor(k.Unit), k.Bytes, (*halves)(n), both)
		n.flow(d.unit(k.Unit), int64(work), (*halves)(n), both)
	case k.Bytes > 0:
		n.flow(d.memoryFor(k.Unit), k.Bytes, s, token)
	case work > 0:
		n.flow(d.unit(k.Unit), int64(work), s, token)
	default:
		n.after(n.kernelLaunch(k.Unit), s, token)
	}
}

// after tells a sink when so much time has passed.
func (n *Network) after(t sim.Time, s Sink, token uint64) {
	n.engine.At(n.engine.Now()+t, flowPriority, (*delivery)(n), uint64(n.newFlow(none, 0, s, token)))
}

// KernelTime is how long a kernel takes that has its SIP to itself: exactly.
func (n *Network) KernelTime(k Kernel) sim.Time {
	return n.kernelLaunch(k.Unit) + max(transmission(k.Bytes, n.memoryRate()), n.unitTime(k))
}

// kernelLaunch is what every kernel of a unit takes beside its bytes and operations.
func (n *Network) kernelLaunch(u Unit) sim.Time {
	k := n.topology.Kernels()
	switch {
	case k == nil:
		return 0
	case u == Vector && k.VectorLaunch > 0:
		return sim.Time(k.VectorLaunch)
	}
	return sim.Time(k.Launch)
}

// day bounds a single kernel or copy, so that a Time can hold what many take.
const day = 24 * 60 * 60 * sim.Second

// Check says what is wrong with the amounts of a kernel: less than nothing, or more than a day's work for the SIP.
func (n *Network) Check(k Kernel) error {
	if k.Bytes < 0 || k.Ops < 0 {
		return fmt.Errorf("a kernel of %d bytes and %d operations: both must be 0 or more", k.Bytes, k.Ops)
	}
	if amount(k.Bytes).at(rate{value: n.memoryRate()}) > day || amount(k.Ops).at(rate{value: n.compute[k.Unit]}) > day {
		return fmt.Errorf("a kernel of %d bytes and %d operations takes longer than a day", k.Bytes, k.Ops)
	}
	return nil
}

// memoryRate is how many bytes a second all memories of a SIP move.
func (n *Network) memoryRate() uint64 {
	return uint64(n.topology.CubesPerSIP()) * uint64(n.topology.Memory().Bandwidth)
}

// unitTime is how long a kernel alone takes its unit.
func (n *Network) unitTime(k Kernel) sim.Time { return transmission(k.Ops, n.compute[k.Unit]) }

// flow starts a flow that needs no DMA engine.
func (n *Network) flow(segment int32, bytes int64, s Sink, token uint64) {
	n.begin(n.newFlow(segment, bytes, s, token), n.engine.Now())
}

// memoryFor is the memory as kernels of a unit go through it: the same links, after the launch that such a kernel takes.
func (d *sip) memoryFor(u Unit) int32 {
	if u == Vector {
		return d.little
	}
	return d.memory
}

func (d *sip) unit(u Unit) int32 {
	if u == Vector {
		return d.vector
	}
	return d.matrix
}

func (n *Network) newPair(s Sink, token uint64) uint64 {
	i := n.freePair
	if i == none {
		i = int32(len(n.pairs))
		n.pairs = append(n.pairs, pair{})
	} else {
		n.freePair = n.pairs[i].next
	}
	n.pairs[i] = pair{sink: s, token: token}
	return uint64(i)
}

// Delivered notes the end of one flow and reports that of both.
func (h *halves) Delivered(now sim.Time, i uint64) {
	n := (*Network)(h)
	p := &n.pairs[i]
	if !p.half {
		p.half = true
		return
	}
	s, token := p.sink, p.token
	*p = pair{next: n.freePair}
	n.freePair = int32(i)
	s.Delivered(now, token)
}

// computeRates are the operations per second of a SIP, by unit.
func computeRates(t *topology.Topology) [units]uint64 {
	c, pes := t.Compute(), uint64(t.CubesPerSIP()*t.PEsPerCube())
	return [units]uint64{
		Vector: pes * uint64(c.VectorF32), MatrixF8: pes * uint64(c.MatrixF8),
		MatrixF16: pes * uint64(c.MatrixF16), MatrixF32: pes * uint64(c.MatrixF32), Idle: uint64(sim.Second),
	}
}

// sip returns what kernels use of the SIP of a PE.
func (n *Network) sip(at topology.DeviceID) *sip {
	i := n.topology.Device(at).SIP
	if i < 0 {
		panic(fmt.Sprintf("network: %s is not in a SIP", n.topology.Device(at).Name()))
	}
	if n.sips == nil {
		n.sips = make([]sip, n.topology.SIPs())
		for i := range n.sips {
			n.sips[i] = sip{memory: none, copies: [ways]int32{none, none}, number: int32(i)}
		}
	}
	d := &n.sips[i]
	if d.memory == none {
		bandwidth := uint64(n.topology.Memory().Bandwidth)
		d.brakes = [...]int32{n.newLink(bandwidth), n.newLink(full), n.newLink(full)}
		d.memory, d.little = n.newMemory(i, d.brakes[0], MatrixF32), n.newMemory(i, d.brakes[0], Vector)
		d.matrix, d.vector = n.newUnit(d.brakes[1], MatrixF32), n.newUnit(d.brakes[2], Vector)
	}
	return d
}

// newMemory returns the segment of a SIP's memories: the links of all of them, in both directions, because a stack of
// memory has one bus. brake is what kernels may take together; only a fault makes that less than what a memory has.
func (n *Network) newMemory(i int, brake int32, u Unit) int32 {
	s := n.newSegment()
	s.kernel, s.lanes, s.latency = true, uint32(n.topology.CubesPerSIP()), n.kernelLaunch(u)
	n.append(&s, brake)
	for cube := range n.topology.CubesPerSIP() {
		read, write := n.memoryLinks(i, cube)
		n.append(&s, n.link(read))
		n.append(&s, n.link(write))
	}
	return n.addSegment(s)
}

// memoryLinks are the links from and to the memory of a cube.
func (n *Network) memoryLinks(sip, cube int) (read, write topology.Link) {
	pe := n.topology.PE(sip, cube, 0)
	route := n.topology.Route(pe, pe)
	return n.topology.Link(route[0]), n.topology.Link(route[1])
}

// newUnit returns a segment for the matrix units of a SIP, or for its vector units.
func (n *Network) newUnit(brake int32, u Unit) int32 {
	s := n.newSegment()
	s.kernel, s.latency = true, n.kernelLaunch(u)
	n.append(&s, brake)
	return n.addSegment(s)
}
