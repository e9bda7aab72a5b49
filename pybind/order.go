package pybind

import (
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/order"
)

// KeepOrder lets a World look, from now on, for uses of tensors that nothing orders; see Touch.
func KeepOrder(worldHandle int64) (err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return err
	}
	w.KeepOrder()
	return nil
}

// Touch says that an operation of a rank, on one of its streams or else (0) of its host itself, reads some tensors and
// writes others. name is the operation, and site its place in the program. With waits the host waits for
// it. It is a RaceError that nothing orders it and another use of these tensors.
func Touch(worldHandle int64, rank int, stream int64, name, site string, readsAt int64, reads int, writesAt int64, writes int, waits bool) (err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil || w.Lanes == nil {
		return err
	}
	var u torchemu.Uses
	if u.Reads, err = w.Tensors(readsAt, reads); err != nil {
		return err
	}
	if u.Writes, err = w.Tensors(writesAt, writes); err != nil {
		return err
	}
	d := r.Deed(name, site)
	if stream != 0 {
		s, err := host.StreamOf(stream)
		if err != nil {
			return err
		}
		d = s.Object.Deed(name, site)
	}
	if err := w.Touch(u, d); err != nil || !waits {
		return err
	}
	r.Line().Learn(d.End)
	return nil
}

// Saw says that a rank's host has seen that what is behind the handle has ended.
func Saw(worldHandle int64, rank int, waitable int64) (err error) {
	defer host.Guard(&err)
	_, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return err
	}
	host.Sees(r, waitable)
	return nil
}

// Tell returns what a rank's host knows now, for others who find what it has left; 0 when no order is kept.
func Tell(worldHandle int64, rank int) (point int64, err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil || w.Lanes == nil {
		return 0, err
	}
	return host.Own(w, r.Line().Here()), nil
}

// Learn lets a rank's host know what another one did: a point of Tell, or 0.
func Learn(worldHandle int64, rank int, point int64) (err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil || w.Lanes == nil || point == 0 {
		return err
	}
	p, err := host.OwnedBy[*order.Point](point, "point")
	if err == nil {
		r.Line().Learn(p.Object)
	}
	return err
}
