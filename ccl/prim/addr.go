package prim

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// Addr is a place in the memory of some rank: the rank, and an offset in bytes. The zero Addr is nobody's.
type Addr uint64

const (
	rankShift  = 44               // bits of an offset
	scratchBit = 1 << 43          // of an offset: in the scratch memory of a PE
	blockShift = 32               // in a scratch offset: where the slot's number is
	offsetMask = 1<<rankShift - 1 // all of an offset
)

// Granule is what the offset of a window is a multiple of, in bytes.
const Granule = 512

func address(rank int, offset uint64) Addr { return Addr(uint64(rank+1)<<rankShift | offset) }

// Rank is whose memory the address is in; -1 for the zero Addr.
func (a Addr) Rank() int { return int(a>>rankShift) - 1 }

// Offset is the place in the rank's memory, in bytes: the same for all ranks of a window.
func (a Addr) Offset() uint64 { return uint64(a) & offsetMask }

// On is the address of the same offset on another rank.
func (a Addr) On(rank int) Addr { return address(rank, a.Offset()) }

func (a Addr) isScratch() bool { return a&scratchBit != 0 }

// String is the address in words.
func (a Addr) String() string {
	if a.isScratch() {
		return fmt.Sprintf("rank %d's scratch memory +%d", a.Rank(), a.Offset()&(1<<blockShift-1))
	}
	return fmt.Sprintf("rank %d +%#x", a.Rank(), a.Offset())
}

// Tile is a run of bytes in a PE's scratch memory.
type Tile struct {
	Addr  Addr
	Bytes int
}

// Slice is the tile's bytes from lo up to hi.
func (t Tile) Slice(lo, hi int) Tile { return Tile{t.Addr + Addr(lo), hi - lo} }

// Word is an integer in memory that is signalled, waited for and changed atomically.
type Word struct {
	Addr Addr
	Type dtype.DType // I32 or I64
	Use  Use         // Acquires, Releases or Relaxed: what atomic operations on it order; otherwise both ways
}

// I32 is the 32-bit word at an address.
func I32(a Addr) Word { return Word{Addr: a, Type: dtype.I32} }

// I64 is the 64-bit word at an address.
func I64(a Addr) Word { return Word{Addr: a, Type: dtype.I64} }

// On is the same word on another rank.
func (w Word) On(rank int) Word { return Word{w.Addr.On(rank), w.Type, w.Use} }
