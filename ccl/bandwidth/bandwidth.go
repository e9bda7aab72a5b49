// Package bandwidth times collectives over a sweep of sizes, as nccl-tests do, without data and without programs: only
// the messages and reductions of their schedules are simulated, on a fabric that has nothing else to do.
package bandwidth

import (
	"fmt"
	"math"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Options are what is measured.
type Options struct {
	Collective collective.Kind
	Topology   *topology.Topology
	Ranks      int    // on the first so many SIPs; 0: on all
	Algorithm  string // an algorithm's name, or ccl.Auto
	DType      dtype.DType
	Root       int
	Calls      int // back to back, of which the time is the mean; 0: see [Calls]

	// Sizes go from Min to Max bytes, by Step bytes or, if that is 0, by the Factor.
	Min, Max, Step, Factor int64
}

// Row is the time of one size. Bandwidths are in GB/s (10^9), as nccl-tests define them.
type Row struct {
	Size      int64   `json:"size"`    // bytes, of the larger side; of all_to_all, of one rank's
	Count     int64   `json:"count"`   // elements: of a block, where there are blocks
	Time      float64 `json:"time_us"` // of a call, until the last rank is done with the last
	Calls     int     `json:"iters"`
	Algorithm string  `json:"algorithm"`
	AlgBW     float64 `json:"algbw"`
	BusBW     float64 `json:"busbw"`

	// Untried are the algorithms that might be faster and take too long to try: see [ccl.Choice].
	Untried []string `json:"untried,omitempty"`
}

// Sweep goes from size to size. It is for one goroutine.
type Sweep struct {
	Options
	layout  ccl.Layout
	devices []topology.DeviceID
	chooser ccl.Chooser
	built   map[int]*ccl.Schedule // the last algorithm's, by depth
	of      string                // that algorithm
	next    int64                 // size
}

// Calls is how many calls a time is the mean of on a topology, where nobody says. A transport's coefficients are fitted to
// measurements in which calls follow each other, so that the root of a broadcast is ahead of the others; on other
// topologies a time is that of a single call.
func Calls(t *topology.Topology) int {
	if t.Transport() == nil {
		return 1
	}
	return ccl.MeasuredCalls
}

// New checks the options. The error says what is wrong.
func New(o Options) (*Sweep, error) {
	sips := o.Topology.SIPs()
	if o.Ranks == 0 {
		o.Ranks = sips
	}
	if o.Calls == 0 {
		o.Calls = Calls(o.Topology)
	}
	switch {
	case o.Ranks < 1 || o.Ranks > sips:
		return nil, fmt.Errorf("%d ranks on topology %q, which has 1 to %d SIPs", o.Ranks, o.Topology.Name, sips)
	case o.Min < 1 || o.Max < o.Min:
		return nil, fmt.Errorf("sizes from %d to %d bytes: the first must be at least 1, and the last at least the first", o.Min, o.Max)
	case o.Step < 0 || o.Step == 0 && o.Factor < 2:
		return nil, fmt.Errorf("sizes by steps of %d bytes or a factor of %d: the factor must be at least 2", o.Step, o.Factor)
	case o.Calls < 1:
		return nil, fmt.Errorf("%d calls: there must be at least 1", o.Calls)
	case o.Collective.Rooted() && (o.Root < 0 || o.Root >= o.Ranks):
		return nil, fmt.Errorf("root %d is not one of the %d ranks", o.Root, o.Ranks)
	case o.Max > math.MaxInt64/int64(o.Ranks)/2:
		return nil, fmt.Errorf("%d bytes of each of %d ranks are more than can be counted", o.Max, o.Ranks)
	case !o.DType.Valid():
		return nil, fmt.Errorf("there is no dtype to measure with")
	}
	s := &Sweep{Options: o, next: o.Min, devices: o.Topology.FirstPEs(o.Ranks)}
	s.layout = ccl.LayoutOf(o.Topology, s.devices)
	s.layout.Root = o.Root
	s.chooser.Tuner = ccl.NewTuner(o.Topology)
	if o.Algorithm != ccl.Auto {
		a, err := ccl.Lookup(o.Collective, o.Algorithm)
		if err == nil {
			err = ccl.Offered(a, s.layout)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, s.findLibrary()
}

// findLibrary takes the library whose times the topology has, if it is of one.
func (s *Sweep) findLibrary() (err error) {
	if t := s.Topology.Transport(); t != nil && t.Library != "" {
		s.chooser.Library, err = ccl.LoadLibrary(t.Library)
	}
	return err
}

// Rows is how many sizes there are.
func (s *Sweep) Rows() int {
	n := 0
	for size := s.Min; size <= s.Max && size > 0; size = s.after(size) {
		n++
	}
	return n
}

// after is the size that follows one.
func (s *Sweep) after(size int64) int64 {
	switch {
	case s.Step > 0:
		return size + s.Step
	case size > s.Max/s.Factor:
		return s.Max + 1
	}
	return size * s.Factor
}

// Next measures the next size; false when there is none.
func (s *Sweep) Next() (row Row, ok bool, err error) {
	if s.next > s.Max {
		return row, false, nil
	}
	row, err = s.measure(s.next)
	s.next = s.after(s.next)
	return row, err == nil, err
}

// measure times one size, rounded down to equal blocks.
func (s *Sweep) measure(size int64) (Row, error) {
	width, blocks := int64(s.DType.Size()), int64(1)
	if s.Collective.Blocks(s.Ranks) > 0 {
		blocks = int64(s.Ranks)
	}
	row := Row{Count: size / width / blocks, Calls: s.Calls}
	row.Size = row.Count * blocks * width
	elems := row.Count * blocks
	if s.Collective.Exchanges() {
		elems *= blocks // of all ranks
	}
	choice, err := s.chooser.Choose(s.Collective, s.Algorithm, s.layout, s.devices, int(elems), int(width))
	if err != nil {
		return row, err
	}
	row.Algorithm, row.Untried = choice.Algorithm.Name(), choice.Untried
	took, err := s.time(choice.Algorithm, int(elems))
	if err != nil {
		return row, err
	}
	row.Time = float64(took) / float64(sim.Microsecond)
	if took > 0 {
		row.AlgBW = float64(row.Size) / 1e3 / row.Time
		row.BusBW = row.AlgBW * s.Collective.BusFactor(s.Ranks)
	}
	return row, nil
}

// maxSteps bounds a schedule: each step takes some 50 bytes while it is simulated.
const maxSteps = 1 << 27

// time is how long calls of an algorithm take, each.
func (s *Sweep) time(a ccl.Algorithm, elems int) (sim.Time, error) {
	width := s.DType.Size()
	bytes := ccl.ToCut(s.Topology, a, int64(elems)*int64(width))
	if steps := ccl.ExpectedSteps(a, s.layout, bytes); steps > maxSteps {
		return 0, fmt.Errorf("%s by %s among %d ranks has %d steps, more than the %d that can be simulated", s.Collective, a.Name(), s.Ranks, steps, maxSteps)
	}
	if s.of != a.Name() {
		s.of, s.built = a.Name(), map[int]*ccl.Schedule{}
	}
	depth := a.Depth(s.layout, bytes)
	if s.built[depth] == nil {
		clear(s.built)
		s.built[depth] = a.Build(s.layout, bytes)
	}
	l := ccl.Launch{Schedule: s.built[depth], Elems: elems, ElemSize: width, PartialSize: width, Devices: s.devices}
	l.Carriage = s.chooser.Carriage(l, s.layout)
	return ccl.Repeat(s.Topology, l, s.Calls), nil
}
