package distributed

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// AnySource as the peer of a receive takes the first message with the tag, whoever sent it.
const AnySource = -1

// mailbox is what has been sent to a member and not been received, and what it receives that nobody has sent.
type mailbox struct{ sends, recvs []*letter }

// drop removes and returns the letters for which which is true.
func (b *mailbox) drop(which func(*letter) bool) []*letter {
	var gone []*letter
	for _, list := range []*[]*letter{&b.sends, &b.recvs} {
		*list = slices.DeleteFunc(*list, func(l *letter) bool {
			if which(l) {
				gone = append(gone, l)
				return true
			}
			return false
		})
	}
	return gone
}

// withdraw takes a letter out of its mailbox; false when it is not there any more.
func (l *letter) withdraw() bool {
	box := &l.group.mail[l.to]
	list := &box.recvs
	if l.sending {
		list = &box.sends
	}
	i := slices.Index(*list, l)
	if i < 0 {
		return false
	}
	*list = without(*list, i)
	return true
}

// without takes a letter out of a list. It is mostly the first, of perhaps thousands.
func without(list []*letter, i int) []*letter {
	if i == 0 {
		list[0] = nil
		return list[1:]
	}
	return slices.Delete(list, i, i+1)
}

// letter is one side of a message.
type letter struct {
	group    *ProcessGroup
	from, to int // group ranks; from may be AnySource on the receiving side
	sending  bool
	tag      int
	tensor   *tensor.Tensor
	site     Site
	work     *Work
	data     []*torchemu.Event // what is to be in place before the bytes can be copied
	after    []*torchemu.Event // what must end before the device can start
	number   uint64            // in recordings
	called   sim.Time          // when the host began to issue it
	ready    sim.Time
	reached  sim.Time // when the device can start, as far as known
	other    *letter  // the other side, once they have met
	errand   *errand
}

// Source is the group rank that a receive got its message from, once it is done. AnySource: it is no receive, or has got
// none from any rank yet.
func (w *Work) Source() int {
	if w.letter == nil || w.letter.sending {
		return AnySource
	}
	return w.source
}

// Send issues a message with t's elements to a member. It meets the first receive there that asks for this sender
// and tag, and ends when the message has arrived: there is no buffer in between.
func (g *ProcessGroup) Send(c Caller, to, tag int, t *tensor.Tensor) (*Work, error) {
	me, err := g.rankOf(c.Rank)
	if err != nil {
		return nil, err
	}
	return g.post(c, &letter{group: g, from: me, to: to, sending: true, tag: tag, tensor: t})
}

// Recv issues the receipt of a message, into t, from a member or AnySource.
func (g *ProcessGroup) Recv(c Caller, from, tag int, t *tensor.Tensor) (*Work, error) {
	me, err := g.rankOf(c.Rank)
	if err != nil {
		return nil, err
	}
	return g.post(c, &letter{group: g, from: from, to: me, tag: tag, tensor: t})
}

// owner is the member that issued the letter.
func (l *letter) owner() int {
	if l.sending {
		return l.from
	}
	return l.to
}

// access is what the letter does with its tensor.
func (l *letter) access() tensor.Access {
	if l.sending {
		return tensor.Read
	}
	return tensor.Write
}

// post issues a letter and lets it meet the other side, if that is there.
func (g *ProcessGroup) post(c Caller, l *letter) (*Work, error) {
	if err := l.checkCall(); err != nil {
		return nil, err
	}
	host, err := g.backend.World.Rank(c.Rank)
	if err != nil {
		return nil, err
	}
	if err := host.Alive(); err != nil {
		return nil, err
	}
	if c.Stream == nil {
		c.Stream = host.Stream()
	}
	if err := l.sets(c); err != nil {
		return nil, err
	}
	l.site = c.Site
	if err := g.checkMirrored(l); err != nil {
		return nil, err
	}
	l.number, l.called, l.ready = g.backend.launch(host)
	l.reached = l.ready
	l.data = torchemu.PendingOn(l.tensor, l.access())
	l.after = torchemu.Unfinished(append(l.data, c.Stream.Tail())...)
	l.work = &Work{Event: torchemu.NewEvent(l), source: l.from, letter: l}
	l.errand.tellOf(l.work.Event, host)
	l.work.Pend(l.tensor, l.access())
	host.Issued(l.work.Event)
	g.watch(l.owner(), l.work, l.ready)
	if !c.Async {
		c.Stream.Wait(l.work.Event)
	}
	l.follow()
	g.backend.World.Footprint.Launch()
	if other := g.mail[l.to].take(l, g.backend.Choose); other != nil {
		return l.work, l.meet(other)
	}
	return l.work, nil
}

// sets the letter out: it is an error when its tensor is used by something that nothing orders.
func (l *letter) sets(c Caller) error {
	key := [2]int{l.owner(), l.peer()}
	line := l.group.letters[key]
	l.errand = l.group.backend.run(&line, c, l.Name())
	l.group.letters[key] = line
	if l.errand == nil {
		return nil
	}
	if l.sending {
		l.errand.end.Seal()
	}
	return l.errand.touch(l.tensor, l.access())
}

// tells the receiver what the sender knows, who learns nothing of it.
func (l *letter) tells(recv *letter) {
	if l.errand != nil && recv.errand != nil {
		recv.errand.end.Add(l.errand.begin)
		recv.errand.end.Seal()
	}
}

// follow fails the message, at both ends, when an operation fails that it follows.
func (l *letter) follow() {
	for _, e := range l.after {
		e.WhenDone(func() {
			if e.Err() != nil {
				l.lose(e.Err())
			}
		})
	}
}

// lose fails both sides of a message that will not be sent.
func (l *letter) lose(err error) {
	now := l.group.backend.World.Engine.Now()
	l.withdraw()
	l.work.Fail(err, now)
	if l.other != nil {
		l.other.work.Fail(err, now)
	}
}

// checkCall verifies what the member that issues the letter can know to be wrong.
func (l *letter) checkCall() error {
	name, peer, word := "recv", l.from, "source"
	if l.sending {
		name, peer, word = "send", l.to, "destination"
	}
	if l.tensor == nil {
		return fmt.Errorf("%s: a tensor is nil", name)
	}
	if peer == AnySource && !l.sending || peer >= 0 && peer < l.group.Size() {
		return nil
	}
	return fmt.Errorf("invalid %s rank %d: group %s has ranks 0 to %d", word, peer, l.group.Name, l.group.Size()-1)
}

// take removes and returns the letter that l meets; without one it keeps l. Where several senders' messages fit a
// receive, choose picks one.
func (b *mailbox) take(l *letter, choose func(n int) int) *letter {
	mine, theirs := &b.recvs, &b.sends
	if l.sending {
		mine, theirs = theirs, mine
	}
	fits := l.fits(*theirs)
	if len(fits) == 0 {
		*mine = append(*mine, l)
		return nil
	}
	i := fits[0]
	if len(fits) > 1 && choose != nil {
		i = fits[choose(len(fits))]
	}
	other := (*theirs)[i]
	*theirs = without(*theirs, i)
	return other
}

// fits lists the letters that l can meet: of each sender the first, for messages do not overtake each other.
func (l *letter) fits(others []*letter) []int {
	var list []int
	seen := map[int]bool{}
	for i, o := range others {
		if o.tag != l.tag || seen[o.from] && !l.sending {
			continue
		}
		if o.from == l.from || o.from == AnySource || l.from == AnySource {
			list = append(list, i)
			seen[o.from] = true
		}
	}
	if l.sending && len(list) > 1 {
		return list[:1] // the receive that was posted first
	}
	return list
}

// meet sends the message: its data when both tensors are free for it, its bytes when both devices are.
func (l *letter) meet(other *letter) error {
	send, recv := l, other
	if !l.sending {
		send, recv = other, l
	}
	recv.work.source = send.from
	send.other, recv.other = recv, send
	if err := send.check(recv); err != nil {
		send.lose(err)
		return err
	}
	send.tells(recv)
	data := append(send.data, recv.data...)
	whenSettled(data, func() {
		if !slices.ContainsFunc(data, failed) {
			send.copyTo(recv)
		}
	})
	after := torchemu.Unfinished(append(send.after, recv.after...)...)
	torchemu.AfterAll(after, func(latest sim.Time) {
		send.letGo()
		recv.letGo()
		if !send.work.Done() && !recv.work.Done() {
			send.transmit(recv, max(latest, send.ready, recv.ready))
		}
	})
	return nil
}

// letGo forgets what the letter followed, which has ended: a chain would keep all that ever was in it.
func (l *letter) letGo() {
	for _, e := range l.after {
		l.reached = max(l.reached, e.At())
	}
	l.after, l.data = nil, nil
}

func failed(e *torchemu.Event) bool { return e.Err() != nil }

// check verifies that the receiver has room for just this message.
func (l *letter) check(recv *letter) error {
	a, b := l.tensor, recv.tensor
	if a.DType() == b.DType() && a.Numel() == b.Numel() {
		return nil
	}
	g := l.group
	differ, right := "the number of elements", "The receiver must have room for just what is sent."
	if a.DType() != b.DType() {
		differ, right = "the dtype", "Both sides must have the same dtype."
	}
	return &MismatchError{
		Group: g.Name, What: "a message", Rank: g.Members[l.from], Other: g.Members[recv.to],
		Call:      "send of " + count(a.Numel(), a.DType()),
		OtherCall: "recv of " + count(b.Numel(), b.DType()),
		Site:      g.backend.Sites.Text(l.site), OtherSite: g.backend.Sites.Text(recv.site),
		Differ: differ, Right: right,
	}
}

func (l *letter) copyTo(recv *letter) {
	if err := l.moveTo(recv.tensor); err != nil {
		now := l.group.backend.World.Engine.Now()
		l.work.Fail(err, now)
		recv.work.Fail(err, now)
		return
	}
	l.work.Settle()
	recv.work.Settle()
}

// moveTo copies the elements, which are as many, in row-major order: shapes may differ.
func (l *letter) moveTo(t *tensor.Tensor) error {
	if t.Storage().IsPhantom() || l.tensor.Storage().IsPhantom() {
		return nil
	}
	if slices.Equal(l.tensor.Shape(), t.Shape()) {
		return t.CopyFrom(l.tensor)
	}
	return t.Scatter(l.tensor.Gather())
}

// transmit sends the bytes from a time on that is not past.
func (l *letter) transmit(recv *letter, at sim.Time) {
	w := l.group.backend.World
	l.work.start, recv.work.start = at, at
	w.At(at, func(sim.Time) {
		g, elems, size := l.group, l.tensor.Numel(), l.tensor.DType().Size()
		message := ccl.Message{From: g.devices[l.from], To: g.devices[recv.to], Elems: elems, ElemSize: size}
		g.backend.executor.Send(message, transmission{l, recv, int64(elems * size)}, 0)
	})
}

// transmission is a message on its way.
type transmission struct {
	send, recv *letter
	bytes      int64
}

// Delivered ends both sides. It implements network.Sink.
func (t transmission) Delivered(now sim.Time, _ uint64) {
	b := t.send.group.backend
	b.Log = append(b.Log, &Record{
		Name: "send/recv", Algorithm: "p2p", Ranks: 2, Bytes: t.bytes, Start: t.send.work.start, End: now, unicast: true,
	})
	t.record(now)
	t.send.work.Finish(now)
	t.recv.work.Finish(now)
}

// whenSettled runs f once the data of all the events is in place.
func whenSettled(events []*torchemu.Event, f func()) {
	left := len(events) + 1
	one := func() {
		if left--; left == 0 {
			f()
		}
	}
	for _, e := range events {
		e.WhenSettled(one)
	}
	one()
}
