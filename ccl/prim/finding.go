package prim

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what is wrong.
type Kind uint8

// The kinds of findings.
const (
	UnorderedRead   Kind = iota // a read of bytes that a write changes that is in no order with it
	UnorderedWrites             // two writes in no order
	UnwrittenRead               // a read of memory that nobody wrote
	SignalOvertakes             // the reader was told of a write that may not have landed
	WindowReused                // memory is written again while a peer may still read it
	RowReused                   // a signal word is used again while its last use may not be over
	Overshoot                   // a wait for equality that a counter can jump over
	FreedWindow                 // an operation on memory that was freed
	Miscounted                  // a wait for a count that other signals than those that are meant can satisfy
	NarrowScope                 // a use of a word that is for fewer programs than use it
)

var kindNames = [...]string{
	"unordered read", "unordered writes", "read of unwritten memory", "signal overtakes its data",
	"window reused without a phase", "signal row reused without a phase", "EQ wait overshot", "traffic after free",
	"wait that other signals can satisfy", "scope too narrow",
}

// String is the kind in words.
func (k Kind) String() string { return kindNames[k] }

// end is one of the two accesses of a finding.
type end struct {
	*origin
	lo, hi int
}

func (a *access) end() end { return end{a.origin, a.lo, a.hi} }

// Finding is something that the order of the program's operations does not rule out, though it should.
type Finding struct {
	Kind    Kind
	Where   string  // the memory
	First   end     // in this run
	Second  end     // its origin is nil when there is only one
	Missing string  // what would order them, in words
	read    *access // of a wait that other signals can satisfy: the read that may not be over then; nil for none
}

// String is the whole report, in lines.
func (f *Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s\n  %v", f.Kind, f.Where, f.First)
	if f.HasSecond() {
		fmt.Fprintf(&b, "\n  %v", f.Second)
	}
	fmt.Fprintf(&b, "\n  missing: %s", f.Missing)
	return b.String()
}

// HasSecond says whether there are two accesses.
func (f *Finding) HasSecond() bool { return f.Second.origin != nil }

// String is the access, with its bytes.
func (e end) String() string { return fmt.Sprintf("%v, bytes %d to %d", e.origin, e.lo, e.hi) }

// Ranks are the ranks of the two accesses; -1 for the host, and for none.
func (f *Finding) Ranks() (first, second int) {
	second = -1
	if f.Second.origin != nil {
		second = f.Second.rank()
	}
	return f.First.rank(), second
}

// FindingsError is what the checker found in a run.
type FindingsError struct{ Findings []Finding }

func (e *FindingsError) Error() string {
	parts := make([]string, len(e.Findings))
	for i := range e.Findings {
		parts[i] = e.Findings[i].String()
	}
	return strings.Join(parts, "\n")
}

// maxFindings bounds how many are kept: one missing barrier can make thousands.
const maxFindings = 100

// Findings are what the checker has found so far, each pair of lines once.
func (m *Machine) Findings() []Finding { return m.found }

// find keeps a finding that is new.
func (m *Machine) report(f Finding) {
	m.explain(f)
	key := f.pair()
	if m.seen[key] || m.seen[key.turned()] || len(m.found) == maxFindings {
		return
	}
	if m.seen == nil {
		m.seen = map[pair]bool{}
	}
	m.seen[key] = true
	m.found = append(m.found, f)
}

// pair is which two lines of which kernels a finding is about.
func (f *Finding) pair() pair {
	key := pair{kind: f.Kind, first: f.First.site}
	key.kernels[0] = f.First.name
	if f.HasSecond() {
		key.second, key.kernels[1] = f.Second.site, f.Second.name
	}
	return key
}

// turned is the pair in the other order: it depends on the run which of the two came first.
func (p pair) turned() pair {
	p.first, p.second = p.second, p.first
	p.kernels[0], p.kernels[1] = p.kernels[1], p.kernels[0]
	return p
}

// explain drops what nobody has been told of yet: that a read found unwritten memory, when the finding is that the read
// came too early; and that a wait does not tell that a read is over, when the reader waits for nothing.
func (m *Machine) explain(f Finding) {
	if !f.HasSecond() {
		return
	}
	news := slices.DeleteFunc(m.found[m.told:], func(x Finding) bool {
		early := f.Kind == UnorderedRead && x.read != nil && x.read.site == f.Second.site && x.Second.site == f.First.site
		return early || x.Kind == UnwrittenRead && x.First.origin == f.First.origin
	})
	m.found = m.found[:m.told+len(news)]
}

func (k *checker) report(f Finding) { k.machine.report(f) }

// late reports an operation on memory that was freed.
func (m *Machine) late(p place, o *origin) {
	if o.pe != nil && o.pe.gone {
		return
	}
	m.report(Finding{Kind: FreedWindow, Where: p.at(p.lo), First: end{o, p.lo, p.hi},
		Missing: "the window is freed before this is over: a quiet at the sender, or a barrier of all its users, is missing before the free"})
}

// at names a byte of a region.
func (r *region) at(offset int) string {
	return fmt.Sprintf("%s of rank %d, byte %d", r.name, r.rank, offset)
}

// clash is two accesses in no order.
type clash struct {
	a, b    *access // as they came in this run
	before  *access // the write before a, if a is a read
	awaited bool    // some program waits for a word there, or looks at it: else it is data
}

// race reports two accesses in no order, under the name of the mistake that makes them so.
func (k *checker) race(p place, x clash, knows clock) {
	lo, hi := max(x.a.lo, x.b.lo), min(x.a.hi, x.b.hi)
	x.awaited = p.isAwaited(lo, hi)
	f := Finding{Where: p.at(lo), First: x.a.end(), Second: x.b.end()}
	f.Kind, f.Missing = x.diagnose(p.rank, knows)
	if p.shared && x.a.job != x.b.job {
		f.Missing = fmt.Sprintf("nothing orders the two tasks, %q and %q: one has to follow the other one, by the tags with which they are given these bytes", x.a.name, x.b.name)
	}
	k.report(f)
}

func (x clash) diagnose(owner int, knows clock) (Kind, string) {
	a, b := x.a, x.b
	stale := staleBetween(a, b)
	switch {
	case x.isRound(owner):
		return WindowReused, fmt.Sprintf("rank %d may not have read what the %s brought when the line runs again: a signal back, or a "+
			"barrier, is missing before the bytes are written again; or a quiet, if only the last of them counts", owner, a.what)
	case stale != nil && x.isOwnPut():
		return RowReused, stale.String()
	case a.pe == b.pe && a.pe != nil && a.job == b.job:
		return plainKind(a, b), samePE(a, b)
	case b.isAhead(a, knows):
		return plainKind(a, b), fmt.Sprintf("some threads have heard of the %s, and the others may come to the %s before that: a __syncthreads() is missing between the two", a.what, b.what)
	case looseBetween(a, b) != nil:
		return plainKind(a, b), looseBetween(a, b).String()
	case x.awaited && (a.kind.isAtomic() || b.kind.isAtomic()):
		return wordRace(a, b)
	case a.kind.changes() && knows.Knows(a.issue):
		return SignalOvertakes, overtaken(a, b)
	case b.kind.changes() && a.known.Knows(b.issue):
		return SignalOvertakes, overtaken(b, a)
	case a.isMessage() && knows.Knows(a.issue):
		return plainKind(a, b), stillReading(a)
	case b.isMessage() && a.known.Knows(b.issue):
		return plainKind(a, b), stillReading(b)
	case areOfTwoStreams(a, b):
		return plainKind(a, b), unled(a, b)
	}
	if stale != nil {
		return RowReused, stale.String()
	}
	if text := early(a, b, knows); text != "" {
		return x.readKind(), text
	}
	if x.isReuse() {
		return WindowReused, fmt.Sprintf("nothing tells %s that %s has finished reading: a barrier, or a signal back, is missing before the bytes are written again", b.among(a), a.among(b))
	}
	if a.pe != nil {
		if l := a.untold(nil); l != nil {
			return plainKind(a, b), l.String()
		}
	}
	return plainKind(a, b), unled(a, b) + halfAtomic(a, b)
}

// among names who does it: the rank, or of two programs of one grid of a rank the program.
func (a *access) among(other *access) string {
	if a.job != nil && a.job == other.job && a.rank() == other.rank() && a.block != other.block {
		return fmt.Sprintf("program %d of rank %d", a.block, a.rank())
	}
	return fmt.Sprintf("rank %d", a.rank())
}

// isAhead says whether it is of all threads of a program, of which some know that the other access is over.
func (a *access) isAhead(other *access, knows clock) bool {
	return a.job != nil && a.job.Threads > 0 && a.pipe == Store && a.known.Knows(other.moment) && !knows.Knows(other.moment)
}

// halfAtomic says what comes of it that one of two changes is atomic and the other is not; "" where that is not so.
func halfAtomic(a, b *access) string {
	if !a.kind.changes() || !b.kind.changes() || a.kind.isAtomic() == b.kind.isAtomic() {
		return ""
	}
	plain := a
	if a.kind.isAtomic() {
		plain = b
	}
	return fmt.Sprintf(", so that one of them may be lost: the %s is not atomic", plain.what)
}

// unled says that nothing leads from one to the other, and what would.
func unled(a, b *access) string {
	switch {
	case areOfTwoStreams(a, b):
		return fmt.Sprintf("nothing orders the two kernels, for they are on different streams of rank %d: the stream of the %s has to wait for that of "+
			"the %s, by wait_stream() or an event; or, where they are to run at once, the kernel for a signal of the other one", b.rank(), b.what, a.what)
	case a.job != nil && a.job == b.job && a.rank() == b.rank() && a.block != b.block:
		return fmt.Sprintf("no signal or barrier leads from the %s of program %d to the %s of program %d, two programs of one grid", a.what, a.block, b.what, b.block)
	}
	return fmt.Sprintf("no signal, barrier or event leads from rank %d's %s to rank %d's %s", a.rank(), a.what, b.rank(), b.what) + orBack(a, b)
}

// orBack says of a read that came first in this run what is missing if it was too early; "" where it is none.
func orBack(a, b *access) string {
	if a.kind != reads || !b.kind.changes() || a.rank() == b.rank() {
		return ""
	}
	return fmt.Sprintf(", or back: a wait is missing before the %s if it is to find what the %s brings, and else a signal to rank %d after it", a.what, b.what, b.rank())
}

// isMessage says whether the access is of bytes that a program sends, which are read some time later.
func (a *access) isMessage() bool {
	return a.pe != nil && a.pipe == Scalar && a.moves && a.kind == reads
}

func stillReading(a *access) string {
	return fmt.Sprintf("the %s of rank %d may still read the bytes: a quiet is missing after it, or a wait for its event", a.what, a.rank())
}

// isRound says whether a program writes another rank's memory by one line again and again.
func (x clash) isRound(owner int) bool {
	a, b := x.a, x.b
	return a.pe == b.pe && a.pe != nil && a.pipe == Scalar && a.site == b.site && a.rank() != owner && a.kind == writes && b.kind == writes
}

// isOwnPut says whether a program reads what it puts into memory of its own rank.
func (x clash) isOwnPut() bool {
	put, read := x.a, x.b
	if put.kind == reads {
		put, read = read, put
	}
	return put.pe == read.pe && put.pe != nil && put.pipe == Scalar && put.kind == writes && read.kind == reads && read.pipe != Scalar
}

// areOfTwoStreams says whether two kernels of one rank are not in order: that is a matter of their streams.
func areOfTwoStreams(a, b *access) bool {
	return a.job != nil && b.job != nil && a.job != b.job && a.job.Known != nil && a.rank() == b.rank()
}

// readKind is the kind of a read and a write that is told of it too early.
func (x clash) readKind() Kind {
	if x.isReuse() {
		return WindowReused
	}
	return plainKind(x.a, x.b)
}

// early says that whoever writes has been told of a read when that was issued, and not when it was over; "" where that is not so.
func early(a, b *access, knows clock) string {
	read, write := a, b
	if read.kind != reads {
		read, write, knows = b, a, a.known
	}
	if read.kind != reads || read.pe == nil || read.pe == write.pe || read.pipe == Scalar || !knows.Knows(read.issue) {
		return ""
	}
	signal, how := "what it was told", "a drain, or pipe barrier, is missing before the signal"
	if o := write.pe.heardOf(read); o != nil {
		signal = fmt.Sprintf("the %s of rank %d at %v", o.what, o.rank(), o.site)
	}
	if read.job.Threads > 0 {
		how = "before the signal there must be a __syncthreads(), so that it comes after what all threads have read"
	}
	return fmt.Sprintf("rank %d knows by %s that the %s was issued, but not that it is over: %s", write.rank(), signal, read.what, how)
}

// isReuse says whether the reader has what the writer wrote there the last time.
func (x clash) isReuse() bool {
	return x.a.kind == reads && x.before != nil && x.before.pe != nil && x.before.pe == x.b.pe
}

func plainKind(a, b *access) Kind {
	if a.kind.changes() && b.kind.changes() {
		return UnorderedWrites
	}
	return UnorderedRead
}

// samePE says what would order two operations of one PE, as the program has them.
func samePE(a, b *access) string {
	if a.number > b.number {
		a, b = b, a
	}
	if a.pipe != b.pipe && a.pipe != Scalar && b.pipe != Scalar {
		return fmt.Sprintf("the %v pipe does not wait for the %v pipe: a flag from one to the other is missing, or a pipe barrier", b.pipe, a.pipe)
	}
	if a.pipe != Scalar && a.job.Threads > 0 {
		return fmt.Sprintf("one thread may come there before the others have done their %s: a __syncthreads() is missing between the two", a.what)
	}
	if a.pipe != Scalar {
		return fmt.Sprintf("the program does not wait for its %v pipe: a drain, or pipe barrier, is missing between the two", a.pipe)
	}
	switch {
	case a.kind.changes() && b.kind.changes():
		return fmt.Sprintf("the %s at %v may land after the %s at %v: a fence between the two is missing, or a quiet", a.what, a.site, b.what, b.site)
	case a.kind.changes():
		return fmt.Sprintf("the %s may not have landed: a quiet is missing, or a wait for its event or for a signal after it", a.what)
	}
	return fmt.Sprintf("the %s may not be over: a quiet is missing, or a wait for its event", a.what)
}

// overtaken says how a signal overtakes a write.
func overtaken(write, other *access) string {
	how := "a fence or a quiet is missing between the two, or one put with signal instead of them"
	signal, afar := "what it was told", "; where the signal goes to another rank than the data, a quiet, for a fence orders what goes to one"
	switch o := other.pe.heardOf(write); {
	case o == nil:
		how += afar
	case o.rank() == write.rank():
		signal = fmt.Sprintf("the %s at %v", o.what, o.site)
	default:
		signal = fmt.Sprintf("the %s of rank %d at %v", o.what, o.rank(), o.site)
		how = fmt.Sprintf("rank %d has told others than rank %d, so that a quiet is missing before that, for a fence orders what goes to one rank", write.rank(), other.rank())
	}
	switch {
	case write.apart:
		how = "a quiet is missing before the signal, or a wait for its event; a fence does not order it"
	case write.pipe == Store && write.job.Threads > 0:
		how = "before the signal there must be a __syncthreads(), so that it comes after what all threads have stored, and where it is no dl.notify() within a node also a fence() or quiet()"
	case write.pipe == Store:
		how = "a pipe barrier to drain the store pipe is missing before the signal, and a fence too where deliveries may be reordered"
	}
	return fmt.Sprintf("rank %d knows by %s that the %s was issued, but not that it has landed: %s", other.rank(), signal, write.what, how)
}

// wordRace is about a word that is signalled and also accessed in other ways.
func wordRace(a, b *access) (Kind, string) {
	if a.kind == reads || b.kind == reads {
		return UnorderedRead, "a word that is signalled is read like data: a wait, a test or a fetch is missing"
	}
	if a.loaded && b.put || b.loaded && a.put {
		return UnorderedRead, unled(a, b)
	}
	return RowReused, fmt.Sprintf("rank %d's %s and rank %d's %s are in no order, so that one of them may be lost: "+
		"clear a word only when no signal to it can be under way", a.rank(), a.what, b.rank(), b.what)
}

// staleBetween finds a wait of one of the two for the other that no new signal satisfied.
func staleBetween(a, b *access) *staleWait {
	if s := b.pe.staleFor(a); s != nil || a.pe == b.pe {
		return s
	}
	return a.pe.staleFor(b)
}

// staleFor is a wait for the rank of an access, unless the signals that satisfied it came after the access was issued: they tell of that.
func (p *pe) staleFor(a *access) *staleWait {
	if p == nil {
		return nil
	}
	for _, s := range p.stale {
		if slices.Contains(s.cell.ranks, a.rank()) && (s.by == nil || !s.by.known.Knows(a.issue)) {
			return s
		}
	}
	return nil
}

// heardOf is a signal that the PE has heard and whose sender knew that a write was issued, if there is one from the writer's own
// rank; nil for none.
func (p *pe) heardOf(write *access) *origin {
	if p == nil {
		return nil
	}
	tells := func(rank int) bool { o := p.heard[rank]; return o != nil && o.known.Knows(write.issue) }
	if tells(write.rank()) {
		return p.heard[write.rank()]
	}
	for rank := range p.machine.ranks {
		if tells(rank) {
			return p.heard[rank]
		}
	}
	return nil
}
