package prim_test

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

var fuzzed = flag.Int("programs", 5000, "how many random programs of each kind are put to the checker")

// play runs a program, without one of its operations (-1: with all), and returns what is found.
func play(t testing.TB, seed uint64, ranks int, program []op, without int, fifo bool) []prim.Finding {
	moves := !fifo && seed%2 == 0 // else the checker alone does not count on the order of deliveries
	m := machine(t, ranks, prim.Options{Check: true, Fences: !fifo, Reorder: moves, Seed: seed})
	data := window(t, m, windowSlots*slotBytes)
	words, err := m.Allocate("words", all(ranks), 8*wordsOf)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range ranks {
		p := &player{data: data, words: words, program: program, without: without, rank: rank, events: map[int]*prim.Event{}}
		task := prim.Task{Name: "fuzz", Workers: []int{rank}, Interlock: true, Kernel: p.run}
		if _, err := m.Submit(task); err != nil {
			t.Fatal(err)
		}
	}
	var found *prim.FindingsError
	if err := m.Run(); err != nil && !errors.As(err, &found) {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return m.Findings()
}

// player is a rank's part of a program.
type player struct {
	data, words   *prim.Window
	program       []op
	without, rank int
	events        map[int]*prim.Event // of copies
}

func (p *player) run(c *prim.Context) error {
	for n, o := range p.program {
		if o.rank == p.rank && n != p.without {
			c.SetLine(fmt.Sprintf("op:%d", n))
			p.do(c, n, o)
		}
	}
	c.SetLine("end")
	return nil
}

func (p *player) at(c *prim.Context, m mem) prim.Addr {
	if m.scratch {
		return c.Tile(m.lo, m.hi-m.lo).Addr
	}
	return p.data.At(m.rank, m.lo)
}

func (p *player) tile(c *prim.Context, m mem) prim.Tile { return c.Tile(m.lo, m.hi-m.lo) }

func (p *player) word(o op) prim.Word { return prim.I64(p.words.At(o.wordRank, 8*o.word)) }

func (p *player) do(c *prim.Context, n int, o op) {
	size := o.to.hi - o.to.lo
	switch o.kind {
	case opLoad:
		c.Load(p.tile(c, o.to), p.at(c, o.from))
	case opCombine:
		c.Combine(tensor.Sum, dtype.U8, p.tile(c, o.to), p.tile(c, o.from), p.tile(c, o.other))
	case opStore:
		c.Store(p.at(c, o.to), p.tile(c, o.from))
	case opPut:
		c.Put(p.at(c, o.to), p.at(c, o.from), size)
	case opPutNBI:
		c.PutNBI(p.at(c, o.to), p.at(c, o.from), size)
	case opPutSignal:
		c.PutSignalNBI(p.at(c, o.to), p.at(c, o.from), size, p.word(o), prim.Add, 1)
	case opGet:
		c.Get(p.at(c, o.to), p.at(c, o.from), size)
	case opGetNBI:
		c.GetNBI(p.at(c, o.to), p.at(c, o.from), size)
	case opCopy:
		p.events[n] = c.Copy(p.at(c, o.to), p.at(c, o.from), size)
	default:
		p.order(c, o)
	}
}

func (p *player) order(c *prim.Context, o op) {
	switch o.kind {
	case opAwaitCopy:
		c.WaitEvent(p.events[o.copied])
	case opSignal:
		c.Signal(p.word(o), prim.Add, 1)
	case opWait:
		c.Wait(p.word(o), prim.GE, o.count)
	case opFence:
		c.Fence()
	case opQuiet:
		c.Quiet()
	case opDrain:
		c.PipeBarrier(prim.AllPipes)
	}
}

// tally is what became of the programs.
type tally struct {
	sync.Mutex
	right, reported   int // programs that are right, and those of them with a report
	wrong, found, one int // programs with one race, those that are reported, and those with just the one report
	reports, races    int // of programs with several races: pairs reported, and how many of these are races
}

// Random programs that are right by construction, at sizes at which scratch memory is used again and again, are not
// reported. Without one of the operations that order them they are: the race is, by its two lines, and nothing else.
// Which pairs are races says a graph of the program's moments, which knows nothing of clocks.
func TestRandomProgramsAgainstTheirGraphs(t *testing.T) {
	var sum tally
	programs := *fuzzed
	if testing.Short() {
		programs = min(programs, 50)
	}
	seeds := make(chan uint64)
	var done sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		done.Add(1)
		go func() {
			defer done.Done()
			for seed := range seeds {
				fuzzOne(t, seed, &sum)
			}
		}()
	}
	last := uint64(0)
	for seed := last; ; seed++ {
		sum.Lock()
		enough := sum.right >= programs && sum.wrong >= programs
		sum.Unlock()
		if enough || t.Failed() {
			break
		}
		seeds <- seed
		last = seed
	}
	close(seeds)
	done.Wait()
	t.Logf("seeds 0 to %d: %d right programs, %d reported; %d programs with one race, %d reported, %d with that report alone; "+
		"with several races: %d reports, %d of races", last, sum.right, sum.reported, sum.wrong, sum.found, sum.one, sum.reports, sum.races)
}

func fuzzOne(t *testing.T, seed uint64, sum *tally) {
	fifo := seed%3 != 0
	g := newGenerator(seed, fifo)
	program := g.generate(12 + g.rng.IntN(40))
	if races := graphOf(program, -1, fifo).races(); len(races) > 0 {
		t.Errorf("seed %d: the generator's program has races %v", seed, races)
		return
	}
	found := play(t, seed, g.ranks, program, -1, fifo)
	sum.Lock()
	sum.right++
	sum.Unlock()
	if len(found) > 0 {
		sum.Lock()
		sum.reported++
		sum.Unlock()
		t.Errorf("seed %d: a right program is reported:\n%v\n%s", seed, &found[0], listing(program))
		return
	}
	for n, o := range program {
		if o.kind != opWait && o.kind != opQuiet && o.kind != opDrain && o.kind != opAwaitCopy && o.kind != opFence {
			continue
		}
		races := graphOf(program, n, fifo).races()
		if len(races) == 0 || g.rng.IntN(6) > 0 {
			continue
		}
		judge(t, seed, program, n, races, play(t, seed, g.ranks, program, n, fifo), sum)
	}
}

// judge compares what is found of a program without an operation with its races.
func judge(t *testing.T, seed uint64, program []op, without int, races [][2]int, found []prim.Finding, sum *tally) {
	sum.Lock()
	defer sum.Unlock()
	right := 0
	for i := range found {
		if isOneOf(&found[i], races) {
			right++
		}
	}
	if len(races) > 1 {
		sum.reports += len(found)
		sum.races += right
	} else {
		sum.wrong++
		sum.found += min(right, 1)
		if len(found) == 1 && right == 1 {
			sum.one++
		}
	}
	if right == 0 || right < len(found) {
		text := "nothing"
		if len(found) > 0 {
			text = (&prim.FindingsError{Findings: found}).Error()
		}
		t.Errorf("seed %d without %d: races %v, found %s\n%s", seed, without, races, text, listing(program))
	}
}

// isOneOf says whether a finding is of one of the races; or that one of them, of a read that came too early, found nothing.
func isOneOf(f *prim.Finding, races [][2]int) bool {
	for _, r := range races {
		text := f.String()
		if f.Kind == prim.UnwrittenRead && strings.Contains(text, fmt.Sprintf("at op:%d,", r[1])) {
			return true
		}
		if strings.Contains(text, fmt.Sprintf("at op:%d,", r[0])) && strings.Contains(text, fmt.Sprintf("at op:%d,", r[1])) {
			return true
		}
	}
	return false
}

func listing(program []op) string {
	var b strings.Builder
	for n, o := range program {
		fmt.Fprintf(&b, "  %d: %v\n", n, o)
	}
	return b.String()
}
