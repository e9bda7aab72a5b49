package prim_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// over makes a checked machine of so many ranks, with a window of 64 words on all of them.
func over(t *testing.T, ranks int, o prim.Options) (*prim.Machine, *prim.Window) {
	t.Helper()
	top, err := topology.Load("default")
	if err != nil {
		t.Fatal(err)
	}
	m, err := prim.Over(top, ranks, o)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int, ranks)
	for r := range all {
		all[r] = r
	}
	w, err := m.Allocate("words", all, 512)
	if err != nil {
		t.Fatal(err)
	}
	return m, w
}

func submit(t *testing.T, m *prim.Machine, task prim.Task) *prim.Job {
	t.Helper()
	j, err := m.Submit(task)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestProgramsRunInWaves starts more programs than a rank holds, in their order, and never more at a time.
func TestProgramsRunInWaves(t *testing.T) {
	m, _ := over(t, 1, prim.Options{Check: true})
	const threads = 1024
	most, running := m.Resident(threads), 0
	var started []int
	run := func(c *prim.Context) error {
		started = append(started, c.Block())
		running++
		if running > most {
			t.Errorf("%d programs at a time, where %d have room", running, most)
		}
		c.Pass(1000)
		running--
		return nil
	}
	blocks := 2*most + 3
	submit(t, m, prim.Task{Name: "waves", Kernel: run, Workers: []int{0}, Blocks: blocks, Threads: threads})
	if err := m.Run(); err != nil {
		t.Fatal(err)
	}
	if len(started) != blocks || !slices.IsSorted(started) {
		t.Errorf("%d of %d programs started, in order: %v", len(started), blocks, slices.IsSorted(started))
	}
}

// TestTasksBesideEachOther lets one task of a rank wait for another one of it.
func TestTasksBesideEachOther(t *testing.T) {
	m, w := over(t, 1, prim.Options{})
	word := prim.I64(w.At(0, 0))
	waits := func(c *prim.Context) error { c.WaitAnywhere(word, prim.EQ, 5); return nil }
	sets := func(c *prim.Context) error { c.Signal(word, prim.Set, 5); return nil }
	submit(t, m, prim.Task{Name: "waits", Kernel: waits, Workers: []int{0}, Threads: 32, Beside: true})
	submit(t, m, prim.Task{Name: "sets", Kernel: sets, Workers: []int{0}, Threads: 32, Beside: true})
	if err := m.Run(); err != nil {
		t.Fatal(err)
	}
}

// scattered is a program of two ranks: rank 0 stores into rank 1's memory with all its threads and notifies it with one;
// rank 1 watches the word and loads. meets says whether the threads meet before the signal.
func scattered(w *prim.Window, meets bool) prim.Kernel {
	word := prim.I64(w.At(1, 0))
	places := []prim.Run{{Addr: w.At(1, 64), Bytes: 8}, {Addr: w.At(1, 128), Bytes: 8}}
	return func(c *prim.Context) error {
		if c.Rank() == 0 {
			c.Scatter("store", places, []byte("abcdefghijklmnop"), true)
			if meets {
				c.Meet()
			}
			c.Fence()
			c.Signal(word, prim.Set, 1)
			return nil
		}
		look := []prim.Run{{Addr: word.Addr, Bytes: 8}}
		c.Watch(look, make([]byte, 8), "a test")
		c.Gather("look", look, prim.FreshLook, false)
		c.Gather("load", places, prim.PlainLook, false)
		return nil
	}
}

func TestThreadsMeetBeforeTheySignal(t *testing.T) {
	for _, meets := range []bool{true, false} {
		for seed := range uint64(5) {
			m, w := over(t, 2, prim.Options{Check: true, Reorder: true, Seed: seed})
			for r := range 2 {
				submit(t, m, prim.Task{Name: "scattered", Kernel: scattered(w, meets), Workers: []int{r}, Threads: 64, Beside: true})
			}
			err := m.Run()
			var found *prim.FindingsError
			if meets && err != nil || !meets && !errors.As(err, &found) {
				t.Errorf("seed %d, the threads meet: %v: %v", seed, meets, err)
			}
			got, _ := m.Read(w.At(1, 128), 8)
			if string(got) != "ijklmnop" {
				t.Errorf("%q where the second run takes its bytes", got)
			}
		}
	}
}

// TestProgramsFindWhatTheyHaveSent lets a program count in another rank's word by looks and signals: it is the only one,
// and finds what it has sent there last in any order of what moves.
func TestProgramsFindWhatTheyHaveSent(t *testing.T) {
	const times = 5
	for _, how := range []prim.Look{prim.FreshLook, prim.RelaxedLook} {
		for seed := range uint64(20) {
			m, w := over(t, 2, prim.Options{Check: true, Reorder: true, Seed: seed})
			word := prim.I64(w.At(1, 0))
			count := func(c *prim.Context) error {
				for want := range int64(times) {
					c.Gather("look", []prim.Run{{Addr: word.Addr, Bytes: 8}}, how, false)
					data, err := m.Read(word.Addr, 8)
					if err != nil {
						return err
					}
					if found := int64(binary.LittleEndian.Uint64(data)); found != want {
						t.Errorf("seed %d: found %d, want %d", seed, found, want)
					}
					c.Fence()
					c.Signal(word, prim.Set, want+1)
				}
				return nil
			}
			submit(t, m, prim.Task{Name: "count", Kernel: count, Workers: []int{0}, Threads: 64})
			if err := m.Run(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
}

// TestAtomicTouchesOrder lets programs of a rank count in turn, with what they wrote before.
func TestAtomicTouchesOrder(t *testing.T) {
	m, w := over(t, 1, prim.Options{Check: true})
	word, data := prim.Run{Addr: w.At(0, 0), Bytes: 8}, prim.Run{Addr: w.At(0, 8), Bytes: 8}
	turn := 0
	run := func(c *prim.Context) error {
		for turn != c.Block() {
			c.Watch([]prim.Run{word}, binary.LittleEndian.AppendUint64(nil, uint64(turn)), "its turn")
		}
		c.Touch("look", []prim.Run{word}, prim.Atomic, false)
		c.Meet()
		c.Touch("store", []prim.Run{data}, prim.Writes, true)
		c.Meet()
		turn++
		binary.LittleEndian.PutUint64(w.Storage(0).Writable(), uint64(turn))
		c.Touch("count", []prim.Run{word}, prim.Atomic, false)
		return nil
	}
	submit(t, m, prim.Task{Name: "turns", Kernel: run, Workers: []int{0}, Blocks: 5, Threads: 32, Beside: true})
	if err := m.Run(); err != nil {
		t.Fatal(err)
	}
	if turn != 5 {
		t.Errorf("%d turns", turn)
	}
}

// TestAtomicTouchesOrderAsTheySay lets one program write, count and be seen by another one that waits for the count and
// reads: by the uses of both, and with a fence between what they do and the count.
func TestAtomicTouchesOrderAsTheySay(t *testing.T) {
	for _, x := range []struct {
		counts, looks prim.Use
		fenced        [2]bool
		ordered       bool
	}{
		{prim.Atomic, prim.Atomic, [2]bool{}, true},
		{prim.Releases, prim.Acquires, [2]bool{}, true},
		{prim.Relaxed, prim.Acquires, [2]bool{}, false},
		{prim.Acquires, prim.Acquires, [2]bool{}, false},
		{prim.Releases, prim.Relaxed, [2]bool{}, false},
		{prim.Releases, prim.Releases, [2]bool{}, false},
		{prim.Relaxed, prim.Relaxed, [2]bool{true, true}, true},
		{prim.Relaxed, prim.Relaxed, [2]bool{true, false}, false},
		{prim.Relaxed, prim.Relaxed, [2]bool{false, true}, false},
	} {
		m, w := over(t, 1, prim.Options{Check: true})
		word, data := []prim.Run{{Addr: w.At(0, 0), Bytes: 8}}, []prim.Run{{Addr: w.At(0, 8), Bytes: 8}}
		run := func(c *prim.Context) error {
			if c.Block() == 0 {
				c.Touch("store", data, prim.Writes, false)
				if x.fenced[0] {
					c.Fence()
				}
				c.Touch("count", word, x.counts, false)
				return nil
			}
			c.Pass(1_000_000)
			c.Touch("look", word, x.looks, false)
			if x.fenced[1] {
				c.Fence()
			}
			c.Touch("load", data, prim.Reads, false)
			return nil
		}
		submit(t, m, prim.Task{Name: "pair", Kernel: run, Workers: []int{0}, Blocks: 2, Threads: 32, Beside: true})
		if err := m.Run(); (err == nil) != x.ordered {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// used is the word at an address, for operations on it that order so much.
func used(at prim.Addr, use prim.Use) prim.Word {
	word := prim.I64(at)
	word.Use = use
	return word
}

// TestFarUsesOrderAsTheySay lets rank 0 write its memory and count in rank 1's, which looks at the word and reads rank 0's
// memory: by the uses of both, and with a fence between what they do and the count.
func TestFarUsesOrderAsTheySay(t *testing.T) {
	for _, x := range []struct {
		counts, looks prim.Use
		fenced        [2]bool
		ordered       bool
	}{
		{prim.Atomic, prim.Atomic, [2]bool{}, true},
		{prim.Releases, prim.Acquires, [2]bool{}, true},
		{prim.Relaxed, prim.Acquires, [2]bool{}, false},
		{prim.Acquires, prim.Acquires, [2]bool{}, false},
		{prim.Releases, prim.Relaxed, [2]bool{}, false},
		{prim.Releases, prim.Releases, [2]bool{}, false},
		{prim.Relaxed, prim.Relaxed, [2]bool{true, true}, true},
		{prim.Relaxed, prim.Relaxed, [2]bool{true, false}, false},
		{prim.Relaxed, prim.Relaxed, [2]bool{false, true}, false},
	} {
		for name, count := range map[string]func(*prim.Context, prim.Word){
			"a signal":      func(c *prim.Context, w prim.Word) { c.Signal(w, prim.Add, 1) },
			"an atomic one": func(c *prim.Context, w prim.Word) { c.FetchAdd(w, 1) },
		} {
			m, w := over(t, 2, prim.Options{Check: true})
			data := []prim.Run{{Addr: w.At(0, 8), Bytes: 8}}
			word := func(use prim.Use) prim.Word { return used(w.At(1, 0), use) }
			run := func(c *prim.Context) error {
				if c.Rank() == 0 {
					c.Touch("store", data, prim.Writes, false)
					if x.fenced[0] {
						c.Fence()
					}
					count(c, word(x.counts))
					return nil
				}
				c.WaitAnywhere(word(x.looks), prim.GE, 1)
				if x.fenced[1] {
					c.Fence()
				}
				c.Gather("load", data, prim.PlainLook, false)
				return nil
			}
			for r := range 2 {
				submit(t, m, prim.Task{Name: "pair", Kernel: run, Workers: []int{r}, Threads: 32, Beside: true})
			}
			if err := m.Run(); (err == nil) != x.ordered {
				t.Errorf("%s, %+v: %v", name, x, err)
			}
		}
	}
}

// TestStoresFollowLooksOnWhichTheyDepend lets rank 0 use rank 1's memory, and rank 1 use it once it has seen, by a look that
// does not hear, that rank 0 has: a store comes after a load then, in this launch or the next one, and a load perhaps before
// a store.
func TestStoresFollowLooksOnWhichTheyDepend(t *testing.T) {
	for _, x := range []struct {
		first, second prim.Use
		ordered       bool
	}{{prim.Reads, prim.Writes, true}, {prim.Writes, prim.Reads, false}} {
		for _, next := range []bool{false, true} {
			m, w := over(t, 2, prim.Options{Check: true})
			data := []prim.Run{{Addr: w.At(1, 8), Bytes: 8}}
			word := func(use prim.Use) prim.Word { return used(w.At(1, 0), use) }
			first := func(c *prim.Context) error {
				if x.first == prim.Reads {
					c.Gather("load", data, prim.PlainLook, false)
				} else {
					c.Scatter("store", data, make([]byte, 8), false)
				}
				c.Fence()
				c.Signal(word(prim.Releases), prim.Add, 1)
				return nil
			}
			second := func(c *prim.Context) error { c.Touch("use", data, x.second, false); return nil }
			wait := func(c *prim.Context) error {
				c.WaitAnywhere(word(prim.Relaxed), prim.GE, 1)
				if next {
					return nil
				}
				return second(c)
			}
			submit(t, m, prim.Task{Name: "first", Kernel: first, Workers: []int{0}, Threads: 32})
			submit(t, m, prim.Task{Name: "wait", Kernel: wait, Workers: []int{1}, Threads: 32})
			if next {
				submit(t, m, prim.Task{Name: "second", Kernel: second, Workers: []int{1}, Threads: 32})
			}
			if err := m.Run(); (err == nil) != x.ordered {
				t.Errorf("%+v, in the next launch: %v, %v", x, next, err)
			}
		}
	}
}

// TestScopes lets programs add to one word, in two blocks of a rank or on two ranks, with the scope that both have.
func TestScopes(t *testing.T) {
	all, block, rank := prim.Scope(255), prim.OfBlock, prim.OfRank
	for _, x := range []struct {
		scope  prim.Scope
		ranks  int
		blocks int
		right  bool
	}{
		{all, 2, 1, true},
		{rank, 2, 1, false},
		{block, 2, 1, false},
		{rank, 1, 2, true},
		{block, 1, 2, false},
		{block, 1, 1, true},
	} {
		m, w := over(t, 2, prim.Options{Check: true})
		word := prim.I64(w.At(0, 0))
		run := func(c *prim.Context) error {
			if x.scope != all {
				c.Narrow("count", word, x.scope)
			}
			if c.Rank() == 0 {
				c.Touch("count", []prim.Run{{Addr: word.Addr, Bytes: 8}}, prim.Atomic, false)
			} else {
				c.FetchAdd(word, 1)
			}
			return nil
		}
		for r := range x.ranks {
			submit(t, m, prim.Task{Name: "count", Kernel: run, Workers: []int{r}, Blocks: x.blocks, Threads: 32, Beside: true})
		}
		if err := m.Run(); (err == nil) != x.right {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// TestDataWithFlags lets rank 0 send words that are data and flag at once, which rank 1 looks at until they have come,
// with an answer between the rounds or without one. Looks at words that have not changed since are of no account.
func TestDataWithFlags(t *testing.T) {
	for _, answers := range []bool{true, false} {
		m, w := over(t, 2, prim.Options{Check: true})
		box, answer := prim.I64(w.At(1, 0)), prim.I64(w.At(0, 0))
		run := func(c *prim.Context) error {
			for round := int64(1); round <= 3; round++ {
				if c.Rank() == 0 {
					c.Signal(box, prim.Set, round)
					if answers {
						c.Wait(answer, prim.GE, round)
					} else {
						c.Pass(10_000_000)
					}
					continue
				}
				look := []prim.Run{{Addr: box.Addr, Bytes: 8}}
				seen := binary.LittleEndian.AppendUint64(nil, uint64(round-1))
				c.Gather("look", look, prim.FlaggedLook, true)
				c.Watch(look, seen, "a flag")
				c.Gather("look", look, prim.FlaggedLook, true)
				if answers {
					c.Signal(answer, prim.Add, 1)
				} else {
					return nil
				}
			}
			return nil
		}
		for r := range 2 {
			submit(t, m, prim.Task{Name: "flagged", Kernel: run, Workers: []int{r}, Threads: 32, Beside: true})
		}
		if err := m.Run(); (err == nil) != answers {
			t.Errorf("answers: %v: %v", answers, err)
		}
	}
}

// TestFencesAreCumulativeForStores lets rank 0 store in rank 2's memory and tell rank 1, which tells rank 2: what threads have
// stored is there then, with a fence before the signal, and what has been put may not be.
func TestFencesAreCumulativeForStores(t *testing.T) {
	for _, x := range []struct{ stores, fenced, right bool }{{true, true, true}, {true, false, false}, {false, true, false}} {
		for seed := range uint64(8) {
			m, w := over(t, 3, prim.Options{Check: true, Fences: true, Reorder: seed > 0, Seed: seed})
			run := func(c *prim.Context) error {
				word := prim.I64(w.At(c.Rank(), 0))
				switch c.Rank() {
				case 0:
					if x.stores {
						c.Scatter("store", []prim.Run{{Addr: w.At(2, 64), Bytes: 8}}, []byte("abcdefgh"), true)
						c.Meet()
					} else {
						c.PutNBI(w.At(2, 64), w.At(0, 64), 8)
					}
					if x.fenced {
						c.Fence()
					}
					c.Signal(word.On(1), prim.Set, 1)
				case 1:
					c.Wait(word, prim.GE, 1)
					c.Signal(word.On(2), prim.Set, 1)
				case 2:
					c.Wait(word, prim.GE, 1)
					c.Touch("load", []prim.Run{{Addr: w.At(2, 64), Bytes: 8}}, prim.Reads, true)
					if got := string(w.Storage(2).Bytes()[64:72]); x.right && got != "abcdefgh" {
						t.Errorf("%+v, seed %d: %q", x, seed, got)
					}
				}
				return nil
			}
			for r := range 3 {
				submit(t, m, prim.Task{Name: "chain", Kernel: run, Workers: []int{r}, Threads: 32, Beside: true})
			}
			if err := m.Run(); (err == nil) != x.right {
				t.Errorf("%+v, seed %d: %v", x, seed, err)
			}
		}
	}
}

// TestARelaxedUseIsNoCauseOfItself lets rank 0 clear a word that both ranks add to, and rank 1 add before anything says that it is
// cleared: that its addition would release is no help.
func TestARelaxedUseIsNoCauseOfItself(t *testing.T) {
	m, w := over(t, 2, prim.Options{Check: true})
	word := used(w.At(0, 0), prim.Relaxed)
	run := func(c *prim.Context) error {
		if c.Rank() == 0 {
			c.FetchAdd(word, 1)
			c.Touch("clear", []prim.Run{{Addr: w.At(0, 0), Bytes: 8}}, prim.Writes, false)
		} else {
			c.Pass(1 << 24)
			c.FetchAdd(word, 1)
		}
		return nil
	}
	for r := range 2 {
		submit(t, m, prim.Task{Name: "adds", Kernel: run, Workers: []int{r}, Threads: 32, Beside: true})
	}
	if err := m.Run(); err == nil || strings.Contains(err.Error(), "is to release") {
		t.Error(err)
	}
}

// TestThreadsFindTheirOwnStores lets a program store in another rank's memory twice, and load what it has stored: its threads find
// that, where these all do it, or have met before one of them does.
func TestThreadsFindTheirOwnStores(t *testing.T) {
	for _, x := range []struct{ alone, met, right bool }{{false, false, true}, {true, true, true}, {true, false, false}} {
		for seed := range uint64(8) {
			m, w := over(t, 2, prim.Options{Check: true, Fences: true, Reorder: seed > 0, Seed: seed})
			places := []prim.Run{{Addr: w.At(1, 64), Bytes: 64}, {Addr: w.At(1, 256), Bytes: 64}}
			run := func(c *prim.Context) error {
				for i := range byte(6) {
					c.Scatter("store", places, bytes.Repeat([]byte{i + 1}, 128), true)
					if x.met {
						c.Meet()
					}
					c.Gather("load", places[1:], prim.PlainLook, !x.alone)
					if got := w.Storage(1).Bytes()[256:320]; x.right && !bytes.Equal(got, bytes.Repeat([]byte{i + 1}, 64)) {
						t.Errorf("%+v, seed %d: %v after store %d", x, seed, got, i+1)
					}
				}
				return nil
			}
			submit(t, m, prim.Task{Name: "own", Kernel: run, Workers: []int{0}, Threads: 32})
			if err := m.Run(); (err == nil) != x.right {
				t.Errorf("%+v, seed %d: %v", x, seed, err)
			}
		}
	}
}

// TestAllOfARankMayLandLater puts with one program and waits in the next one on the same PE, for all of the rank's puts
// or for its own only, before all ranks meet.
func TestAllOfARankMayLandLater(t *testing.T) {
	for _, every := range []bool{true, false} {
		m, w := over(t, 2, prim.Options{Check: true, Fences: true})
		b, err := m.NewBarrier("of all", []int{0, 1}, prim.PhaseBarrier)
		if err != nil {
			t.Fatal(err)
		}
		for r := range 2 {
			stream := &order.Point{}
			put := func(c *prim.Context) error { c.PutNBI(w.At(1-r, 64), w.At(r, 128), 8); return nil }
			wait := func(c *prim.Context) error {
				if every {
					c.QuietAll()
				} else {
					c.Quiet()
				}
				c.Sync(b)
				c.Gather("load", []prim.Run{{Addr: w.At(r, 64), Bytes: 8}}, prim.PlainLook, false)
				return nil
			}
			var first *prim.Job
			tell := func() { stream.Tell(first.Knows()) }
			first = submit(t, m, prim.Task{Name: "put", Kernel: put, Workers: []int{r}, Threads: 32, Known: order.NewPoint(nil), Done: tell})
			submit(t, m, prim.Task{Name: "wait", Kernel: wait, Workers: []int{r}, Threads: 32, Known: stream, After: []*prim.Job{first}})
		}
		var found *prim.FindingsError
		if err := m.Run(); every && err != nil || !every && !errors.As(err, &found) {
			t.Errorf("waits for all of the rank's puts: %v: %v", every, err)
		}
	}
}

// polls is a program of three ranks: ranks 1 and 2 put into rank 0's memory and count, rank 0 looks at the count until it is
// two, and reads both. bound is the count with which its loop would end, too.
func polls(w *prim.Window, bound int64) prim.Kernel {
	word := prim.I64(w.At(0, 0))
	return func(c *prim.Context) error {
		if c.Rank() > 0 {
			c.Put(w.At(0, 64*c.Rank()), w.At(c.Rank(), 256), 8)
			c.Fence()
			c.Signal(word, prim.Add, 1)
			return nil
		}
		look := []prim.Run{{Addr: word.Addr, Bytes: 8}}
		for seen := make([]byte, 8); seen[0] < 2; {
			c.Watch(look, seen, "a count of two")
			c.Gather("look", look, prim.FreshLook, false)
			c.Bring("look", word.Addr, seen, false)
		}
		for _, value := range c.Past(word) {
			if value >= bound {
				c.Suffices(word, value, "a count")
			}
		}
		c.Gather("load", []prim.Run{{Addr: w.At(1, 192), Bytes: 8}}, prim.PlainLook, false) // tells nothing
		c.Gather("load", []prim.Run{{Addr: w.At(0, 64), Bytes: 8}, {Addr: w.At(0, 128), Bytes: 8}}, prim.PlainLook, false)
		return nil
	}
}

// takes is a program of two ranks: rank 0 brings data twice, each time with a number in a word beside them, and rank 1 takes them in a
// loop that ends with any number; it answers, and clears the word before if it clears. apart: the second data are elsewhere.
func takes(w *prim.Window, flagged, clears, apart bool) prim.Kernel {
	word, answer := prim.I64(w.At(1, 0)), prim.I64(w.At(0, 0))
	how := prim.FreshLook
	if flagged {
		how = prim.FlaggedLook
	}
	return func(c *prim.Context) error {
		for call := range int64(2) {
			data := 64
			if apart && call == 1 {
				data = 128
			}
			if c.Rank() == 0 {
				c.Put(w.At(1, data), w.At(0, 256), 8)
				c.Fence()
				c.Signal(word, prim.Set, call+1)
				c.Wait(answer, prim.GE, call+1)
				continue
			}
			look := []prim.Run{{Addr: word.Addr, Bytes: 8}}
			for seen := make([]byte, 8); seen[0] != byte(call+1); {
				c.Watch(look, seen, "a number")
				c.Gather("look", look, how, false)
				copy(seen, w.Storage(1).Bytes())
			}
			for _, value := range c.Past(word) {
				switch {
				case value == 0:
				case flagged:
					c.Outdated(word, value, "no number")
				default:
					c.Repeats(word, value, "no number")
				}
			}
			c.Gather("load", []prim.Run{{Addr: w.At(1, data), Bytes: 8}}, prim.PlainLook, false)
			if clears {
				c.Signal(word, prim.Set, 0)
				c.Quiet()
			}
			c.Signal(answer, prim.Add, 1)
		}
		return nil
	}
}

// TestLoopsThatAnEarlierCallEnds finds a loop that the number of the call before ends, where the program reads what that told again, or
// has taken data with the number.
func TestLoopsThatAnEarlierCallEnds(t *testing.T) {
	for _, x := range []struct{ flagged, clears, apart, right bool }{
		{false, false, false, false},
		{false, true, false, true},
		{false, false, true, true},
		{true, false, true, false},
		{true, true, true, true},
	} {
		m, w := over(t, 2, prim.Options{Check: true})
		for r := range 2 {
			submit(t, m, prim.Task{Name: "takes", Kernel: takes(w, x.flagged, x.clears, x.apart), Workers: []int{r}, Threads: 32, Beside: true})
		}
		if err := m.Run(); (err == nil) != x.right || err != nil && !strings.Contains(err.Error(), "the loop (no number) ends also") {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// TestLoopsThatWaitForTooLittle finds a loop that a signal less would have ended, if what that tells is used.
func TestLoopsThatWaitForTooLittle(t *testing.T) {
	for bound := range int64(3) {
		m, w := over(t, 3, prim.Options{Check: true})
		for r := range 3 {
			submit(t, m, prim.Task{Name: "polls", Kernel: polls(w, bound+1), Workers: []int{r}, Threads: 32})
		}
		err := m.Run()
		if bound > 0 && err != nil {
			t.Errorf("a loop that waits for %d: %v", bound+1, err)
		}
		if bound == 0 {
			f := wantKind(t, err, prim.Miscounted)
			if f != nil && !strings.Contains(f.Missing, "the loop (a count) ends also when the word is 1, as the signal of rank") {
				t.Error(f)
			}
		}
	}
}

// TestTwoStoresOfDataAndFlag sets data and their flag one after the other, and takes both by one load.
func TestTwoStoresOfDataAndFlag(t *testing.T) {
	for _, fences := range []bool{true, false} {
		m, w := over(t, 2, prim.Options{Check: true, Fences: true})
		data, flag := prim.I32(w.At(1, 64)), prim.I32(w.At(1, 68))
		data.Use, flag.Use = prim.Relaxed, prim.Relaxed
		both := []prim.Run{{Addr: data.Addr, Bytes: 8}}
		run := func(c *prim.Context) error {
			if c.Rank() == 0 {
				c.Signal(data, prim.Set, 7)
				if fences {
					c.Fence()
				}
				c.Signal(flag, prim.Set, 1)
				return nil
			}
			c.Watch([]prim.Run{{Addr: flag.Addr, Bytes: 4}}, make([]byte, 4), "a flag")
			c.Gather("load", both, prim.FlaggedLook, false)
			return nil
		}
		for r := range 2 {
			submit(t, m, prim.Task{Name: "flagged", Kernel: run, Workers: []int{r}, Threads: 32})
		}
		err := m.Run()
		if fences && err != nil {
			t.Error(err)
		}
		if !fences {
			f := wantKind(t, err, prim.SignalOvertakes)
			if f != nil && !strings.Contains(f.Missing, "two stores have brought them") {
				t.Error(f)
			}
		}
	}
}

// counts is a program that looks at a word and stores one more there, as ld and st do it. Where it has a lock, nobody else
// does so meanwhile.
func counts(w *prim.Window, locked bool) prim.Kernel {
	word, lock := prim.I64(w.At(0, 0)), prim.I64(w.At(0, 8))
	return func(c *prim.Context) error {
		for locked && c.CompareSwap(lock, 0, 1) != 0 {
		}
		seen := c.Fetch(word)
		c.Derives(word)
		c.Exchange(word, seen+1)
		if locked {
			c.Exchange(lock, 0)
		}
		return nil
	}
}

// TestAdditionsThatGetLost finds looks and stores of two ranks that nothing keeps apart, though each is atomic.
func TestAdditionsThatGetLost(t *testing.T) {
	for _, locked := range []bool{true, false} {
		m, w := over(t, 2, prim.Options{Check: true})
		for r := range 2 {
			submit(t, m, prim.Task{Name: "counts", Kernel: counts(w, locked), Workers: []int{r}, Threads: 32})
		}
		err := m.Run()
		if locked && err != nil {
			t.Errorf("under a lock: %v", err)
		}
		if !locked {
			f := wantKind(t, err, prim.UnorderedWrites)
			if f != nil && !strings.Contains(f.Missing, "what it has made of an earlier look at the word") {
				t.Error(f)
			}
		}
	}
}

// TestWhatSomeThreadsHear lets one thread wait for data that all threads load then, with a barrier between the two and
// without.
func TestWhatSomeThreadsHear(t *testing.T) {
	for _, meets := range []bool{true, false} {
		m, w := over(t, 2, prim.Options{Check: true})
		word := prim.I64(w.At(1, 0))
		run := func(c *prim.Context) error {
			if c.Rank() == 0 {
				c.Put(w.At(1, 64), w.At(0, 64), 8)
				c.Fence()
				c.Signal(word, prim.Add, 1)
				return nil
			}
			c.Some(true)
			c.Wait(word, prim.GE, 1)
			c.Some(false)
			if meets {
				c.Meet()
			}
			c.Gather("load", []prim.Run{{Addr: w.At(1, 64), Bytes: 8}}, prim.PlainLook, true)
			return nil
		}
		for r := range 2 {
			submit(t, m, prim.Task{Name: "hears", Kernel: run, Workers: []int{r}, Threads: 32})
		}
		err := m.Run()
		if meets && err != nil {
			t.Error(err)
		}
		if !meets {
			f := wantKind(t, err, prim.UnorderedRead)
			if f != nil && !strings.Contains(f.Missing, "a __syncthreads() is missing") {
				t.Error(f)
			}
		}
	}
}

// TestFencesAfterALookOfSomeThreads lets one thread look at a word, relaxed, and all threads load once they have met: the fence
// is to be before they meet, or all of them have one; also where one of them has had its own before.
func TestFencesAfterALookOfSomeThreads(t *testing.T) {
	fence := func(some bool) func(*prim.Context) {
		return func(c *prim.Context) { c.Some(some); c.Fence(); c.Some(false) }
	}
	meet, one, all := (*prim.Context).Meet, fence(true), fence(false)
	cases := []struct {
		after []func(*prim.Context)
		right bool
	}{
		{[]func(*prim.Context){one, meet}, true},
		{[]func(*prim.Context){meet, all}, true},
		{[]func(*prim.Context){meet, one, all}, true},
		{[]func(*prim.Context){meet, one, meet}, true},
		{[]func(*prim.Context){meet}, false},
		{[]func(*prim.Context){meet, one}, false},
		{[]func(*prim.Context){all}, false},
		{[]func(*prim.Context){one, all}, false},
	}
	for i, x := range cases {
		m, w := over(t, 2, prim.Options{Check: true})
		word := prim.Run{Addr: w.At(1, 0), Bytes: 8}
		run := func(c *prim.Context) error {
			if c.Rank() == 0 {
				c.Put(w.At(1, 64), w.At(0, 64), 8)
				c.Fence()
				c.Signal(prim.I64(word.Addr), prim.Add, 1)
				return nil
			}
			c.Watch([]prim.Run{word}, make([]byte, 8), "a test")
			c.Some(true)
			c.Gather("look", []prim.Run{word}, prim.RelaxedLook, false)
			c.Some(false)
			for _, f := range x.after {
				f(c)
			}
			c.Gather("load", []prim.Run{{Addr: w.At(1, 64), Bytes: 8}}, prim.PlainLook, true)
			return nil
		}
		for r := range 2 {
			submit(t, m, prim.Task{Name: "looks", Kernel: run, Workers: []int{r}, Threads: 32})
		}
		if err := m.Run(); (err == nil) != x.right {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

// TestAFenceBeforeAnOwnWord puts data into the memory of a program's own rank, and sets a word there in place: another program
// that waits for the word finds the data where the first one has waited for what it had sent there.
func TestAFenceBeforeAnOwnWord(t *testing.T) {
	for _, waits := range []bool{true, false} {
		m, w := over(t, 1, prim.Options{Check: true, Fences: true})
		word := prim.I64(w.At(0, 0))
		submit(t, m, prim.Task{Name: "own", Workers: []int{0}, Blocks: 2, Threads: 32, Kernel: func(c *prim.Context) error {
			if c.Block() == 1 {
				c.Wait(word, prim.EQ, 1)
				c.Bring("load", w.At(0, 64), make([]byte, 64), false)
				return nil
			}
			c.PutNBI(w.At(0, 64), w.At(0, 128), 64)
			c.Fence()
			if waits {
				c.WaitOwn()
			}
			w.Storage(0).Bytes()[0] = 1
			c.Touch("release", []prim.Run{{Addr: word.Addr, Bytes: 8}}, prim.Releases, false)
			return nil
		}})
		if err := m.Run(); (err == nil) != waits {
			t.Errorf("waits %v: %v", waits, err)
		}
	}
}

// Programs that store because of what they have found lose a value where another one could decide at the same time: where one
// would have decided so for an earlier value too, or does not see the other one's, and the two store different ones.
func TestDecisionsByLooks(t *testing.T) {
	for _, x := range []struct {
		name   string
		values [2]int64
		waits  bool // the second one, for the first one's store
		alike  bool
		wrong  bool
	}{
		{"a maximum", [2]int64{3, 5}, true, true, true},
		{"a turn", [2]int64{3, 5}, true, false, false},
		{"both look before either stores", [2]int64{3, 5}, false, false, true},
		{"the same value", [2]int64{3, 3}, false, true, false},
	} {
		m, w := over(t, 1, prim.Options{Check: true})
		word := prim.I64(w.At(0, 0))
		submit(t, m, prim.Task{Name: "decide", Workers: []int{0}, Blocks: 2, Threads: 32, Kernel: func(c *prim.Context) error {
			look := []prim.Run{{Addr: word.Addr, Bytes: 8}}
			if x.waits && c.Block() == 1 {
				c.Watch(look, make([]byte, 8), "a turn")
			}
			c.Gather("look", look, prim.FreshLook, false)
			if !x.waits {
				c.Pass(1_000_000)
			}
			c.Decides(word, x.alike)
			w.Storage(0).Bytes()[0] = byte(x.values[c.Block()])
			c.Touch("store", look, prim.Releases, false)
			return nil
		}})
		err := m.Run()
		if f := wantIf(t, err, x.wrong); f != nil && !strings.Contains(f.Missing, "an atomic maximum, or a compare and swap, is missing") {
			t.Errorf("%s: %v", x.name, f)
		}
	}
}

// wantIf looks for unordered writes, or for no finding.
func wantIf(t *testing.T, err error, wrong bool) *prim.Finding {
	t.Helper()
	if wrong {
		return wantKind(t, err, prim.UnorderedWrites)
	}
	if err != nil {
		t.Error(err)
	}
	return nil
}

// TestAThreadTellsOfALoadOfAll lets all threads load a peer's memory, and one of them tell the peer that it is over, with a
// barrier between the two and without.
func TestAThreadTellsOfALoadOfAll(t *testing.T) {
	for _, meets := range []bool{true, false} {
		m, w := over(t, 2, prim.Options{Check: true})
		run := func(c *prim.Context) error {
			word := prim.I64(w.At(0, 0))
			if c.Rank() == 0 {
				c.Wait(word, prim.GE, 1)
				c.Write("store", w.At(0, 64), make([]byte, 8), true)
				return nil
			}
			c.Gather("load", []prim.Run{{Addr: w.At(0, 64), Bytes: 8}}, prim.PlainLook, true)
			if meets {
				c.Meet()
			}
			c.Signal(word, prim.Add, 1)
			return nil
		}
		for r := range 2 {
			submit(t, m, prim.Task{Name: "tells", Kernel: run, Workers: []int{r}, Threads: 32})
		}
		if err := m.Run(); meets && err != nil {
			t.Error(err)
		} else if !meets {
			f := wantKind(t, err, prim.UnorderedRead)
			if f != nil && !strings.Contains(f.Missing, "so that it comes after what all threads have read") {
				t.Error(f)
			}
		}
	}
}

// TestALookAtDataThatIsPut lets a thread look at a word of data that a peer puts, which nothing orders.
func TestALookAtDataThatIsPut(t *testing.T) {
	m, w := over(t, 2, prim.Options{Check: true})
	run := func(c *prim.Context) error {
		if c.Rank() == 0 {
			c.Put(w.At(1, 64), w.At(0, 64), 64)
			return nil
		}
		c.Gather("ld", []prim.Run{{Addr: w.At(1, 64), Bytes: 8}}, prim.FreshLook, false)
		return nil
	}
	for r := range 2 {
		submit(t, m, prim.Task{Name: "looks", Kernel: run, Workers: []int{r}, Threads: 32})
	}
	f := wantKind(t, m.Run(), prim.UnorderedRead)
	if f != nil && !strings.Contains(f.Missing, "no signal, barrier or event leads from") {
		t.Error(f)
	}
}

// TestAnAddressBetweenWindows names the window of the rank that ends before it, and the nearer one that begins after it.
func TestAnAddressBetweenWindows(t *testing.T) {
	m, _ := over(t, 1, prim.Options{})
	first, _ := m.Allocate("rows", []int{0}, 64)
	second, err := m.Allocate("index", []int{0}, 64)
	if err != nil {
		t.Fatal(err)
	}
	at := second.At(0, 0) - 24
	submit(t, m, prim.Task{Name: "reads", Workers: []int{0}, Threads: 32, Kernel: func(c *prim.Context) error {
		c.Gather("load", []prim.Run{{Addr: at, Bytes: 8}}, prim.PlainLook, false)
		return nil
	}})
	want := fmt.Sprintf(`; 24 bytes before the beginning of window "index" of rank 0, and %d beyond the end of window "rows", which has 64`, at-first.At(0, 0)-64)
	if err := m.Run(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
