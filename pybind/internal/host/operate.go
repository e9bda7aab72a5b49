package host

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Operate runs an operation of a program at a line, and says whether the program has to park.
func Operate(program int64, line int, f func(p *Program) error) (blocked bool, err error) {
	defer Guard(&err)
	p, err := ProgramOf(program)
	if err != nil {
		return false, err
	}
	if line >= 0 && line < len(p.of.lines) {
		p.SetLine(p.of.lines[line])
	}
	err = p.careful(f)
	return p.Blocked(), err
}

// careful turns the panic of wrong use into an error.
func (p *Program) careful(f func(p *Program) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if err = prim.Misuse(v); err == nil {
				panic(v)
			}
		}
	}()
	return f(p)
}

// Tile is so many bytes of scratch memory.
func Tile(at int64, bytes int) prim.Tile { return prim.Tile{Addr: prim.Addr(at), Bytes: bytes} }

// Word is a word of 4 or 8 bytes.
func Word(at int64, bytes int) prim.Word {
	if bytes == 4 {
		return prim.I32(prim.Addr(at))
	}
	return prim.I64(prim.Addr(at))
}

// WordUsed is a word with how operations on it order, by number.
func WordUsed(at int64, bytes, use int) (prim.Word, error) {
	w := Word(at, bytes)
	if use < int(prim.Atomic) || use > int(prim.Releases) {
		return w, Raise("ValueError", "use %d of a word; there are %d to %d", use, prim.Atomic, prim.Releases)
	}
	w.Use = prim.Use(use)
	return w, nil
}

// Combination reads the name of a reduce op and of a dtype.
func Combination(op, kind string) (tensor.ReduceOp, dtype.DType, error) {
	o, err := tensor.ParseReduceOp(op)
	if err != nil {
		return o, 0, err
	}
	d, err := dtype.Parse(kind)
	if err != nil {
		return o, d, err
	}
	return o, d, o.Check(d)
}

// Sync goes on with a barrier until it is blocked or over.
func (p *Program) Sync(b *prim.Barrier) {
	if p.leaving {
		p.leaving = false
		return
	}
	if p.members < 0 {
		p.Arrive(b)
		p.members = 0
	}
	for p.members < len(b.Ranks) {
		p.WaitMember(b, p.members)
		p.members++
		if p.Blocked() {
			return
		}
	}
	p.members = -1
	p.Leave(b)
	p.leaving = p.Blocked()
}

// Instruct gives a pipe an instruction whose result Python makes when it is its turn, and returns its number.
func (p *Program) Instruct(what string, e prim.Effort, to prim.Tile, from []prim.Tile) int64 {
	p.of.issued++
	p.of.numbers[p.Compute(what, e, to, from)] = p.of.issued
	return p.of.issued
}

// Machine is the one that the program runs on.
func (p *Program) Machine() *Machine { return p.of }

// Tiles copies tiles, an address and a number of bytes each, from n integers at an address.
func Tiles(at int64, n int) ([]prim.Tile, error) {
	list, err := words(at, n)
	if err != nil {
		return nil, err
	}
	if n%2 != 0 {
		return nil, Raise("ValueError", "%d integers are no addresses and numbers of bytes", n)
	}
	tiles := make([]prim.Tile, n/2)
	for i := range tiles {
		tiles[i] = Tile(list[2*i], int(list[2*i+1]))
	}
	return tiles, nil
}
