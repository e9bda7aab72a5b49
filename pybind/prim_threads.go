package pybind

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// PrimLaunchThreads is PrimLaunch for programs of so many threads, beside others of the rank: where there is room for no
// more programs, they start when others have ended.
func PrimLaunchThreads(machine, stream int64, name string, blocks, threads int, tensorsAt int64, tensors int, windowsAt int64, windows int) (handle int64, err error) {
	defer host.Guard(&err)
	task := prim.Task{Name: name, Blocks: blocks, Threads: threads, Beside: true}
	return host.LaunchTask(machine, stream, task, tensorsAt, tensors, windowsAt, windows)
}

// PrimPutOff puts a program on a stream that does what the rank's host has put off; see host.LaunchPutOff.
func PrimPutOff(machine, stream int64, name string) (handle int64, err error) {
	defer host.Guard(&err)
	return host.LaunchPutOff(machine, stream, name)
}

// PrimResident is prim.Machine.Resident.
func PrimResident(machine int64, threads int) (programs int, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	return m.Resident(threads), nil
}

// PrimSlot is prim.Context.Slot.
func PrimSlot(program int64) (slot int, err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err != nil {
		return 0, err
	}
	return p.Slot(), nil
}

// PrimPass lets so many picoseconds pass for the program.
func PrimPass(program int64, line int, ps int64) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		if ps < 0 {
			return host.Raise("ValueError", "time cannot pass backwards: %d ps", ps)
		}
		p.Pass(sim.Time(ps))
		return nil
	})
}

// PrimRun takes steps of a program, one after another, over time; see host.Program.Run. The program's next turn is after all
// of them.
func PrimRun(program, stepsAt int64, steps int) (blocked bool, err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err != nil {
		return false, err
	}
	return p.Run(stepsAt, steps)
}

// PrimTouch is prim.Context.Touch. A run is an address and a number of bytes; uses are prim's, by number.
func PrimTouch(program int64, line int, what string, runsAt int64, runs, use int, threads bool) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		list, err := host.Runs(runsAt, runs)
		if err != nil {
			return err
		}
		if use < 0 || use > int(prim.Releases) {
			return host.Raise("ValueError", "use %d of memory; there are 0 to %d", use, prim.Releases)
		}
		p.Touch(what, list, prim.Use(use), threads)
		return nil
	})
}

// PrimGather is prim.Context.Gather, of runs as in PrimTouch; looks are prim's, by number.
func PrimGather(program int64, line int, what string, runsAt int64, runs, look int, threads bool) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		list, err := host.Runs(runsAt, runs)
		if err != nil {
			return err
		}
		if look < 0 || look > int(prim.FlaggedLook) {
			return host.Raise("ValueError", "look %d at memory; there are 0 to %d", look, prim.FlaggedLook)
		}
		p.Gather(what, list, prim.Look(look), threads)
		return nil
	})
}

// PrimScatter is prim.Context.Scatter of bytes at an address of the process, to runs as in PrimTouch.
func PrimScatter(program int64, line int, what string, runsAt int64, runs int, from int64, bytes int, threads bool) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		list, data, err := host.RunsOf(runsAt, runs, from, bytes)
		if err == nil {
			p.Scatter(what, list, data, threads)
		}
		return err
	})
}

// PrimWatch is prim.Context.Watch, of runs as in PrimTouch, where bytes at an address of the process were seen.
func PrimWatch(program int64, line int, runsAt int64, runs int, seen int64, bytes int, why string) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		list, data, err := host.RunsOf(runsAt, runs, seen, bytes)
		if err == nil {
			p.Watch(list, data, why)
		}
		return err
	})
}

// PrimAwait is prim.Context.WaitAnywhere.
func PrimAwait(program int64, line int, wordAt int64, wordBytes, cmp int, value int64) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		if cmp < 0 || cmp > int(prim.LE) {
			return host.Raise("ValueError", "comparison %d; there are 0 to %d", cmp, prim.LE)
		}
		p.WaitAnywhere(host.Word(wordAt, wordBytes), prim.Cmp(cmp), value)
		return nil
	})
}

// PrimNarrow is prim.Context.Narrow: scope is 0 for the block's threads, and 1 for those of the rank.
func PrimNarrow(program int64, line int, what string, wordAt int64, wordBytes, scope int) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		if scope != int(prim.OfBlock) && scope != int(prim.OfRank) {
			return host.Raise("ValueError", "scope %d; there are 0 and 1", scope)
		}
		p.Narrow(what, host.Word(wordAt, wordBytes), prim.Scope(scope))
		return nil
	})
}

// PrimRates fills in what a PE does: operations a second of its matrix unit on elements of 8, 16 and 32 bits and of its
// vector unit on those of 32, the bytes a second and the latency, in picoseconds, of a cube's memory, and the numbers of
// PEs of a cube and of cubes of a SIP.
func PrimRates(machine, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	return host.Fill(to, room, m.Rates())
}

// PrimFound is prim.Context.Found, of words one after another: of each its address, its bytes and what is found.
func PrimFound(program, wordsAt int64, words int, stores bool) (err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err != nil {
		return err
	}
	list, err := host.Ints(wordsAt, words)
	for ; err == nil && len(list) > 2; list = list[3:] {
		p.Found(host.Word(int64(list[0]), list[1]), int64(list[2]), stores)
	}
	return err
}

// PrimRoles is prim.Context.Roles.
func PrimRoles(program int64, on bool) (err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err == nil {
		p.Roles(on)
	}
	return err
}

// PrimSome is prim.Context.Some.
func PrimSome(program int64, on bool) (err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err == nil {
		p.Some(on)
	}
	return err
}

// PrimShares is prim.Context.Shares.
func PrimShares(program int64, on bool) (err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err == nil {
		p.Shares(on)
	}
	return err
}

// PrimHeedless is prim.Context.Heedless.
func PrimHeedless(program int64, on bool) (err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err == nil {
		p.Heedless(on)
	}
	return err
}

// PrimBounds is prim.Context.Bounds.
func PrimBounds(program, wordAt int64, wordBytes int) (err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err == nil {
		p.Bounds(host.Word(wordAt, wordBytes))
	}
	return err
}

// PrimDerives is prim.Context.Derives.
func PrimDerives(program, wordAt int64, wordBytes int) (err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err == nil {
		p.Derives(host.Word(wordAt, wordBytes))
	}
	return err
}

// PrimDecides is prim.Context.Decides.
func PrimDecides(program, wordAt int64, wordBytes int, alike bool) (err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err == nil {
		p.Decides(host.Word(wordAt, wordBytes), alike)
	}
	return err
}

// PrimPast is prim.Context.Past.
func PrimPast(program int64, wordAt int64, wordBytes int, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	p, err := host.ProgramOf(program)
	if err != nil {
		return 0, err
	}
	return host.Fill(to, room, p.Past(host.Word(wordAt, wordBytes)))
}

// PrimOutdated is prim.Context.Outdated.
func PrimOutdated(program int64, line int, wordAt int64, wordBytes int, value int64, text string) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		p.Outdated(host.Word(wordAt, wordBytes), value, text)
		return nil
	})
}

// PrimRepeats is prim.Context.Repeats.
func PrimRepeats(program int64, line int, wordAt int64, wordBytes int, value int64, text string) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		p.Repeats(host.Word(wordAt, wordBytes), value, text)
		return nil
	})
}

// PrimSuffices is prim.Context.Suffices.
func PrimSuffices(program int64, line int, wordAt int64, wordBytes int, value int64, text string) (blocked bool, err error) {
	return host.Operate(program, line, func(p *host.Program) error {
		p.Suffices(host.Word(wordAt, wordBytes), value, text)
		return nil
	})
}
