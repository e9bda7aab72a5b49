package trace

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Nanoseconds is the whole nanosecond that t is in or begins. Viewers have no finer times: what is drawn begins and ends
// at these, so that what follows one another, or is nested, still is.
func Nanoseconds(t sim.Time) sim.Time { return t - t%sim.Nanosecond }

// Span is a time that a rank's host spent in something that the program, or a wait, gives a name to. Spans of one rank
// are nested.
type Span struct {
	Rank       int
	Wait       bool   // the host waited; or else the program named what it did
	Name       string // of a wait: what for
	Start, End sim.Time
}

// MemoryUse is how much of its device's memory a rank's program has in use from a time on.
type MemoryUse struct {
	Rank  int
	From  sim.Time // of the host
	Bytes int64
}

// Kind says what an Activity is.
type Kind uint8

// The kinds of activities.
const (
	Kernel     Kind = iota // a program of the device
	CopyIn                 // from the host to the device
	CopyOut                // from the device to the host
	Collective             // a rank's part in a collective
	Send                   // a rank's side of a message
	Receive
)

// Activity is something that a device did because its host had called for it.
type Activity struct {
	Rank       int
	Kind       Kind
	Name       string // as the program called it: "all_reduce"
	Track      Track
	Number     uint64   // of the call, which no other activity of the World has
	Called     sim.Time // when the host began to call
	Issued     sim.Time // when the host was through with that
	Start, End sim.Time // of the device
	Bytes      int64    // of memory traffic, of a copy or of a message
	Ops        int64    // of a kernel
	Unit       string   // that a kernel computes on
	DType      string   // of a collective or message, as topology files write it: "f16"
	Site       string   // in the program; "" when not known

	Call    *Call  // of a collective
	In, Out []int  // of a collective: elements of each of the rank's tensors
	Group   *Group // of a collective or message
	Member  int    // the rank's number in the group
	Peer    int    // of a message: the World rank of the other side
	Tag     int    // of a message
}

// Track is where activities of a rank follow one another.
type Track struct {
	Kind TrackKind
	ID   int    // the number of the stream, group or shard
	Name string // for people
}

// TrackKind says what a Track is of.
type TrackKind uint8

// The kinds of tracks. Those of messages hold what overlaps.
const (
	StreamTrack TrackKind = iota
	GroupTrack
	MessageTrack
	ShardTrack  // a PE of a single worker
	EngineTrack // an engine that copies, to one peer; its queues overlap
)

// Group is a process group.
type Group struct {
	ID    int
	Name  string // or what the program says it is for
	Ranks []int  // of the World
}

// Call is one collective of a group: what all its members have in common.
type Call struct {
	Name       string // as the program called it
	Collective collective.Kind
	Algorithm  string
	Op         string // how elements are combined; "" where they are not
	Group      *Group
	Seq        uint64
	Root       int // group rank, of the collectives that have one; else -1
	Elems      int // of the whole vector
	Bytes      int64
	Steps      int // of the schedule
}

// Step is one step of a collective's schedule.
type Step struct {
	Call                         *Call
	Rank                         int // whose host called for what Src does
	Index                        int // in the schedule
	Src, Dst                     int // World ranks; of a single worker, shards
	From, To                     topology.DeviceID
	Lo, Hi                       int  // chunks
	Reduce                       bool // what arrives is combined with what is there
	Bytes                        int64
	Start, Arrived, Combine, End sim.Time // see ccl.StepTimes

	// AtSwitch are the ranks to which a switch multicasts, or whose values it reduces; Src and Dst are the one that issues
	// it. nil: it is a message from Src to Dst.
	AtSwitch []int
}

// Does says what the step does.
func (s *Step) Does() string {
	switch {
	case s.AtSwitch != nil && s.Reduce:
		return fmt.Sprintf("reduce of %d in the switch", len(s.AtSwitch))
	case s.AtSwitch != nil:
		return fmt.Sprintf("multicast to %d", len(s.AtSwitch))
	case s.Reduce:
		return fmt.Sprintf("reduce into %d", s.Dst)
	}
	return fmt.Sprintf("copy to %d", s.Dst)
}

// Flow is a message on one segment of its path: from its first byte on the links to its last.
type Flow struct {
	Segment    int // of Recording.Segments
	Engine     int // of the segment's first device, or -1
	Bytes      int64
	Start, End sim.Time
	Rates      []Rate // in the order of time; the first from Start on
}

// Rate is how fast a flow is from a time on, in bytes per second.
type Rate struct {
	From           sim.Time
	BytesPerSecond float64
}

// Segment is a path, or a part of one up to a device that stores and forwards.
type Segment struct {
	From, To topology.DeviceID // the ends of the whole path
	Host     bool              // one of the ends is not To or From but the host of that SIP
	Links    []topology.LinkID // in no order
}

// Reduction is a time that a vector unit was busy for a collective.
type Reduction struct {
	PE         topology.DeviceID
	Bytes      int64
	Start, End sim.Time
}
