package network

import "github.com/torchemu/torchemu/torchemu/sim"

// departures are the flows that share links, by the times at which they finish. Rates change so often that one event
// for the first of them is cheaper than one for each. It is a 4-ary heap, like the engine's.
type departures struct {
	heap    []finish
	places  []int32     // by flow: where it is in the heap, or none
	entered uint64      // flows so far
	planned sim.Time    // of the event; busy without one
	event   sim.EventID // 0 without one
}

// finish is when a flow departs. Of those that depart together the one that came first is the first.
type finish struct {
	at   sim.Time
	age  uint64
	flow int32
}

func (a *finish) before(b *finish) bool { return a.at < b.at || a.at == b.at && a.age < b.age }

// first is when the first flows depart; busy when there are none.
func (d *departures) first() sim.Time {
	if len(d.heap) == 0 {
		return busy
	}
	return d.heap[0].at
}

// time is when a flow departs that was put.
func (d *departures) time(f int32) sim.Time { return d.heap[d.places[f]].at }

// put sets when a flow departs.
func (d *departures) put(f int32, at sim.Time) {
	i := d.places[f]
	if i == none {
		d.entered++
		i = int32(len(d.heap))
		d.heap = append(d.heap, finish{})
		d.rise(i, finish{at, d.entered, f})
		return
	}
	x := d.heap[i]
	if later := at > x.at; later {
		x.at = at
		d.sink(i, x)
	} else {
		x.at = at
		d.rise(i, x)
	}
}

// pop removes the first flow.
func (d *departures) pop() int32 {
	f := d.heap[0].flow
	d.places[f] = none
	last := len(d.heap) - 1
	x := d.heap[last]
	d.heap = d.heap[:last]
	if last > 0 {
		d.sink(0, x)
	}
	return f
}

const fanout = 4

// rise puts x in place i or above.
func (d *departures) rise(i int32, x finish) {
	for i > 0 {
		parent := (i - 1) / fanout
		if !x.before(&d.heap[parent]) {
			break
		}
		d.set(i, d.heap[parent])
		i = parent
	}
	d.set(i, x)
}

// sink puts x in place i or below.
func (d *departures) sink(i int32, x finish) {
	for {
		first := fanout*i + 1
		if int(first) >= len(d.heap) {
			break
		}
		least := first
		for c := first + 1; c < min(first+fanout, int32(len(d.heap))); c++ {
			if d.heap[c].before(&d.heap[least]) {
				least = c
			}
		}
		if !d.heap[least].before(&x) {
			break
		}
		d.set(i, d.heap[least])
		i = least
	}
	d.set(i, x)
}

func (d *departures) set(i int32, x finish) {
	d.heap[i] = x
	d.places[x.flow] = i
}
