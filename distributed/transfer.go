package distributed

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// Transfer is one rank's access to the memory of others, in which those have no part: what a device does that loads
// from a peer's addresses, or stores to them.
type Transfer struct {
	Peers  []int // World ranks, of each of which it reads or writes
	Bytes  int64 // so many, 0 or more
	Writes bool
}

// Transfer puts an access on the caller's stream, after all that is on it, and returns its end: when the messages have
// arrived, which leave all at once. The caller has moved the data.
func (b *Backend) Transfer(c Caller, t Transfer) (*torchemu.Event, error) {
	host, err := b.World.Rank(c.Rank)
	if err != nil {
		return nil, err
	}
	if err := host.Alive(); err != nil {
		return nil, err
	}
	if err := b.World.Network.CheckCopy(t.Bytes); err != nil {
		return nil, err
	}
	for _, peer := range t.Peers {
		if _, err := b.World.Rank(peer); err != nil {
			return nil, err
		}
	}
	a := &access{Transfer: t, backend: b, rank: c.Rank, site: c.Site, stream: c.Stream.Number, left: len(t.Peers)}
	a.number, a.called, a.issued = b.launch(host)
	a.after = torchemu.Unfinished(c.Stream.Tail())
	a.event = torchemu.NewEvent(a)
	a.event.Settle()
	host.Issued(a.event)
	c.Stream.Wait(a.event)
	torchemu.AfterAll(a.after, func(latest sim.Time) { a.begin(max(a.issued, latest)) })
	return a.event, nil
}

// access is a transfer on its way: the reason of its event, and the sink of its messages.
type access struct {
	Transfer
	backend *Backend
	rank    int
	site    Site
	stream  int    // its number in the rank
	number  uint64 // in recordings
	called  sim.Time
	issued  sim.Time
	event   *torchemu.Event
	after   []*torchemu.Event
	left    int // messages that have not arrived
	start   sim.Time
}

// begin sends the messages at a time that is not past, unless what came before has failed.
func (a *access) begin(at sim.Time) {
	for _, e := range a.after {
		if e.Err() != nil {
			a.event.Fail(e.Err(), at)
			return
		}
	}
	a.backend.World.At(at, func(now sim.Time) {
		if a.start = now; a.left == 0 {
			a.event.Finish(now)
		}
		for _, peer := range a.Peers {
			a.send(peer)
		}
	})
}

func (a *access) send(peer int) {
	w := a.backend.World
	from, to := peer, a.rank
	if a.Writes {
		from, to = to, from
	}
	w.Network.Send(w.Network.Path(w.Topology.PE(from, 0, 0), w.Topology.PE(to, 0, 0)), a.Bytes, a, 0)
}

// Delivered ends the access with its last message. It implements network.Sink.
func (a *access) Delivered(now sim.Time, _ uint64) {
	if a.left--; a.left > 0 {
		return
	}
	b := a.backend
	b.Log = append(b.Log, &Record{
		Name: a.verb(), Algorithm: "p2p", Ranks: 2, Bytes: a.Bytes * int64(len(a.Peers)), Start: a.start, End: now, unicast: true,
	})
	a.record(now)
	a.event.Finish(now)
}

// record records the access as a program of the rank's device, which loads or stores: the peers have no part in it.
func (a *access) record(now sim.Time) {
	b := a.backend
	if r := &b.World.Trace; r.Wants(a.rank, a.called) {
		r.Activity(trace.Activity{
			Rank: a.rank, Kind: trace.Kernel, Name: "symm_mem::" + a.verb(), Number: a.number,
			Track:  trace.Track{Kind: trace.StreamTrack, ID: a.stream, Name: fmt.Sprintf("stream %d", a.stream)},
			Called: a.called, Issued: a.issued, Start: a.start, End: now, Bytes: a.Bytes * int64(len(a.Peers)),
			Site: b.Sites.Text(a.site),
		})
	}
}

func (a *access) verb() string {
	if a.Writes {
		return "put"
	}
	return "get"
}

// String describes the access. It implements torchemu.Reason.
func (a *access) String() string { return torchemu.Chain(a) }

// Alone describes the access itself. It implements torchemu.Link.
func (a *access) Alone() string {
	text := fmt.Sprintf("%s of %d bytes of the memory of ranks %v", a.verb(), a.Bytes, a.Peers)
	return text + at(a.backend.Sites.Text(a.site))
}

// Follows is what is on the stream before it. It implements torchemu.Link.
func (a *access) Follows() *torchemu.Event { return torchemu.FirstUnfinished(a.after) }

// Needs are those that what it follows needs. It implements torchemu.Reason.
func (a *access) Needs() []int {
	if e := a.Follows(); e != nil {
		return e.Reason().Needs()
	}
	return nil
}
