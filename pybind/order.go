package pybind

import (
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/tensor"
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
	return w.Told(r, host.Told{Stream: stream, Name: name, Site: site, Waits: waits}, u)
}

// TouchRegions is Touch for tensors in memory that Python owns, see host.ReadRegion: those that are written come before
// those that are read.
func TouchRegions(worldHandle int64, rank int, stream int64, name, site string, regionsAt int64, regions, writes, reads int, waits bool) (err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil || w.Lanes == nil {
		return err
	}
	var u torchemu.Uses
	if u.Writes, u.Reads, err = host.ReadOperands(regionsAt, regions, writes, max(reads, 0)); err != nil {
		return err
	}
	return w.Told(r, host.Told{Stream: stream, Name: name, Site: site, Waits: waits}, u)
}

// StreamTick begins an operation that a host puts on a stream, and returns its moment there; see TouchEarlier.
func StreamTick(stream int64) (tick int, err error) {
	defer host.Guard(&err)
	s, err := host.StreamOf(stream)
	if err != nil {
		return 0, err
	}
	return s.Object.Tick(), nil
}

// TouchEarlier is Touch for an operation of an earlier moment of the rank's first stream, see StreamTick, which used some
// bytes of a tensor. It reports nothing.
func TouchEarlier(worldHandle int64, rank int, tensorHandle int64, tick int, name string, site int, writes bool, from, to int) (err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return err
	}
	t, err := host.TensorOf(tensorHandle)
	if err != nil {
		return err
	}
	if from < 0 || from > to || to > t.Object.Storage().Len() {
		return host.Raise("ValueError", "bytes %d to %d of %d", from, to, t.Object.Storage().Len())
	}
	d := r.Stream().DeedAt(tick, name, w.Backend.Sites.Text(distributed.Site(site)))
	_ = t.Object.Storage().TouchBytes(from, to, tensor.Access(writes), d)
	return nil
}

// Block returns a handle of a tensor's memory, which stays when the tensor is gone; see Inherit.
func Block(tensorHandle int64) (block int64, err error) {
	defer host.Guard(&err)
	t, err := host.TensorOf(tensorHandle)
	if err != nil {
		return 0, err
	}
	return host.Own(t.World, t.Object.Storage()), nil
}

// Inherit says that a tensor has memory that has been given back, as a block, once all was over that some streams did.
func Inherit(tensorHandle, block int64, streamsAt int64, streams int) (err error) {
	defer host.Guard(&err)
	t, err := host.TensorOf(tensorHandle)
	if err != nil {
		return err
	}
	from, err := host.OwnedBy[*tensor.Storage](block, "block of memory")
	if err != nil {
		return err
	}
	waited, err := host.Ints(streamsAt, streams)
	if err != nil {
		return err
	}
	t.Object.Storage().Inherit(from.Object, waited)
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

// HostMoment begins a moment of a rank's host and returns it, for [HostKnows]; 0 when no order is kept.
func HostMoment(worldHandle int64, rank int) (moment int64, err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil || w.Lanes == nil {
		return 0, err
	}
	m := r.Line().Advance()
	return int64(m.Lane)<<32 | int64(m.Tick), nil
}

// HostKnows says whether what came before a moment of some rank's host is over for a rank's host.
func HostKnows(worldHandle int64, rank int, moment int64) (knows bool, err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil || w.Lanes == nil || moment == 0 {
		return true, err
	}
	m := order.Moment{Lane: int32(moment >> 32), Tick: uint32(moment & (1<<32 - 1))}
	return r.Line().Here().Clock().Knows(m), nil
}
