package perfetto

import (
	"bufio"
	"io"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace/protobuf"
)

// writer writes packets until the first error, which it remembers. Names are written once and numbered: interned.
type writer struct {
	w   *bufio.Writer
	err error

	names, categories, keys interner
	started                 bool // a packet has been written
	tracks                  uint64
	segments                []string // names; "" where none was asked for yet

	head, packet, event, interned, annotation, entry protobuf.Message // in the making
}

func newWriter(w io.Writer) *writer {
	return &writer{
		w:          bufio.NewWriterSize(w, 1<<16),
		names:      interner{internedNames, map[string]uint64{}},
		categories: interner{internedCategories, map[string]uint64{}},
		keys:       interner{internedAnnotations, map[string]uint64{}},
	}
}

// interner numbers the texts of one field of InternedData.
type interner struct {
	field int
	ids   map[string]uint64
}

// intern is the number of a text. A new one goes into the packet that is in the making.
func (o *writer) intern(in interner, text string) uint64 {
	id, known := in.ids[text]
	if !known {
		id = uint64(len(in.ids) + 1)
		in.ids[text] = id
		o.entry = o.entry[:0]
		o.entry.Uint(entryIID, id)
		o.entry.Str(entryName, text)
		o.interned.Sub(in.field, o.entry)
	}
	return id
}

// begin begins an event of a track; send sends it.
func (o *writer) begin(kind uint64, track uint64) {
	o.event = o.event[:0]
	o.event.Uint(eventType, kind)
	o.event.Uint(eventTrack, track)
}

func (o *writer) send(at sim.Time) {
	o.packet = o.packet[:0]
	o.packet.Uint(packetTimestamp, uint64(at/sim.Nanosecond))
	o.packet.Uint(packetSequence, 1)
	flags := uint64(flagsNeedsInterned)
	if !o.started {
		flags |= flagsCleared
	}
	o.started = true
	o.packet.Uint(packetFlags, flags)
	if len(o.interned) > 0 {
		o.packet.Sub(packetInterned, o.interned)
		o.interned = o.interned[:0]
	}
	o.packet.Sub(packetEvent, o.event)
	o.write()
}

func (o *writer) write() {
	if o.err == nil {
		o.head = o.head[:0]
		o.head.Head(tracePacket, len(o.packet))
		_, o.err = o.w.Write(o.head)
	}
	if o.err == nil {
		_, o.err = o.w.Write(o.packet)
	}
}

// start begins a slice; args may follow, then send.
func (o *writer) start(track uint64, category, name string) {
	o.begin(typeBegin, track)
	o.event.Uint(eventCategoryIID, o.intern(o.categories, category))
	o.event.Uint(eventNameIID, o.intern(o.names, name))
}

// end ends the innermost slice of a track.
func (o *writer) end(track uint64, at sim.Time) {
	o.begin(typeEnd, track)
	o.send(at)
}

func (o *writer) count(track uint64, at sim.Time, value float64) {
	o.begin(typeCounter, track)
	o.event.Double(eventDouble, value)
	o.send(at)
}

// leads says that an arrow leads from the slice to all others that say so, or that it ends with.
func (o *writer) leads(arrow uint64) { o.event.Fixed64(eventFlow, arrow) }

// ends says that the arrow ends with this slice.
func (o *writer) ends(arrow uint64) { o.event.Fixed64(eventFlowEnd, arrow) }

func (o *writer) argument(key string) {
	o.annotation = o.annotation[:0]
	o.annotation.Uint(annotationNameIID, o.intern(o.keys, key))
}

func (o *writer) num(key string, v int64) {
	o.argument(key)
	o.annotation.Int(annotationInt, v)
	o.event.Sub(eventAnnotation, o.annotation)
}

func (o *writer) float(key string, v float64) {
	o.argument(key)
	o.annotation.Double(annotationDouble, v)
	o.event.Sub(eventAnnotation, o.annotation)
}

func (o *writer) str(key, v string) {
	o.argument(key)
	o.annotation.Str(annotationString, v)
	o.event.Sub(eventAnnotation, o.annotation)
}

// describe writes a TrackDescriptor; rest adds to it. It returns the track's number.
func (o *writer) describe(parent uint64, name string, rest func(*protobuf.Message)) uint64 {
	o.tracks++
	var d protobuf.Message
	d.Uint(trackUUID, o.tracks)
	if parent != 0 {
		d.Uint(trackParent, parent)
		d.Int(trackRank, int64(o.tracks)) // in the order in which they are described
	}
	if name != "" {
		d.Str(trackName, name)
	}
	if rest != nil {
		rest(&d)
	}
	o.packet = o.packet[:0]
	o.packet.Uint(packetSequence, 1)
	o.packet.Sub(packetTrack, d)
	o.write()
	return o.tracks
}

// group describes a track for others, which a viewer can fold. They are shown in the order in which they are described.
func (o *writer) group(parent uint64, name string) uint64 {
	return o.describe(parent, name, func(d *protobuf.Message) { d.Uint(trackOrdering, orderExplicit) })
}

// counter describes a track of numbers of a unit; those of one unit have one scale.
func (o *writer) counter(parent uint64, name, unit string) uint64 {
	return o.describe(parent, name, func(d *protobuf.Message) {
		var c protobuf.Message
		c.Str(counterUnit, unit)
		c.Str(counterAxis, unit)
		d.Sub(trackCounter, c)
	})
}
