package pybind

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/dtype"
)

// PrimScratch makes memory of Python's the scratch memory of the program's PE, unless it has some already, and returns its
// first address. Python keeps it until the machine is closed; 0 is to ask for the address only.
func PrimScratch(program, address int64, bytes int) (start int64, err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err != nil {
		return 0, err
	}
	if address != 0 {
		memory, err := host.MemoryAt(address, bytes)
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
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	return int(m.Topology.Compute().Scratch), nil
}

// PrimResult is what the last fetching operation, test or receive of a program gave.
func PrimResult(program int64) (value int64, err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err != nil {
		return 0, err
	}
	return p.Result(), nil
}

// PrimLoad is prim.Context.Load.
func PrimLoad(program int64, line int, tileAt, from int64, bytes int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error { p.Load(host.Tile(tileAt, bytes), prim.Addr(from)); return nil })
}

// PrimStore is prim.Context.Store.
func PrimStore(program int64, line int, to, tileAt int64, bytes int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error { p.Store(prim.Addr(to), host.Tile(tileAt, bytes)); return nil })
}

// PrimStoreReduce is prim.Context.StoreReduce.
func PrimStoreReduce(program int64, line int, op, dtypeName string, to, tileAt int64, bytes int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		o, d, err := host.Combination(op, dtypeName)
		if err == nil {
			p.StoreReduce(o, d, prim.Addr(to), host.Tile(tileAt, bytes))
		}
		return err
	})
}

// PrimCombine is prim.Context.Combine, of three tiles of as many bytes.
func PrimCombine(program int64, line int, op, dtypeName string, to, a, b int64, bytes int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		o, d, err := host.Combination(op, dtypeName)
		if err == nil {
			p.Combine(o, d, host.Tile(to, bytes), host.Tile(a, bytes), host.Tile(b, bytes))
		}
		return err
	})
}

// PrimFinish is prim.Context.Finish.
func PrimFinish(program int64, line int, op, dtypeName string, at int64, bytes, world int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		o, d, err := host.Combination(op, dtypeName)
		if err == nil {
			p.Finish(o, d, host.Tile(at, bytes), world)
		}
		return err
	})
}

// PrimMove is prim.Context.Move.
func PrimMove(program int64, line int, to, from int64, bytes int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error { p.Move(host.Tile(to, bytes), host.Tile(from, bytes)); return nil })
}

// PrimDot is prim.Context.Dot, of matrices of float32 elements.
func PrimDot(program int64, line int, to, a, b int64, m, n, k int, accumulate bool) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		p.Dot(host.Tile(to, 4*m*n), host.Tile(a, 4*m*k), host.Tile(b, 4*k*n), m, n, k, accumulate)
		return nil
	})
}

// PrimCompute gives a pipe, vector or matrix, an instruction whose result Python makes when it is its turn. It reads tiles,
// of which the address and the size are at an address, and writes one. ops and dtypeName are the work on the matrix pipe. It returns its number.
func PrimCompute(program int64, line int, what, dtypeName string, ops, to int64, bytes int, fromAt int64, from int) (number int64, err error) {
	_, err = host.Operate(program, line, func(p *host.Program) error {
		tiles, err := host.Tiles(fromAt, from)
		if err != nil {
			return err
		}
		e := prim.Effort{Pipe: prim.Vector}
		if dtypeName != "" {
			e.Pipe, e.Ops = prim.Matrix, ops
			if e.DType, err = dtype.Parse(dtypeName); err != nil {
				return err
			}
		}
		number = p.Instruct(what, e, host.Tile(to, bytes), tiles)
		return nil
	})
	return number, err
}

// PrimPut is prim.Context.Put, or PutNBI if it is not to wait; with word it is PutSignal. op is 0 to add and 1 to set.
func PrimPut(program int64, line int, to, from int64, bytes int, wait bool, wordAt int64, wordBytes, op int, value int64) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		dst, src, w, o := prim.Addr(to), prim.Addr(from), host.Word(wordAt, wordBytes), prim.SignalOp(op)
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
	return host.Operate(program, line, func(p *host.Program) error {
		o, d, err := host.Combination(op, dtypeName)
		if err == nil {
			p.PutReduce(o, d, prim.Addr(to), prim.Addr(from), bytes)
		}
		return err
	})
}

// PrimGet is prim.Context.Get, or GetNBI if it is not to wait.
func PrimGet(program int64, line int, to, from int64, bytes int, wait bool) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
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
	_, err = host.Operate(program, line, func(p *host.Program) error {
		event = host.Keep(p.Machine(), p.Copy(prim.Addr(to), prim.Addr(from), bytes))
		return nil
	})
	return event, err
}

// PrimWaitEvent is prim.Context.WaitEvent.
func PrimWaitEvent(program int64, line int, event int64) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		e, err := host.PartOf[*prim.Event](event, "event")
		if err == nil {
			p.WaitEvent(e.Object)
		}
		return err
	})
}

// PrimSignal is prim.Context.Signal. op is 0 to add and 1 to set; the word has 4 or 8 bytes.
func PrimSignal(program int64, line int, wordAt int64, wordBytes, op int, value int64) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		p.Signal(host.Word(wordAt, wordBytes), prim.SignalOp(op), value)
		return nil
	})
}

// PrimWait is prim.Context.Wait; or Test, if it is not to wait. cmp is 0 to 5: EQ, NE, GT, GE, LT, LE.
func PrimWait(program int64, line int, wordAt int64, wordBytes, cmp int, value int64, test bool) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		if cmp < int(prim.EQ) || cmp > int(prim.LE) {
			return host.Raise("ValueError", "comparison %d; comparisons are 0 to 5: EQ, NE, GT, GE, LT, LE", cmp)
		}
		if test {
			p.Test(host.Word(wordAt, wordBytes), prim.Cmp(cmp), value)
		} else {
			p.Wait(host.Word(wordAt, wordBytes), prim.Cmp(cmp), value)
		}
		return nil
	})
}

// PrimAtomic changes a word of any rank and fetches its old value: kind is fetch, add, add_float, whose value is a float's
// bits, exchange or compare_swap, which sets it to value if it is wanted.
func PrimAtomic(program int64, line int, kind string, wordAt int64, wordBytes int, wanted, value int64, use int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		w, err := host.WordUsed(wordAt, wordBytes, use)
		if err != nil {
			return err
		}
		switch kind {
		case "fetch":
			p.Fetch(w)
		case "add":
			p.FetchAdd(w, value)
		case "add_float":
			p.FetchAddFloat(w, value)
		case "exchange":
			p.Exchange(w, value)
		case "compare_swap":
			p.CompareSwap(w, wanted, value)
		default:
			return host.Raise("ValueError", "atomic %q; there are fetch, add, add_float, exchange and compare_swap", kind)
		}
		return nil
	})
}

// PrimOrder is one of fence, quiet, quiet_all, stores, own, pipe_barrier and meet: prim.Context.Fence, Quiet, QuietAll,
// WaitStores, WaitOwn, PipeBarrier(AllPipes) and Meet.
func PrimOrder(program int64, line int, kind string) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		switch kind {
		case "fence":
			p.Fence()
		case "quiet":
			p.Quiet()
		case "quiet_all":
			p.QuietAll()
		case "stores":
			p.WaitStores()
		case "own":
			p.WaitOwn()
		case "pipe_barrier":
			p.PipeBarrier(prim.AllPipes)
		case "meet":
			p.Meet()
		default:
			return host.Raise("ValueError", "%q orders nothing; there are fence, quiet, quiet_all, stores, own, pipe_barrier and meet", kind)
		}
		return nil
	})
}

// PrimFlag is prim.Context.SetFlag, or WaitFlag. Pipes are 0 to 4: scalar, load, vector, matrix, store.
func PrimFlag(program int64, line int, wait bool, from, to, id int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		if from < 0 || to < 0 || from >= int(prim.AllPipes) || to >= int(prim.AllPipes) {
			return host.Raise("ValueError", "a flag from pipe %d to %d; pipes are 0 to 4: scalar, load, vector, matrix, store", from, to)
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
	return host.Operate(program, line, func(p *host.Program) error {
		b, err := host.PartOf[*prim.Barrier](barrier, "barrier")
		if err == nil {
			p.Sync(b.Object)
		}
		return err
	})
}

// PrimSend is prim.Context.Send.
func PrimSend(program int64, line int, queue, from int64, bytes int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		q, err := host.PartOf[*prim.Queue](queue, "queue")
		if err == nil {
			p.Send(q.Object, prim.Addr(from), bytes)
		}
		return err
	})
}

// PrimRecv is prim.Context.Recv; the message's size is PrimResult.
func PrimRecv(program int64, line int, queue, to int64, bytes int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		q, err := host.PartOf[*prim.Queue](queue, "queue")
		if err == nil {
			p.Recv(q.Object, prim.Addr(to), bytes)
		}
		return err
	})
}
