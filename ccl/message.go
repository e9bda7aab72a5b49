package ccl

import (
	"sync"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Message is one message between two ranks, point to point.
type Message struct {
	From, To topology.DeviceID
	Elems    int
	ElemSize int // bytes
}

// Send starts a message now. When it has arrived, s.Delivered is called with the token. Where the topology has a transport,
// that carries it, as a call of its own.
func (x *Executor) Send(m Message, s network.Sink, token uint64) {
	l := m.launch()
	if !x.carries(l) {
		x.network.Send(x.network.Path(m.From, m.To), int64(m.Elems)*int64(m.ElemSize), s, token)
		return
	}
	r := x.newRide(l, &receipt{s, token, l.Schedule.World})
	for rank := range l.Schedule.World {
		r.Join(rank, x.engine.Now())
	}
}

// launch is the message as an exchange of two ranks, of which one has nothing to say.
func (m Message) launch() Launch {
	return Launch{
		Schedule: pairSchedule(), Elems: m.Elems, ElemSize: m.ElemSize, PartialSize: m.ElemSize,
		Sizes: []int{0, m.Elems, 0, 0}, Devices: []topology.DeviceID{m.From, m.To}, Carriage: Carriage{Message: true},
	}
}

var pairSchedule = sync.OnceValue(func() *Schedule {
	return allToAllDirect().Build(Layout{World: 2}, 0)
})

// receipt tells a Sink when both ends of a message are done.
type receipt struct {
	sink  network.Sink
	token uint64
	left  int
}

// RankDone implements Watcher.
func (r *receipt) RankDone(_ int, now sim.Time) {
	if r.left--; r.left == 0 {
		r.sink.Delivered(now, r.token)
	}
}
