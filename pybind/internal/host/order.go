package host

import (
	"errors"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Touch notes a deed's uses of tensors, and of the symmetric memory that some of them are in.
func (w *World) Touch(u torchemu.Uses, d *tensor.Deed) error {
	for _, t := range u.Reads {
		if err := t.Touch(tensor.Read, d); err != nil {
			return err
		}
		w.look(t, tensor.Read, d)
	}
	for _, t := range u.Writes {
		if err := t.Touch(tensor.Write, d); err != nil {
			return err
		}
		w.look(t, tensor.Write, d)
	}
	return w.News()
}

// Told is an operation as Python tells of it: on a stream, or else (0) of the host itself, which may have waited for its end.
type Told struct {
	Stream     int64
	Name, Site string
	Waits      bool
}

// Told notes what an operation of a rank does with tensors; see Touch.
func (w *World) Told(r *torchemu.Rank, told Told, u torchemu.Uses) error {
	d := r.Deed(told.Name, told.Site)
	if told.Stream != 0 {
		s, err := StreamOf(told.Stream)
		if err != nil {
			return err
		}
		d = s.Object.Deed(told.Name, told.Site)
		r.Ended(d.End)
	}
	if err := w.Touch(u, d); err != nil || !told.Waits {
		return err
	}
	r.Line().Learn(d.End)
	return nil
}

// part is a rank's part of a window.
type part struct {
	window *prim.Window
	rank   int
}

// look lets the checker of device programs see a use of symmetric memory, once all is known that was before it: a read
// begins as soon as it can, and a write may have waited for what others bring.
func (w *World) look(t *tensor.Tensor, a tensor.Access, d *tensor.Deed) {
	t = t.Whole()
	p, symmetric := w.symmetric[t.Storage()]
	if !symmetric {
		return
	}
	known := d.Begin
	if a == tensor.Write {
		known = d.End
	}
	known.When(func() {
		deed := &prim.Deed{What: d.Name, Site: d.Place, Rank: d.Rank, At: d.At, Known: known.Clock()}
		for lo, hi := range t.Runs {
			p.window.Look(p.rank, lo, hi, bool(a), deed)
		}
		if m, ok := w.Programs.(*Machine); ok {
			w.late = errors.Join(w.late, m.News())
		}
	})
}

// News are races between hosts, or operations on their streams, and device programs that nobody has been told of; nil for
// none.
func (w *World) News() error {
	news := w.late
	w.late = nil
	return news
}

// Sees lets a rank's host know what is known once what is behind a handle has ended; of a tensor, what has written its
// elements.
func Sees(r *torchemu.Rank, waitable int64) {
	line := r.Line()
	if line == nil {
		return
	}
	if t, ok := Lookup(waitable).(Owned[*Placed]); ok {
		t.Object.Written(r.ID, line.Learn)
		return
	}
	if e, err := PendingOn(waitable); err == nil && e != nil {
		r.Learns(e)
	}
}

// mirror lets storages know what kernels do with the memory of the launch's arguments: this one, and all others that have the
// same windows and were given the same storages.
func (l *Launch) mirror(uses []*tensor.Tensor) {
	l.shown = map[*prim.Window]*tensor.Storage{}
	for _, w := range l.windows {
		s := storageOf(w, l.stream.Rank().ID, uses)
		if s == nil {
			continue
		}
		l.shown[w] = s
		l.event.WhenDone(s.Expect())
		w.Mirror(l.stream.Rank().ID, func(seen prim.Mirrored) {
			if o, ok := seen.By.(*Launch); ok && o.shown[w] != nil {
				o.touches(w, seen)
			}
		})
	}
}

// Show lets the checker of device programs see what a rank does with a tensor whose memory a window shows, for whoever
// reaches that from elsewhere.
func (m *Machine) Show(w *prim.Window, rank int, t *tensor.Tensor) {
	if m.home != nil && w.Has(rank) {
		m.home.symmetric[t.Whole().Storage()] = part{w, rank}
	}
}

// Hide undoes Show.
func (m *Machine) Hide(t *tensor.Tensor) {
	if m.home != nil {
		delete(m.home.symmetric, t.Whole().Storage())
	}
}

// doing is an operation of a launch's programs on a window: by its name and line.
type doing struct {
	window *prim.Window
	what   string
}

// touches notes what the launch's programs do with bytes of a window. How programs on one window are ordered, by signals
// too, the machine knows better.
func (l *Launch) touches(w *prim.Window, seen prim.Mirrored) {
	d := l.deedOf(doing{w, seen.What})
	d.Parts.Over.Set(seen.At)
	if err := l.shown[w].TouchPart(seen.Lo, seen.Hi, tensor.Access(seen.Writes), d, seen.Known); err != nil && l.race == nil {
		l.race = err
	}
}

func (l *Launch) deedOf(of doing) *tensor.Deed {
	if d := l.deeds[of]; d != nil {
		return d
	}
	d, home := l.stream.Deed(of.what, ""), l.machine.home
	d.At, d.Known, d.Begin, d.End = l.issued.At, l.issued.Begin.Clock(), l.issued.Begin, l.issued.End
	d.Parts = &tensor.Parts{Among: of.window, Report: func(err error) { home.late = errors.Join(home.late, err) }}
	if l.deeds == nil {
		l.deeds = map[doing]*tensor.Deed{}
	}
	l.deeds[of] = d
	return d
}

// storageOf finds the storage that a window shows in the memory of a rank.
func storageOf(w *prim.Window, rank int, uses []*tensor.Tensor) *tensor.Storage {
	for _, t := range uses {
		if s := t.Storage(); w.Shows(rank, s.Bytes()) {
			return s
		}
	}
	return nil
}
