package ccl

import "slices"

// volumes is how many elements each step of a launch moves.
type volumes struct {
	elems   int
	sizes   []int
	offsets []int64 // the step moves offsets[Hi]-offsets[Lo]
	exact   []int64 // by step; nil when offsets hold
}

// fit makes the volumes those of a launch, unless they are already.
func (v *volumes) fit(l *Launch) {
	if v.offsets != nil && v.elems == l.Elems && slices.Equal(v.sizes, l.Sizes) {
		return
	}
	s := l.Schedule
	v.elems, v.sizes = l.Elems, append(v.sizes[:0], l.Sizes...)
	v.exact = nil
	switch {
	case !s.Collective.Exchanges():
		v.offsets = s.offsets(v.offsets[:0], s.cut(l.Elems, l.Sizes))
	case l.Sizes == nil:
		v.offsets = s.offsets(v.offsets[:0], s.cut(l.Elems/s.World, nil))
	default:
		v.exact = s.exchange().elems(l.Sizes)
	}
}

// of is the elements that step i moves.
func (v *volumes) of(i uint32, step *Step) int64 {
	if v.exact != nil {
		return v.exact[i]
	}
	return v.offsets[step.Hi] - v.offsets[step.Lo]
}

// offsets appends the first element of every chunk, and the end of the last; beyond, as if the listed chunks followed.
func (s *Schedule) offsets(list []int64, c cut) []int64 {
	end := 0
	list = append(list, 0)
	for k := range s.Chunks() {
		_, end = c.chunk(k)
		list = append(list, int64(end))
	}
	for _, k := range s.Listed {
		lo, hi := c.chunk(int(k))
		end += hi - lo
		list = append(list, int64(end))
	}
	return list
}

// exchange is which blocks each step of an AllToAll moves: which of them are at one place of a rank at some time is not
// to be seen from the place. It only matters when their sizes differ.
type exchange struct {
	blocks []uint32 // from s to d: s·World+d, as in Launch.Sizes
	start  []uint32 // step i moves blocks[start[i]:start[i+1]]
}

// exchange returns the schedule's, made on first use.
func (s *Schedule) exchange() *exchange {
	s.derived.exchangeOnce.Do(func() { s.derived.exchange = newExchange(s) })
	return s.derived.exchange
}

func newExchange(s *Schedule) *exchange {
	e := &exchange{start: make([]uint32, 1, len(s.Steps)+1)}
	err := newOrigins(s).play(func(step *Step, of []int32) {
		for k, src := range of {
			far := s.Chunk(step.Lo+int32(k)) / s.Sub
			e.blocks = append(e.blocks, uint32(int(src)*s.World+(int(src)+far)%s.World))
		}
		e.start = append(e.start, uint32(len(e.blocks)))
	})
	if err != nil {
		panic("ccl: " + err.Error())
	}
	return e
}

// elems lists the elements that each step moves.
func (e *exchange) elems(sizes []int) []int64 {
	list := make([]int64, len(e.start)-1)
	for i := range list {
		for _, b := range e.blocks[e.start[i]:e.start[i+1]] {
			list[i] += int64(sizes[b])
		}
	}
	return list
}
