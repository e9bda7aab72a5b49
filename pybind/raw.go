package pybind

import (
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
)

// DTypeNumber is the number of an element type in a region.
func DTypeNumber(name string) (number int, err error) {
	defer host.Guard(&err)
	d, err := dtype.Parse(name)
	return int(d), err
}

// AdoptWorld makes the calling thread the one that may use the World, and no other. Threads that take turns call it when
// theirs comes.
func AdoptWorld(handle int64) (err error) {
	defer host.Guard(&err)
	return host.Adopt(handle)
}

// ExpectThreads tells that so many threads take turns.
func ExpectThreads(count int) (err error) {
	defer host.Guard(&err)
	return host.ExpectThreads(count)
}

// IssueRegions is Issue for tensors in memory that Python owns, see host.ReadOperands: outs of them at the address, and
// ins behind those. With fewer than 0 ins the operation is in place.
func IssueRegions(group, stream int64, site int, asyncOp bool, call, regionsAt int64, regions, outs, ins int) (work int64, err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return 0, err
	}
	out, in, err := host.ReadOperands(regionsAt, regions, outs, ins)
	if err != nil {
		return 0, err
	}
	return host.Issue(g, host.Caller{Stream: stream, Site: site, Async: asyncOp}, call, out, in)
}

// EstimateRegions is Estimate for tensors in memory that Python owns; see IssueRegions.
func EstimateRegions(group int64, rank int, call, regionsAt int64, regions, outs, ins int) (ps int64, err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return 0, err
	}
	out, in, err := host.ReadOperands(regionsAt, regions, outs, ins)
	if err != nil {
		return 0, err
	}
	o, err := host.CallOf(call, out, in)
	if err != nil {
		return 0, err
	}
	took, err := g.Object.Estimate(rank, o)
	return int64(took), err
}

// PostRegion is Post for a tensor in memory that Python owns: one region at the address.
func PostRegion(group, stream int64, site int, asyncOp, sending bool, peer, tag int, regionAt int64, region int) (work int64, err error) {
	defer host.Guard(&err)
	g, err := host.GroupOf(group)
	if err != nil {
		return 0, err
	}
	c, err := host.CallerOf(stream, site, asyncOp)
	if err != nil {
		return 0, err
	}
	t, err := host.ReadRegion(regionAt, region)
	if err != nil {
		return 0, err
	}
	post := g.Object.Recv
	if sending {
		post = g.Object.Send
	}
	w, err := post(c, peer, tag, t)
	return host.Issued(g.World, asyncOp, w, err)
}

// WorkSettled returns an event that ends as soon as a work's data is in place, in no simulated time; 0 when it is. A work
// that has failed is an error.
func WorkSettled(work int64) (event int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorkOf(work)
	if err != nil {
		return 0, err
	}
	if w.Object.Settled() {
		return 0, w.Object.Err()
	}
	settled := w.World.Settled([]*torchemu.Event{w.Object.Event})
	return host.Own(w.World, settled), nil
}

// WorkSoon is WorkSettled for a host that can put off what it needs the data for, see Defer: the event ends also when
// simulated time is to pass. It is -2 where the data is not to be waited for at all.
func WorkSoon(work int64) (event int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorkOf(work)
	if err != nil {
		return 0, err
	}
	if w.Object.Settled() {
		return 0, w.Object.Err()
	}
	soon := w.World.Soon([]*torchemu.Event{w.Object.Event})
	if soon == nil {
		return host.InVain, nil
	}
	return host.Own(w.World, soon), nil
}
