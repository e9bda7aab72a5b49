package prim_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// driver takes the turns of a machine: programs are lists of steps, and computations functions.
type driver struct {
	tb       testing.TB
	programs map[*prim.Context][]func(c *prim.Context)
	results  map[*prim.Computation]func()
	make     func(c *prim.Context) []func(c *prim.Context)
}

func drive(tb testing.TB, m *prim.Machine, make func(c *prim.Context, d *driver) []func(c *prim.Context)) error {
	tb.Helper()
	d := &driver{tb: tb, programs: map[*prim.Context][]func(c *prim.Context){}, results: map[*prim.Computation]func(){}}
	d.make = func(c *prim.Context) []func(c *prim.Context) { return make(c, d) }
	for {
		t, over, err := m.Advance(100)
		if over || err != nil {
			return m.Settle(err)
		}
		d.take(t)
	}
}

func (d *driver) take(t prim.Turn) {
	switch c := t.Program; {
	case t.Due != nil:
		d.results[t.Due]()
		t.Due.Done()
	case c != nil:
		steps, begun := d.programs[c]
		if !begun {
			steps = d.make(c)
		}
		for len(steps) > 0 && !c.Blocked() {
			steps[0](c)
			steps = steps[1:]
		}
		d.programs[c] = steps
		if len(steps) == 0 && !c.Blocked() {
			c.End(nil)
		}
	}
}

// drained ends a program whose steps came before: it has to see its pipes run empty, and then to go on.
func drained(steps ...func(c *prim.Context)) []func(c *prim.Context) {
	return append(steps, func(c *prim.Context) { c.PipeBarrier(prim.AllPipes) }, func(*prim.Context) {})
}

func TestComputationsOfTheDriver(t *testing.T) {
	m := machine(t, 1, prim.Options{Check: true})
	w := window(t, m, 1024)
	write(t, m, w.At(0, 0), []byte{1, 2, 3, 4})
	if _, err := m.Submit(prim.Task{Name: "negate", Workers: []int{0}, Interlock: true}); err != nil {
		t.Fatal(err)
	}
	scratch := make([]byte, int(m.Topology.Compute().Scratch))
	due := 0
	err := drive(t, m, func(c *prim.Context, d *driver) []func(c *prim.Context) {
		if err := c.UseScratch(scratch); err != nil {
			t.Fatal(err)
		}
		return drained(
			func(c *prim.Context) { c.Load(c.Tile(0, 4), w.At(0, 0)) },
			func(c *prim.Context) {
				x := c.Compute("negate", prim.Effort{Pipe: prim.Vector}, c.Tile(4, 4), []prim.Tile{c.Tile(0, 4)})
				if scratch[0] != 0 {
					t.Error("the load is over at once")
				}
				d.results[x] = func() {
					due++
					for i := range 4 {
						scratch[4+i] = -scratch[i]
					}
				}
			},
			func(c *prim.Context) { c.Store(w.At(0, 512), c.Tile(4, 4)) },
		)
	})
	if got := read(t, m, w.At(0, 512), 4); err != nil || due != 1 || !bytes.Equal(got, []byte{255, 254, 253, 252}) {
		t.Errorf("%v; %d computations, result %v", err, due, got)
	}
}

// The matrix pipe takes the operations of a computation over the PE's peak rate for the dtype.
func TestEffortOnTheMatrixPipe(t *testing.T) {
	var times []sim.Time
	for _, e := range []prim.Effort{
		{Pipe: prim.Matrix, Ops: 0, DType: dtype.F32}, {Pipe: prim.Matrix, Ops: 1 << 20, DType: dtype.F32},
		{Pipe: prim.Matrix, Ops: 1 << 20, DType: dtype.F16}, {Pipe: prim.Matrix, Ops: 1 << 20, DType: dtype.F8E4M3},
		{Pipe: prim.Matrix, Ops: 1 << 20, DType: dtype.F64},
	} {
		m := machine(t, 1, prim.Options{})
		if _, err := m.Submit(prim.Task{Name: "multiply", Workers: []int{0}}); err != nil {
			t.Fatal(err)
		}
		err := drive(t, m, func(c *prim.Context, d *driver) []func(c *prim.Context) {
			return drained(func(c *prim.Context) { d.results[c.Compute("multiply", e, c.Tile(0, 4), nil)] = func() {} })
		})
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, m.Now())
	}
	k := machine(t, 1, prim.Options{}).Topology.Compute()
	for i, rate := range []int64{k.MatrixF32, k.MatrixF16, k.MatrixF8, k.VectorF32} {
		if want := sim.Time(float64(1<<20) / float64(rate) * float64(sim.Second)); times[i+1]-times[0] != want {
			t.Errorf("effort %d: %v, want %v", i, times[i+1]-times[0], want)
		}
	}
}

func TestMisuseOfComputations(t *testing.T) {
	for _, e := range []prim.Effort{{Pipe: prim.Load}, {Pipe: prim.Scalar}, {Pipe: prim.Vector, Ops: -1}} {
		m := machine(t, 1, prim.Options{})
		m.Launch("wrong", func(c *prim.Context) error { c.Compute("x", e, c.Tile(0, 4), nil); return nil })
		wantText(t, m.Run(), "computations are the vector or the matrix pipe's")
	}
	m := machine(t, 1, prim.Options{})
	m.Launch("computes", func(c *prim.Context) error {
		c.Compute("x", prim.Effort{Pipe: prim.Vector}, c.Tile(0, 4), nil)
		return nil
	})
	wantText(t, m.Run(), "its driver takes turns")
	m = machine(t, 1, prim.Options{})
	m.Launch("scratch", func(c *prim.Context) error { return c.UseScratch(make([]byte, 3)) })
	wantText(t, m.Run(), "3 bytes for a scratch memory of")
}

// A chain through three pipes, again and again through the same tiles: without flags it needs the interlock.
func chain(t *testing.T, interlock bool) (*prim.Machine, *prim.Window, error) {
	m := machine(t, 1, prim.Options{Check: true})
	w := window(t, m, 8192)
	write(t, m, w.At(0, 0), bytes.Repeat([]byte{1}, 8192))
	_, err := m.Submit(prim.Task{Name: "chain", Workers: []int{0}, Interlock: interlock, Kernel: func(c *prim.Context) error {
		a, b := c.Tile(0, 512), c.Tile(512, 512)
		for i := range 8 {
			c.Load(a, w.At(0, i*1024))
			c.Combine(tensor.Sum, dtype.U8, b, a, a)
			c.Store(w.At(0, i*1024+512), b)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return m, w, m.Run()
}

func TestInterlock(t *testing.T) {
	m, w, err := chain(t, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if got := read(t, m, w.At(0, i*1024+512), 512); !bytes.Equal(got, bytes.Repeat([]byte{2}, 512)) {
			t.Errorf("part %d: %v…", i, got[:4])
		}
	}
	var races *prim.FindingsError
	if _, _, err := chain(t, false); !errors.As(err, &races) {
		t.Errorf("without interlock: %v, want findings", err)
	}
}

// A program that uses its scratch memory again and again, through three pipes and for puts, after all that used it before
// was over: nothing of it is a race. Between two uses it may have waited for something else, or not.
func TestScratchMemoryIsUsedAgain(t *testing.T) {
	for _, polls := range []int{0, 1, 50} {
		m := machine(t, 2, prim.Options{Check: true})
		w := window(t, m, 4096)
		write(t, m, w.At(0, 0), make([]byte, 4096))
		write(t, m, w.At(1, 0), make([]byte, 4096))
		if _, err := m.Submit(prim.Task{Name: "again", Workers: []int{0}, Interlock: true, Kernel: func(c *prim.Context) error {
			for i := range 40 {
				a, b := c.Tile(i%3*64, 64), c.Tile((i+1)%3*64+32, 64)
				c.Load(a, w.At(0, i*64))
				for range polls {
					c.Test(prim.I32(w.At(0, 2816)), prim.EQ, 1)
				}
				c.Combine(tensor.Sum, dtype.F32, b, a, a)
				c.Store(w.At(1, i*64), b)
				if i%4 == 0 {
					c.PipeBarrier(prim.AllPipes)
					c.PutNBI(w.At(1, 3072+i*16), b.Addr, 64)
				}
			}
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		if err := m.Run(); err != nil {
			t.Errorf("%d polls: %v", polls, err)
		}
	}
}

// Without the interlock, the tile of a put that is under way must not be written.
func TestTilesOfPutsAreHeldByTheInterlockOnly(t *testing.T) {
	for _, interlock := range []bool{false, true} {
		m := machine(t, 2, prim.Options{Check: true})
		w := window(t, m, 512)
		if _, err := m.Submit(prim.Task{Name: "lend", Workers: []int{0}, Interlock: interlock, Kernel: func(c *prim.Context) error {
			a := c.Tile(0, 64)
			c.Fill(a, 7)
			c.PipeBarrier(prim.AllPipes)
			c.PutNBI(w.At(1, 0), a.Addr, 64)
			c.Fill(a, 8)
			c.PipeBarrier(prim.AllPipes)
			c.PutNBI(w.At(1, 64), a.Addr, 64)
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		err := m.Run()
		if races := errors.As(err, new(*prim.FindingsError)); races == interlock {
			t.Errorf("interlock %v: %v", interlock, err)
		}
		got := read(t, m, w.At(1, 0), 128)
		if got[0] != 7 || got[63] != 7 || got[64] != 8 || got[127] != 8 {
			t.Errorf("interlock %v: %v", interlock, got)
		}
	}
}

// With the interlock, instructions that share no bytes still overlap: of the sums, only the last one is not hidden behind
// a load.
func TestInterlockLetsOthersPass(t *testing.T) {
	var m *prim.Machine
	run := func(tiles int) sim.Time {
		m = machine(t, 1, prim.Options{})
		w := window(t, m, 1<<20)
		if _, err := m.Submit(prim.Task{Name: "k", Workers: []int{0}, Interlock: true, Kernel: func(c *prim.Context) error {
			for i := range 16 {
				tile := c.Tile(i%tiles*32768, 32768)
				c.Load(tile, w.At(0, i*32768))
				c.Combine(tensor.Sum, dtype.F32, tile, tile, tile)
			}
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		if err := m.Run(); err != nil {
			t.Fatal(err)
		}
		return m.Now()
	}
	if one, many, sum := run(1), run(8), m.Network.ReduceTime(32768); one-many != 15*sum {
		t.Errorf("with one tile %v, with eight %v: want %v less", one, many, 15*sum)
	}
}

func TestCancel(t *testing.T) {
	m := machine(t, 2, prim.Options{Check: true})
	w := window(t, m, 1024)
	for r := range 2 {
		write(t, m, w.At(r, 8), make([]byte, 1016))
	}
	var order []string
	stuck, err := m.Submit(prim.Task{Name: "stuck", Workers: []int{0}, Blocks: 2, Kernel: func(c *prim.Context) error {
		c.Load(c.Tile(0, 8), w.At(1, 8)) // lands later
		c.WaitFlag(prim.Vector, prim.Load, 1)
		c.Wait(prim.I64(w.At(0, 0)), prim.GE, 1)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	next := func(name string) {
		_, err := m.Submit(prim.Task{Name: name, Workers: []int{0}, Kernel: func(c *prim.Context) error {
			order = append(order, name)
			c.Load(c.Tile(0, 8), w.At(0, 512))
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	next("after")
	for range stuck.Programs() {
		turn, _, err := m.Advance(1)
		if err != nil || !turn.Program.Resume() {
			t.Fatal(turn, err)
		}
	}
	stuck.Cancel()
	stuck.Cancel()
	if err := m.Run(); err != nil || !stuck.Ended() || !slices.Equal(order, []string{"after"}) {
		t.Errorf("%v, ended %v, order %v", err, stuck.Ended(), order)
	}
}

func TestFailedInsteadOfTheEndOfTheRun(t *testing.T) {
	m := machine(t, 2, prim.Options{})
	var told error
	ouch := errors.New("ouch")
	var j *prim.Job
	j, err := m.Submit(prim.Task{
		Name: "fails", Workers: []int{0}, Kernel: func(*prim.Context) error { return ouch },
		Failed: func(_ *prim.Context, err error) { told = err; j.Cancel() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(); err != nil || !errors.Is(told, ouch) {
		t.Errorf("%v, told %v", err, told)
	}
}

// What had ended before is over for a task if it is known; what is not known of is not, also of the own rank.
func TestKnown(t *testing.T) {
	for _, c := range []struct {
		name  string
		taker int
		known func(first *prim.Job) *order.Point
		races bool
	}{
		{"nothing", 1, func(*prim.Job) *order.Point { return order.NewPoint(nil).Seal() }, true},
		{"what it did", 1, func(first *prim.Job) *order.Point { return order.NewPoint(first.Knows()).Seal() }, false},
		{"all before on its worker", 1, func(*prim.Job) *order.Point { return nil }, true},
		{"nothing, on its own rank", 0, func(*prim.Job) *order.Point { return order.NewPoint(nil).Seal() }, true},
		{"what it did, on its own rank", 0, func(first *prim.Job) *order.Point { return order.NewPoint(first.Knows()).Seal() }, false},
		{"all before on its own rank", 0, func(*prim.Job) *order.Point { return nil }, false},
	} {
		m := machine(t, 2, prim.Options{Check: true})
		w := window(t, m, 1024)
		write(t, m, w.At(0, 0), []byte("hello"))
		write(t, m, w.At(1, 0), []byte("world"))
		first, err := m.Submit(prim.Task{Name: "give", Workers: []int{0}, Kernel: func(c *prim.Context) error {
			c.Put(w.At(1, 0), w.At(0, 0), 5)
			c.Quiet()
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		for !first.Ended() {
			if turn, _, err := m.Advance(1); err != nil || turn.Program != nil && !turn.Program.Resume() {
				t.Fatal(turn, err)
			}
		}
		if _, err := m.Submit(prim.Task{Name: "take", Workers: []int{c.taker}, Known: c.known(first), Kernel: func(k *prim.Context) error {
			k.Load(k.Tile(0, 5), w.At(1, 0))
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		var races *prim.FindingsError
		if err := m.Run(); errors.As(err, &races) != c.races {
			t.Errorf("%s: %v, want races: %v", c.name, err, c.races)
		}
	}
}

// A host's deeds are in the order that is known of, with those of programs and of other hosts.
func TestDeedsOfHosts(t *testing.T) {
	for _, waits := range []bool{false, true} {
		var lanes order.Lanes
		m, host := machine(t, 2, prim.Options{Check: true}), lanes.NewLine()
		w := window(t, m, 64)
		give, err := m.Submit(prim.Task{Name: "give", Workers: []int{0}, Known: host.Here(), Kernel: func(c *prim.Context) error {
			c.Put(w.At(1, 0), w.At(0, 32), 8)
			c.Quiet()
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		for !give.Ended() {
			if turn, _, err := m.Advance(1); err != nil || turn.Program != nil && !turn.Program.Resume() {
				t.Fatal(turn, err)
			}
		}
		if waits {
			host.Learn(order.NewPoint(give.Knows()).Seal())
		}
		at := host.Advance()
		w.Look(1, 4, 12, true, &prim.Deed{What: "fill_", Site: "train.py:9", Rank: 1, At: at, Known: host.Here().Clock()})
		err = m.News()
		if waits {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantText(t, err, "unordered writes", "put by kernel \"give\" on rank 0", "fill_ by rank 1 at train.py:9, bytes 4 to 12")
	}
}

func TestAttachAll(t *testing.T) {
	m := machine(t, 3, prim.Options{Check: true})
	data := [][]byte{[]byte("abcd"), []byte("efgh")}
	w, err := m.AttachAll("both", []int{2, 0}, data, true)
	if err != nil {
		t.Fatal(err)
	}
	if w.At(2, 1).On(0) != w.At(0, 1) || w.Has(1) || string(read(t, m, w.At(2, 0), 4)) != "abcd" {
		t.Error("the window is not where it should be")
	}
	write(t, m, w.At(0, 0), []byte("xy"))
	if string(data[1]) != "xygh" {
		t.Errorf("the bytes are %q: a copy was attached", data[1])
	}
	for _, bad := range []struct {
		ranks []int
		data  [][]byte
	}{
		{[]int{0, 3}, data}, {[]int{0, 0}, data}, {nil, nil}, {[]int{0, 1}, [][]byte{{1}, {1, 2}}}, {[]int{0}, [][]byte{{}}},
	} {
		if _, err := m.AttachAll("bad", bad.ranks, bad.data, true); err == nil {
			t.Errorf("%v, %v: no error", bad.ranks, bad.data)
		}
	}
}

// What is under way to a window that is forgotten is reported; its addresses are of no window, and others stay theirs.
func TestForgottenWindows(t *testing.T) {
	m := machine(t, 2, prim.Options{Check: true})
	before, w, after := window(t, m, 512), window(t, m, 512), window(t, m, 512)
	write(t, m, before.At(0, 0), []byte("hello"))
	m.Launch("late", func(c *prim.Context) error {
		if c.Rank() == 0 {
			c.Put(w.At(1, 0), before.At(0, 0), 5)
			c.Put(after.At(1, 0), before.At(0, 0), 5)
			w.Forget()
			w.Forget()
			c.Quiet()
		}
		return nil
	})
	wantKind(t, m.Run(), prim.FreedWindow)
	if _, err := m.Read(w.At(1, 0), 1); err == nil {
		t.Error("the window can still be read")
	}
	if got := read(t, m, after.At(1, 0), 5); string(got) != "hello" {
		t.Errorf("the window after it has %q", got)
	}
}
