package prim

import (
	"math/bits"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// carrier decides when what has been started has its effect: the network, or a search through all orders.
type carrier interface {
	// send moves bytes from one PE's cube to another's.
	send(from, to topology.DeviceID, bytes int, e effect)
	// feed moves bytes at no more than a rate, for an engine that is no DMA engine of the PE's.
	feed(from, to topology.DeviceID, bytes int, rate int64, e effect)
	// combine makes a result of so many bytes on a vector unit.
	combine(pe topology.DeviceID, bytes int, e effect)
	// after lets time pass.
	after(d sim.Time, e effect)
	// step lets the next thing happen that was started; false when there is nothing.
	step() bool
}

// effect is what happens at the end of an operation.
type effect struct {
	by      *origin  // of the operation; nil for what only lets time pass
	message *message // whose arrival it is; nil for what stays in order by itself
	data    []byte   // under way; may be nil
	do      func()
}

// effect is an operation's, without data.
func (m *Machine) effect(by *origin, do func()) effect { return effect{by: by, do: do} }

// timed is the carrier in simulated time.
type timed struct{ *Machine }

// maxMove bounds by how much Reorder delays something: a multiple of what messages take between SIPs.
const maxMove = 8 * sim.Microsecond

func (t timed) send(from, to topology.DeviceID, bytes int, e effect) {
	t.Network.Send(t.Network.Path(from, to), int64(bytes), t.Machine, t.later(t.moved(e.do)))
}

func (t timed) feed(from, to topology.DeviceID, bytes int, rate int64, e effect) {
	t.Network.SendOn(t.Network.Lane(from, to, rate), int64(bytes), t.Machine, t.later(t.moved(e.do)))
}

func (t timed) combine(pe topology.DeviceID, bytes int, e effect) {
	t.Network.Reduce(pe, int64(bytes), t.Machine, t.later(t.moved(e.do)))
}

func (t timed) after(d sim.Time, e effect) {
	t.Engine.At(t.Now()+d, 0, t.Machine, t.later(t.moved(e.do)))
}

func (t timed) step() bool { return !t.Engine.Idle() && t.Engine.Step() }

// moved is an effect that comes, with Reorder, half of the time a random time later.
func (t timed) moved(do func()) func() {
	if t.random == nil || t.random.IntN(2) == 0 {
		return do
	}
	d := sim.Time(t.random.Int64N(int64(maxMove)))
	return func() { t.Engine.At(t.Now()+d, 0, t.Machine, t.later(do)) }
}

// later keeps an effect until something of its token arrives.
func (m *Machine) later(do func()) uint64 {
	if n := len(m.freeSlot); n > 0 {
		token := m.freeSlot[n-1]
		m.freeSlot = m.freeSlot[:n-1]
		m.pending[token] = do
		return token
	}
	m.pending = append(m.pending, do)
	return uint64(len(m.pending) - 1)
}

// Delivered makes Machine a [network.Sink].
func (m *Machine) Delivered(_ sim.Time, token uint64) {
	do := m.pending[token]
	m.pending[token] = nil
	m.freeSlot = append(m.freeSlot, token)
	if do != nil { // else the run that it is of has failed
		do()
	}
}

// Handle makes Machine a [sim.Handler].
func (m *Machine) Handle(now sim.Time, token uint64) { m.Delivered(now, token) }

var _ network.Sink = (*Machine)(nil)

// memoryLatency is how long a look at memory takes.
func (m *Machine) memoryLatency() sim.Time { return sim.Time(m.Topology.Memory().Latency) }

// latency is how long it takes from one PE's cube to another's until the first byte is there, without the set-up of
// a DMA engine.
func (m *Machine) latency(from, to topology.DeviceID) sim.Time {
	if m.searched() {
		return 0 // whatever the times are
	}
	return m.Network.Alpha(m.Network.Path(from, to)) - sim.Time(m.Topology.DMA().Setup)
}

// injection is how long a DMA engine takes to read bytes and to send them off, when no link holds it up.
func (m *Machine) injection(bytes int) sim.Time {
	d := m.Topology.DMA()
	return sim.Time(d.Setup) + duration(int64(bytes), d.Bandwidth)
}

// duration is how long an amount takes at a rate per second.
func duration(amount, rate int64) sim.Time {
	hi, lo := bits.Mul64(uint64(amount), uint64(sim.Second))
	q, _ := bits.Div64(hi, lo, uint64(rate))
	return sim.Time(q)
}

// buffers are the copies of data under way, kept for reuse by the power of two of their size.
type buffers [40][][]byte

// take returns a copy of data.
func (b *buffers) take(data []byte) []byte {
	k := bits.Len(uint(max(1, len(data)) - 1))
	if n := len(b[k]); n > 0 {
		last := b[k][n-1][:len(data)]
		b[k] = b[k][:n-1]
		copy(last, data)
		return last
	}
	return append(make([]byte, 0, 1<<k), data...)
}

// give takes a buffer back.
func (b *buffers) give(data []byte) {
	if k := bits.Len(uint(cap(data))) - 1; k >= 0 && cap(data) > 0 {
		b[k] = append(b[k], data)
	}
}

// searched says whether all orders are tried out; see [Explore].
func (m *Machine) searched() bool { return m.orders != nil }
