package tensor

import (
	"fmt"
	"strings"
)

// Mode says how a level of a device's hierarchy divides a tensor.
type Mode uint8

// A level holds the whole tensor in every place, or divides its last dimension (columns) or its first (rows).
const (
	Replicate Mode = iota
	ColumnWise
	RowWise
)

var modeNames = [...]string{Replicate: "replicate", ColumnWise: "column_wise", RowWise: "row_wise"}

// ParseMode finds a mode by its name: replicate, column_wise, row_wise. The error of an unknown name lists them.
func ParseMode(name string) (Mode, error) {
	for m, known := range modeNames {
		if name == known {
			return Mode(m), nil
		}
	}
	return Replicate, fmt.Errorf("unknown placement %q: want one of %s", name, strings.Join(modeNames[:], ", "))
}

// String is the name that [ParseMode] takes.
func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return fmt.Sprintf("invalid placement %d", uint8(m))
	}
	return modeNames[m]
}

// Placement says how a tensor is laid out over the PEs of one SIP: first over cubes, then each cube's part over its
// PEs.
type Placement struct {
	Cube, PE Mode
	NumCubes int // use the first so many cubes; 0: all
	NumPEs   int // use the first so many PEs of a cube; 0: all
}

// Shard is the part of a tensor that one PE holds.
type Shard struct {
	Cube, PE int // the cube in the SIP, the PE in the cube
	View     *Tensor
}

// Shards returns the parts of t, one a PE, cube by cube, on a SIP of so many cubes with so many PEs each. They are
// views of t. Sizes along a divided dimension differ by at most one, the longer ones first, and may be 0. It fails
// when the device has not the cubes or PEs asked for, or t has no dimension to divide.
func (p Placement) Shards(t *Tensor, cubes, pesPerCube int) ([]Shard, error) {
	numCubes, err := limit("num_cubes", p.NumCubes, cubes, "the SIP has", "cubes")
	if err != nil {
		return nil, err
	}
	numPEs, err := limit("num_pes", p.NumPEs, pesPerCube, "a cube has", "PEs")
	if err != nil {
		return nil, err
	}
	if err := p.check(t); err != nil {
		return nil, err
	}
	shards := make([]Shard, 0, numCubes*numPEs)
	for c := range numCubes {
		part := p.Cube.part(t, numCubes, c)
		for pe := range numPEs {
			shards = append(shards, Shard{Cube: c, PE: pe, View: p.PE.part(part, numPEs, pe)})
		}
	}
	return shards, nil
}

// limit resolves a number of cubes or PEs to use, of those there are.
func limit(name string, use, have int, owner, things string) (int, error) {
	if use < 0 || use > have || have < 1 {
		return 0, fmt.Errorf("placement: %s is %d, but %s %d %s: want 1 to %d, or 0 for all", name, use, owner, have, things, have)
	}
	if use == 0 {
		return have, nil
	}
	return use, nil
}

func (p Placement) check(t *Tensor) error {
	for _, m := range []Mode{p.Cube, p.PE} {
		if int(m) >= len(modeNames) {
			return fmt.Errorf("placement: %v: want one of %s", m, strings.Join(modeNames[:], ", "))
		}
		if m != Replicate && len(t.layout.Shape) == 0 {
			return fmt.Errorf("placement: %v of a tensor without dimensions: want replicate", m)
		}
	}
	return nil
}

// part is the i-th of k parts of t.
func (m Mode) part(t *Tensor, k, i int) *Tensor {
	if m == Replicate {
		return t
	}
	d := 0
	if m == ColumnWise {
		d = len(t.layout.Shape) - 1
	}
	size, longer := t.layout.Shape[d]/k, t.layout.Shape[d]%k
	start := i*size + min(i, longer)
	if i < longer {
		size++
	}
	return t.narrowed(d, start, size)
}
