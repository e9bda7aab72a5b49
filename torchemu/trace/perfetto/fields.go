package perfetto

// The numbers of the fields that are used, as Perfetto's protos/perfetto/trace/ has them.
const (
	tracePacket = 1 // of Trace

	// TracePacket
	packetTimestamp    = 8
	packetSequence     = 10
	packetEvent        = 11
	packetInterned     = 12
	packetFlags        = 13
	packetTrack        = 60
	flagsCleared       = 1 // what was interned before does not count
	flagsNeedsInterned = 2

	// TrackEvent
	eventAnnotation  = 4
	eventCategoryIID = 3
	eventType        = 9
	eventNameIID     = 10
	eventTrack       = 11
	eventDouble      = 44
	eventFlow        = 47
	eventFlowEnd     = 48
	typeBegin        = 1
	typeEnd          = 2
	typeCounter      = 4

	// DebugAnnotation
	annotationNameIID = 1
	annotationInt     = 4
	annotationDouble  = 5
	annotationString  = 6

	// InternedData, and its entries
	internedCategories  = 1
	internedNames       = 2
	internedAnnotations = 3
	entryIID            = 1
	entryName           = 2

	// TrackDescriptor
	trackUUID     = 1
	trackName     = 2
	trackParent   = 5
	trackCounter  = 8
	trackOrdering = 11
	trackRank     = 12
	orderExplicit = 3

	// CounterDescriptor
	counterUnit = 6
	counterAxis = 7
)
