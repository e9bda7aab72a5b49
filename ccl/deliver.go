package ccl

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Collectives that do not reduce need no program: it is known beforehand which rank's input each block of a result is.
// Once it has been made sure that the schedule's steps bring it there, it is copied.

// deliver is Evaluate for collectives that do not reduce.
func (s *Schedule) deliver(v Values, elems int) ([]*tensor.Storage, error) {
	if err := s.delivers(); err != nil {
		return nil, err
	}
	d := delivery{outcome: outcome{apportionment: apportionment{s, elems, v.Sizes}, size: v.DType.Size()}, inputs: v.Inputs}
	if err := d.allocate(s.Collective.EndsAlike()); err != nil {
		return nil, err
	}
	d.starts = sums(v.Sizes)
	d.copy()
	return d.stores, nil
}

// delivery is one call of deliver.
type delivery struct {
	outcome
	inputs [][]byte
	starts []int // the sums of the sizes
}

// copy fills the results in.
func (d *delivery) copy() {
	q := &queue{units: d.World}
	copyUnit := d.toRank
	switch {
	case d.Collective.Gathers() && d.Collective.EndsAlike():
		copyUnit = func(r int) { d.intoWhole(0, r) }
	case d.Collective.Gathers():
		copyUnit = func(r int) { d.intoWhole(d.Root, r) }
	case d.Collective.EndsAlike():
		q.units, copyUnit = (d.elems*d.size+blockBytes-1)/blockBytes, d.piece
	}
	bytes := d.elems * d.size
	q.share(bytes, func() {
		for k := q.take(); k >= 0; k = q.take() {
			copyUnit(k)
		}
	})
}

// intoWhole copies the block of rank src into rank dst's result.
func (d *delivery) intoWhole(dst, src int) {
	copy(d.outputs[dst][d.first(src)*d.size:], d.inputs[src])
}

// piece copies the k-th blockBytes of the root's vector.
func (d *delivery) piece(k int) {
	from := d.inputs[d.Root][k*blockBytes:]
	copy(d.outputs[0][k*blockBytes:], from[:min(len(from), blockBytes)])
}

// toRank copies all that a rank ends with where everyone ends with something else.
func (d *delivery) toRank(dst int) {
	if d.Collective.Scatters() {
		copy(d.outputs[dst], d.inputs[d.Root][d.first(dst)*d.size:])
		return
	}
	to := d.outputs[dst]
	for src := range d.World {
		lo, n := d.exchanged(src, dst)
		copy(to[:n*d.size], d.inputs[src][lo*d.size:])
		to = to[n*d.size:]
	}
}

// first is the element of the whole vector that a rank's block starts with.
func (d *delivery) first(rank int) int {
	if d.sizes != nil {
		return d.starts[rank]
	}
	return rank * (d.elems / d.World)
}

// exchanged is the first element in src's input of what an AllToAll takes to dst, and the number of them.
func (d *delivery) exchanged(src, dst int) (lo, n int) {
	row := src * d.World
	if d.sizes != nil {
		return d.starts[row+dst] - d.starts[row], d.sizes[row+dst]
	}
	n = d.elems / (d.World * d.World)
	return dst * n, n
}

// delivers makes sure, once, that every rank ends with what it should.
func (s *Schedule) delivers() error {
	s.derived.deliversOnce.Do(func() {
		o := newOrigins(s)
		s.derived.deliversErr = o.play(nil)
		if s.derived.deliversErr == nil {
			s.derived.deliversErr = o.check()
		}
	})
	return s.derived.deliversErr
}

// origins follows chunks through a schedule that does not reduce.
type origins struct {
	*Schedule
	of   []int32 // [rank·chunks+chunk]: whose input is there, or absentRank
	sent []int32 // what the steps of the present round send
}

const absentRank = -1

func newOrigins(s *Schedule) *origins {
	o := &origins{Schedule: s, of: make([]int32, s.World*s.Chunks())}
	for r := range s.World {
		for c := range s.Chunks() {
			o.of[r*s.Chunks()+c] = o.atStart(r, c)
		}
	}
	return o
}

func (o *origins) atStart(rank, chunk int) int32 {
	if o.has(o.starts(rank), rank, chunk) {
		return int32(rank)
	}
	return absentRank
}

// play plays all rounds. It tells moved, if that is not nil, what each step moves.
func (o *origins) play(moved func(step *Step, of []int32)) error {
	for k := range o.Rounds {
		lo, hi := o.round(k)
		o.sent = o.sent[:0]
		for i := lo; i < hi; i++ {
			if k := o.Steps[i].Kind; k == Reduce || k == ReduceInSwitch {
				return fmt.Errorf("schedule %s reduces, which is no part of %s", o.Algorithm, o.Collective)
			}
			before := len(o.sent)
			o.look(&o.Steps[i])
			if moved != nil {
				moved(&o.Steps[i], o.sent[before:])
			}
		}
		sent := o.sent
		for i := lo; i < hi; i++ {
			sent = o.write(&o.Steps[i], sent)
		}
	}
	return nil
}

// at is what a rank has.
func (o *origins) at(rank int32) []int32 {
	n := o.Chunks()
	return o.of[int(rank)*n : (int(rank)+1)*n]
}

// look appends what a step sends.
func (o *origins) look(step *Step) {
	from := o.at(step.Src)
	switch {
	case step.FromInput:
		for place := step.Lo; place < step.Hi; place++ {
			o.sent = append(o.sent, o.atStart(int(step.Src), o.Chunk(place)))
		}
	case o.isListed(step):
		for _, c := range o.list(step) {
			o.sent = append(o.sent, from[c])
		}
	default:
		o.sent = append(o.sent, from[step.Lo:step.Hi]...)
	}
}

// write takes a step's part of what was sent and returns the rest.
func (o *origins) write(step *Step, sent []int32) []int32 {
	if step.Kind == Multicast {
		for _, member := range o.Groups[step.Group] {
			o.writeAt(member, step, sent)
		}
	} else {
		o.writeAt(step.Dst, step, sent)
	}
	return sent[step.Hi-step.Lo:]
}

// writeAt is write at one of the ranks that a step leaves its value with.
func (o *origins) writeAt(rank int32, step *Step, sent []int32) {
	to := o.at(rank)
	if !o.isListed(step) {
		copy(to[step.Lo:step.Hi], sent)
		return
	}
	for k, c := range o.list(step) {
		to[c] = sent[k]
	}
}

// check compares where chunks have come to with where they should be.
func (o *origins) check() error {
	for r := range o.World {
		for c := range o.Chunks() {
			switch got := o.of[r*o.Chunks()+c]; {
			case !o.has(o.ends(r), r, c) || got == o.wanted(r, c):
				continue
			case got == absentRank:
				return fmt.Errorf("schedule %s: rank %d ends without chunk %d", o.Algorithm, r, c)
			default:
				return fmt.Errorf("schedule %s: rank %d ends with rank %d's chunk %d", o.Algorithm, r, got, c)
			}
		}
	}
	return nil
}

// wanted is the rank whose chunk c rank r should end with.
func (o *origins) wanted(r, c int) int32 {
	switch {
	case o.Collective.Starts().Root:
		return int32(o.Root)
	case o.Collective.Exchanges():
		return int32((r - c/o.Sub + o.World) % o.World)
	}
	return int32(c / o.Sub)
}
