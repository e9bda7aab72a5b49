package network_test

import (
	"math/big"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// reference is the model of the package, computed the long way: whenever anything happens, the rates of all flows
// are worked out anew, in exact fractions, by looking for the tightest link, giving its flows their share, and
// striking both out. It knows no reservations, contended links, components or peaks.
type reference struct {
	t       *topology.Topology
	jobs    []*job
	waiting map[topology.DeviceID][]*job
	using   map[topology.DeviceID]int // DMA engines in use
	slows   []slow
	factor  map[topology.LinkID]float64
}

// slow is a fault: what a link carries is divided by factor from a time on.
type slow struct {
	at     sim.Time
	links  []topology.LinkID
	factor float64
}

// job is a message, or one flow of a kernel or copy, which needs no DMA engine.
type job struct {
	message
	device   bool
	amount   *big.Rat            // to be sent over each link of a part
	parts    [][]topology.LinkID // its links, cut after devices that store and forward
	latency  []sim.Time          // of each part
	part     int
	next     sim.Time // when it comes to its next part or, at last, arrives; never while it flows or waits
	flowing  bool
	left     *big.Rat // bytes
	rate     *big.Rat // bytes per ps
	finish   sim.Time
	arrived  sim.Time
	complete bool
}

const never sim.Time = 1<<63 - 1

// expect returns when the messages arrive.
func expect(t *topology.Topology, messages []message) []sim.Time {
	r := &reference{t: t, waiting: map[topology.DeviceID][]*job{}, using: map[topology.DeviceID]int{}}
	for _, m := range messages {
		r.jobs = append(r.jobs, r.newJob(m))
	}
	r.run()
	var arrived []sim.Time
	for _, j := range r.jobs {
		arrived = append(arrived, j.arrived)
	}
	return arrived
}

// run lets all jobs come to their end.
func (r *reference) run() {
	for now := r.nextTime(0); now != never; now = r.nextTime(now) {
		r.slow(now)
		r.leave(now)
		r.come(now)
		r.share(now)
	}
}

func (r *reference) newJob(m message) *job {
	j := &job{message: m, next: m.at, amount: new(big.Rat).SetInt64(m.bytes)}
	var part []topology.LinkID
	latency := sim.Time(r.t.DMA().Setup)
	for _, id := range r.t.Route(m.src, m.dst) {
		l := r.t.Link(id)
		part = append(part, id)
		latency += sim.Time(l.Latency)
		if r.t.Device(l.To).StoreAndForward {
			j.parts, j.latency = append(j.parts, part), append(j.latency, latency)
			part, latency = nil, 0
		}
	}
	j.parts, j.latency = append(j.parts, part), append(j.latency, latency)
	return j
}

// nextTime advances all flows to the next time at which one finishes or arrives somewhere.
func (r *reference) nextTime(now sim.Time) sim.Time {
	next := never
	for _, j := range r.jobs {
		if j.flowing {
			next = min(next, j.finish)
		}
		next = min(next, j.next)
	}
	if len(r.slows) > 0 {
		next = min(next, r.slows[0].at)
	}
	if next == never {
		return never
	}
	for _, j := range r.jobs {
		if j.flowing {
			sent := new(big.Rat).SetInt64(int64(next - now))
			j.left.Sub(j.left, sent.Mul(sent, j.rate))
		}
	}
	return next
}

// slow takes note of the faults that begin now.
func (r *reference) slow(now sim.Time) {
	for len(r.slows) > 0 && r.slows[0].at == now {
		for _, l := range r.slows[0].links {
			if r.factor == nil {
				r.factor = map[topology.LinkID]float64{}
			}
			r.factor[l] = r.slows[0].factor
		}
		r.slows = r.slows[1:]
	}
}

// leave ends the flows that finish now.
func (r *reference) leave(now sim.Time) {
	for _, j := range r.jobs {
		if !j.flowing || j.finish != now {
			continue
		}
		j.flowing = false
		j.next = now + j.latency[j.part]
		if j.part == 0 && !j.device {
			r.using[j.src]--
		}
		j.part++
	}
}

// come lets messages that have come to a part, or wait for an engine, flow; the others arrive or queue. Messages
// that take no time may do several of these at once.
func (r *reference) come(now sim.Time) {
	for _, j := range r.jobs {
		if j.next != now {
			continue
		}
		j.next = never
		switch {
		case j.complete || j.part == len(j.parts):
			j.arrived = now
		case j.bytes == 0:
			j.complete = true
			for j.next = now; j.part < len(j.parts); j.part++ {
				j.next += j.latency[j.part]
			}
		case j.part == 0 && !j.device:
			r.waiting[j.src] = append(r.waiting[j.src], j)
		default:
			j.flow()
		}
	}
	for pe, queue := range r.waiting {
		for len(queue) > 0 && r.using[pe] < r.t.DMA().Engines {
			queue[0].flow()
			queue = queue[1:]
			r.using[pe]++
		}
		r.waiting[pe] = queue
	}
}

func (j *job) flow() {
	j.flowing = true
	j.left = new(big.Rat).Set(j.amount)
}

// share gives all flows their rates.
func (r *reference) share(now sim.Time) {
	flows := map[*job]bool{}
	left := map[topology.LinkID]*big.Rat{}
	for _, j := range r.jobs {
		if j.flowing {
			flows[j] = true
			for _, l := range j.parts[j.part] {
				left[l] = r.capacity(l)
			}
		}
	}
	engine := perPicosecond(r.t.DMA().Bandwidth)
	for len(flows) > 0 {
		share, tightest := r.tightest(flows, left, engine)
		for _, j := range tightest {
			delete(flows, j)
			j.rate = share
			for _, l := range j.parts[j.part] {
				left[l].Sub(left[l], share)
			}
			wait := new(big.Rat).Quo(j.left, share)
			j.finish = now + round(wait)
		}
	}
}

// tightest finds the least share that a link, or a DMA engine, has for its flows, and these flows.
func (r *reference) tightest(flows map[*job]bool, left map[topology.LinkID]*big.Rat, engine *big.Rat) (*big.Rat, []*job) {
	var share *big.Rat
	var tightest []*job
	for l, bandwidth := range left {
		var on []*job
		for j := range flows {
			if slices.Contains(j.parts[j.part], l) {
				on = append(on, j)
			}
		}
		if len(on) == 0 {
			continue
		}
		s := new(big.Rat).Quo(bandwidth, big.NewRat(int64(len(on)), 1))
		if share == nil || s.Cmp(share) < 0 {
			share, tightest = s, on
		}
	}
	for j := range flows {
		if j.part == 0 && !j.device && engine.Cmp(share) < 0 {
			share, tightest = engine, []*job{j}
		}
	}
	return share, tightest
}

// The reference numbers what is no link of the topology with negative numbers, four a SIP.
const (
	matrixUnits = iota
	vectorUnits
	hostToDevice
	deviceToHost
	allMemories
	extras
)

func extra(sip, which int) topology.LinkID { return topology.LinkID(-1 - sip*extras - which) }

// capacity is in bytes per ps: whole bytes per second.
func (r *reference) capacity(l topology.LinkID) *big.Rat {
	rate := r.nominal(l)
	if f := r.factor[l]; f != 0 {
		slower := new(big.Rat).Quo(new(big.Rat).SetInt64(rate), new(big.Rat).SetFloat64(f))
		rate = int64(round(slower))
	}
	return perPicosecond(rate)
}

// nominal is in bytes per second. A flow has as many bytes for a unit as picoseconds that it would take alone.
func (r *reference) nominal(l topology.LinkID) int64 {
	if l >= 0 {
		return r.t.Link(l).Bandwidth
	}
	switch int(-1-l) % extras {
	case matrixUnits, vectorUnits:
		return 1e12
	case allMemories:
		return r.t.Memory().Bandwidth
	}
	return r.t.HostLink().Bandwidth
}

func perPicosecond(bandwidth int64) *big.Rat { return big.NewRat(bandwidth, 1e12) }

// round is the nearest whole number, halves up; 0 for negative ones, which stand for less than half a picosecond's
// work that a flow was ahead.
func round(x *big.Rat) sim.Time {
	if x.Sign() < 0 {
		return 0
	}
	n := new(big.Int).Mul(x.Num(), big.NewInt(2))
	n.Add(n, x.Denom())
	return sim.Time(n.Quo(n, new(big.Int).Mul(x.Denom(), big.NewInt(2))).Int64())
}
