package pybind

import (
	"strconv"
	"strings"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// operate runs an operation of a program at a line, and says whether the program has to park.
func operate(program int64, line int, f func(p *kernelProgram) error) (blocked bool, err error) {
	defer guard(&err)
	p, err := programOf(program)
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
func (p *kernelProgram) careful(f func(p *kernelProgram) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if err = prim.Misuse(v); err == nil {
				panic(v)
			}
		}
	}()
	return f(p)
}

func tile(at int64, bytes int) prim.Tile { return prim.Tile{Addr: prim.Addr(at), Bytes: bytes} }

func word(at int64, bytes int) prim.Word {
	if bytes == 4 {
		return prim.I32(prim.Addr(at))
	}
	return prim.I64(prim.Addr(at))
}

// combination reads the name of a reduce op and of a dtype.
func combination(op, kind string) (tensor.ReduceOp, dtype.DType, error) {
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

// PrimScratch makes memory of Python's the scratch memory of the program's PE, unless it has some already, and returns its
// first address. Python keeps it until the machine is closed; 0 is to ask for the address only.
func PrimScratch(program, address int64, bytes int) (start int64, err error) {
	defer guard(&err)
	p, err := programOf(program)
	if err != nil {
		return 0, err
	}
	if address != 0 {
		memory, err := memoryAt(address, bytes)
		if err != nil {
			return 0, err
		}
		if err := p.UseScratch(memory); err != nil {
			return 0, err
		}
	}
	return int64(p.ScratchStart()), nil
}

// PrimScratchBytes is the size of a PE's scratch memory.
func PrimScratchBytes(machine int64) (bytes int, err error) {
	defer guard(&err)
	m, err := machineOf(machine)
	if err != nil {
		return 0, err
	}
	return int(m.Topology.Compute().Scratch), nil
}

// PrimResult is what the last fetching operation, test or receive of a program gave.
func PrimResult(program int64) (value int64, err error) {
	defer guard(&err)
	p, err := programOf(program)
	if err != nil {
		return 0, err
	}
	return p.Result(), nil
}

// PrimLoad is prim.Context.Load.
func PrimLoad(program int64, line int, tileAt, from int64, bytes int) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error { p.Load(tile(tileAt, bytes), prim.Addr(from)); return nil })
}

// PrimStore is prim.Context.Store.
func PrimStore(program int64, line int, to, tileAt int64, bytes int) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error { p.Store(prim.Addr(to), tile(tileAt, bytes)); return nil })
}

// PrimStoreReduce is prim.Context.StoreReduce.
func PrimStoreReduce(program int64, line int, op, dtypeName string, to, tileAt int64, bytes int) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		o, d, err := combination(op, dtypeName)
		if err == nil {
			p.StoreReduce(o, d, prim.Addr(to), tile(tileAt, bytes))
		}
		return err
	})
}

// PrimCombine is prim.Context.Combine, of three tiles of as many bytes.
func PrimCombine(program int64, line int, op, dtypeName string, to, a, b int64, bytes int) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		o, d, err := combination(op, dtypeName)
		if err == nil {
			p.Combine(o, d, tile(to, bytes), tile(a, bytes), tile(b, bytes))
		}
		return err
	})
}

// PrimFinish is prim.Context.Finish.
func PrimFinish(program int64, line int, op, dtypeName string, at int64, bytes, world int) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		o, d, err := combination(op, dtypeName)
		if err == nil {
			p.Finish(o, d, tile(at, bytes), world)
		}
		return err
	})
}

// PrimMove is prim.Context.Move.
func PrimMove(program int64, line int, to, from int64, bytes int) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error { p.Move(tile(to, bytes), tile(from, bytes)); return nil })
}

// PrimDot is prim.Context.Dot, of matrices of float32 elements.
func PrimDot(program int64, line int, to, a, b int64, m, n, k int, accumulate bool) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		p.Dot(tile(to, 4*m*n), tile(a, 4*m*k), tile(b, 4*k*n), m, n, k, accumulate)
		return nil
	})
}

// PrimCompute gives a pipe, vector or matrix, an instruction whose result Python makes when it is its turn. It reads tiles,
// "address:bytes,…", and writes one. ops and dtypeName are the work on the matrix pipe. It returns its number.
func PrimCompute(program int64, line int, what, dtypeName string, ops, to int64, bytes int, from string) (number int64, err error) {
	var tiles []prim.Tile
	_, err = operate(program, line, func(p *kernelProgram) (err error) {
		if tiles, err = parseTiles(from); err != nil {
			return err
		}
		e := prim.Effort{Pipe: prim.Vector}
		if dtypeName != "" {
			e.Pipe, e.Ops = prim.Matrix, ops
			if e.DType, err = dtype.Parse(dtypeName); err != nil {
				return err
			}
		}
		p.of.issued++
		number = p.of.issued
		p.of.numbers[p.Compute(what, e, tile(to, bytes), tiles)] = number
		return nil
	})
	return number, err
}

// PrimPut is prim.Context.Put, or PutNBI if it is not to wait; with word it is PutSignal. op is 0 to add and 1 to set.
func PrimPut(program int64, line int, to, from int64, bytes int, wait bool, wordAt int64, wordBytes, op int, value int64) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		dst, src, w, o := prim.Addr(to), prim.Addr(from), word(wordAt, wordBytes), prim.SignalOp(op)
		switch {
		case wordAt == 0 && wait:
			p.Put(dst, src, bytes)
		case wordAt == 0:
			p.PutNBI(dst, src, bytes)
		case wait:
			p.PutSignal(dst, src, bytes, w, o, value)
		default:
			p.PutSignalNBI(dst, src, bytes, w, o, value)
		}
		return nil
	})
}

// PrimPutReduce is prim.Context.PutReduce.
func PrimPutReduce(program int64, line int, op, dtypeName string, to, from int64, bytes int) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		o, d, err := combination(op, dtypeName)
		if err == nil {
			p.PutReduce(o, d, prim.Addr(to), prim.Addr(from), bytes)
		}
		return err
	})
}

// PrimGet is prim.Context.Get, or GetNBI if it is not to wait.
func PrimGet(program int64, line int, to, from int64, bytes int, wait bool) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		if wait {
			p.Get(prim.Addr(to), prim.Addr(from), bytes)
		} else {
			p.GetNBI(prim.Addr(to), prim.Addr(from), bytes)
		}
		return nil
	})
}

// PrimCopy is prim.Context.Copy. It returns the event, which Python releases.
func PrimCopy(program int64, line int, to, from int64, bytes int) (event int64, err error) {
	_, err = operate(program, line, func(p *kernelProgram) error {
		event = register(of[*prim.Event]{p.Copy(prim.Addr(to), prim.Addr(from), bytes), p.of})
		return nil
	})
	return event, err
}

// PrimWaitEvent is prim.Context.WaitEvent.
func PrimWaitEvent(program int64, line int, event int64) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		e, err := partOf[*prim.Event](event, "event")
		if err == nil {
			p.WaitEvent(e.object)
		}
		return err
	})
}

// PrimSignal is prim.Context.Signal. op is 0 to add and 1 to set; the word has 4 or 8 bytes.
func PrimSignal(program int64, line int, wordAt int64, wordBytes, op int, value int64) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		p.Signal(word(wordAt, wordBytes), prim.SignalOp(op), value)
		return nil
	})
}

// PrimWait is prim.Context.Wait; or Test, if it is not to wait. cmp is 0 to 5: EQ, NE, GT, GE, LT, LE.
func PrimWait(program int64, line int, wordAt int64, wordBytes, cmp int, value int64, test bool) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		if cmp < int(prim.EQ) || cmp > int(prim.LE) {
			return raise("ValueError", "comparison %d; comparisons are 0 to 5: EQ, NE, GT, GE, LT, LE", cmp)
		}
		if test {
			p.Test(word(wordAt, wordBytes), prim.Cmp(cmp), value)
		} else {
			p.Wait(word(wordAt, wordBytes), prim.Cmp(cmp), value)
		}
		return nil
	})
}

// PrimAtomic changes a word of any rank and fetches its old value: kind is fetch, add, exchange or compare_swap, which
// sets it to value if it is wanted.
func PrimAtomic(program int64, line int, kind string, wordAt int64, wordBytes int, wanted, value int64) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		w := word(wordAt, wordBytes)
		switch kind {
		case "fetch":
			p.Fetch(w)
		case "add":
			p.FetchAdd(w, value)
		case "exchange":
			p.Exchange(w, value)
		case "compare_swap":
			p.CompareSwap(w, wanted, value)
		default:
			return raise("ValueError", "atomic %q; there are fetch, add, exchange and compare_swap", kind)
		}
		return nil
	})
}

// PrimOrder is one of fence, quiet and pipe_barrier: prim.Context.Fence, Quiet and PipeBarrier(AllPipes).
func PrimOrder(program int64, line int, kind string) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		switch kind {
		case "fence":
			p.Fence()
		case "quiet":
			p.Quiet()
		case "pipe_barrier":
			p.PipeBarrier(prim.AllPipes)
		default:
			return raise("ValueError", "%q orders nothing; there are fence, quiet and pipe_barrier", kind)
		}
		return nil
	})
}

// PrimFlag is prim.Context.SetFlag, or WaitFlag. Pipes are 0 to 4: scalar, load, vector, matrix, store.
func PrimFlag(program int64, line int, wait bool, from, to, id int) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		if from < 0 || to < 0 || from >= int(prim.AllPipes) || to >= int(prim.AllPipes) {
			return raise("ValueError", "a flag from pipe %d to %d; pipes are 0 to 4: scalar, load, vector, matrix, store", from, to)
		}
		if wait {
			p.WaitFlag(prim.Pipe(from), prim.Pipe(to), id)
		} else {
			p.SetFlag(prim.Pipe(from), prim.Pipe(to), id)
		}
		return nil
	})
}

// PrimSync is a part of prim.Context.Sync. As long as it answers true the program parks and calls it again.
func PrimSync(program int64, line int, barrier int64) (again bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		b, err := partOf[*prim.Barrier](barrier, "barrier")
		if err == nil {
			p.sync(b.object)
		}
		return err
	})
}

// sync goes on with a barrier until it is blocked or over.
func (p *kernelProgram) sync(b *prim.Barrier) {
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

// PrimSend is prim.Context.Send.
func PrimSend(program int64, line int, queue, from int64, bytes int) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		q, err := partOf[*prim.Queue](queue, "queue")
		if err == nil {
			p.Send(q.object, prim.Addr(from), bytes)
		}
		return err
	})
}

// PrimRecv is prim.Context.Recv; the message's size is PrimResult.
func PrimRecv(program int64, line int, queue, to int64, bytes int) (blocked bool, err error) {
	return operate(program, line, func(p *kernelProgram) error {
		q, err := partOf[*prim.Queue](queue, "queue")
		if err == nil {
			p.Recv(q.object, prim.Addr(to), bytes)
		}
		return err
	})
}

// parseTiles reads "address:bytes,address:bytes".
func parseTiles(text string) ([]prim.Tile, error) {
	if text == "" {
		return nil, nil
	}
	fields := strings.Split(text, ",")
	tiles := make([]prim.Tile, len(fields))
	for i, f := range fields {
		at, bytes, ok := strings.Cut(f, ":")
		a, err := strconv.ParseInt(at, 10, 64)
		n, err2 := strconv.Atoi(bytes)
		if !ok || err != nil || err2 != nil {
			return nil, raise("ValueError", "%q is not address:bytes", f)
		}
		tiles[i] = tile(a, n)
	}
	return tiles, nil
}
