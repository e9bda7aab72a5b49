package prim_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// one runs a kernel on rank 0 of a lab.
func one(t *testing.T, x *lab, k func(c *prim.Context)) error {
	t.Helper()
	if _, err := x.Submit(prim.Task{Name: "one", Workers: []int{0}, Kernel: func(c *prim.Context) error { k(c); return nil }}); err != nil {
		t.Fatal(err)
	}
	return x.Run()
}

func TestAtomics(t *testing.T) {
	x := newLab(t, 2, prim.Options{Check: true})
	var got []int64
	err := one(t, x, func(c *prim.Context) {
		w, wide := x.word(1, 3), prim.I64(x.words.At(1, 64))
		got = append(got, c.FetchAdd(w, 5), c.FetchAdd(w, -7), c.Exchange(w, math.MaxInt32), c.FetchAdd(w, 1))
		got = append(got, c.CompareSwap(w, 1, 2), c.CompareSwap(w, math.MinInt32, 9), c.Fetch(w))
		c.Signal(wide, prim.Set, math.MinInt64)
		c.Signal(wide, prim.Add, -1)
		got = append(got, c.Fetch(wide))
	})
	want := []int64{0, 5, -2, math.MaxInt32, math.MinInt32, math.MinInt32, 9, math.MaxInt64}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
}

func TestFloatsAreAddedByTheirBits(t *testing.T) {
	x := newLab(t, 2, prim.Options{Check: true})
	var got []float64
	err := one(t, x, func(c *prim.Context) {
		w, wide := x.word(1, 3), prim.I64(x.words.At(1, 64))
		c.FetchAddFloat(w, int64(math.Float32bits(1.5)))
		c.FetchAddFloat(wide, int64(math.Float64bits(-1e300)))
		got = append(got, float64(math.Float32frombits(uint32(c.FetchAddFloat(w, int64(math.Float32bits(-4)))))))
		got = append(got, float64(math.Float32frombits(uint32(c.Fetch(w)))), math.Float64frombits(uint64(c.Fetch(wide))))
	})
	if want := []float64{1.5, -2.5, -1e300}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
}

// Sixteen ranks bump one counter; each sees a different value.
func TestFetchAddGivesEachItsOwn(t *testing.T) {
	for seed := range uint64(4) {
		x := newLab(t, 16, prim.Options{Check: true, Reorder: true, Seed: seed})
		var got []int64
		x.Launch("count", func(c *prim.Context) error { got = append(got, c.FetchAdd(x.word(3, 0), 1)); return nil })
		if err := x.Run(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		for i, v := range got {
			if v != int64(i) {
				t.Fatalf("seed %d: %v", seed, got)
			}
		}
	}
}

func TestComparisons(t *testing.T) {
	holds := map[prim.Cmp][3]bool{ // 1, 2 and 3 against 2
		prim.EQ: {false, true, false}, prim.NE: {true, false, true}, prim.GT: {false, false, true},
		prim.GE: {false, true, true}, prim.LT: {true, false, false}, prim.LE: {true, true, false},
	}
	for cmp, want := range holds {
		for i := range 3 {
			x := newLab(t, 2, prim.Options{})
			var test bool
			x.Launch("wait", func(c *prim.Context) error {
				if c.Rank() == 0 {
					c.Signal(x.word(1, 0), prim.Set, int64(i+1))
					c.Signal(x.word(1, 1), prim.Set, 1)
					return nil
				}
				c.Wait(x.word(1, 1), prim.EQ, 1)
				test = c.Test(x.word(1, 0), cmp, 2)
				c.Wait(x.word(1, 0), cmp, 2)
				return nil
			})
			err := x.Run()
			if test != want[i] || (err == nil) != want[i] {
				t.Errorf("%d %v 2: test %v, run %v, want %v", i+1, cmp, test, err, want[i])
			}
			if !want[i] {
				wantDeadlock(t, err, fmt.Sprintf("%v 2; it is %d", cmp, i+1), `kernel "wait" on rank 1 at operation_test.go:`)
			}
		}
	}
}

// A big put and then small ones: the network delivers the small ones first, and they land last.
func TestDeliveryIsInOrder(t *testing.T) {
	x := newLab(t, 2, prim.Options{})
	big, err := x.Allocate("big", all(2), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	x.Launch("order", func(c *prim.Context) error {
		if c.Rank() == 0 {
			c.PutNBI(big.At(1, 0), big.At(0, 0), 1<<20)
			c.PutNBI(big.At(1, 0), x.at(0, 0), 1)
			c.Signal(x.word(1, 0), prim.Set, 1)
			return nil
		}
		c.Wait(x.word(1, 0), prim.EQ, 1)
		return nil
	})
	if err := x.Run(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, x.Machine, big.At(1, 0), 1)[0]; got != 1 {
		t.Error("the small put landed before the big one")
	}
}

// What a signal and a put take is what the network says.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(x *lab, c *prim.Context)
		want func(x *lab) sim.Time
	}{
		{"signal", func(x *lab, c *prim.Context) { c.Signal(x.word(1, 0), prim.Add, 1) },
			func(x *lab) sim.Time { return x.Network.Uncontended(x.Network.Path(x.PEs[0], x.PEs[1]), 8) }},
		{"put with signal", func(x *lab, c *prim.Context) {
			c.PutSignal(x.at(1, 0), x.at(0, 0), 4000, x.word(1, 0), prim.Add, 1)
		},
			func(x *lab) sim.Time {
				return x.Network.Uncontended(x.Network.Path(x.PEs[0], x.PEs[1]), 4008) + sim.Time(x.Topology.DMA().Setup)
			}},
	} {
		x := newLab(t, 2, prim.Options{})
		var at sim.Time
		x.Launch(c.name, func(p *prim.Context) error {
			if p.Rank() == 0 {
				c.send(x, p)
				return nil
			}
			p.Wait(x.word(1, 0), prim.GE, 1)
			at = p.Now()
			return nil
		})
		if err := x.Run(); err != nil || at != c.want(x) {
			t.Errorf("%s: at %v (%v), want %v", c.name, at, err, c.want(x))
		}
	}
}

// Data that carry a flag in every second word are twice the bytes, and need no signal behind them: they are faster up to
// what a link moves in the time in which a DMA engine is set up.
func TestFlagsInTheDataWinWhereItIsLittle(t *testing.T) {
	x := newLab(t, 2, prim.Options{})
	path := x.Network.Path(x.PEs[0], x.PEs[1])
	even := int64(sim.Time(x.Topology.DMA().Setup) * 100e9 / sim.Second)
	for bytes, flagsWin := range map[int64]bool{8: true, even / 2: true, even - 64: true, even + 64: false, 4 * even: false} {
		withSignal := timeOfPut(t, int(bytes), true)
		withFlags := timeOfPut(t, int(2*bytes), false)
		if want := x.Network.Uncontended(path, 2*bytes); withFlags != want {
			t.Errorf("%d bytes: flags are there at %v, want %v", bytes, withFlags, want)
		}
		if (withFlags < withSignal) != flagsWin {
			t.Errorf("%d bytes: flags %v, signal %v, want that flags win: %v", bytes, withFlags, withSignal, flagsWin)
		}
	}
}

// timeOfPut is when rank 1 has n bytes of rank 0's: by a signal, or by their last word.
func timeOfPut(t *testing.T, n int, signal bool) (at sim.Time) {
	t.Helper()
	x := newLab(t, 2, prim.Options{})
	data, err := x.Allocate("data", all(2), n)
	if err != nil {
		t.Fatal(err)
	}
	write(t, x.Machine, data.At(0, n-8), []byte{1, 0, 0, 0, 0, 0, 0, 0})
	x.Launch("put", func(c *prim.Context) error {
		switch {
		case c.Rank() == 1 && signal:
			c.Wait(x.word(1, 0), prim.GE, 1)
		case c.Rank() == 1:
			c.Wait(prim.I64(data.At(1, n-8)), prim.EQ, 1)
		case signal:
			c.PutSignalNBI(data.At(1, 0), data.At(0, 0), n, x.word(1, 0), prim.Add, 1)
		default:
			c.PutNBI(data.At(1, 0), data.At(0, 0), n)
		}
		if c.Rank() == 1 {
			at = c.Now()
		}
		return nil
	})
	if err := x.Run(); err != nil {
		t.Fatal(err)
	}
	return at
}

// A program on each PE loads its part of the rank's memory: all together have what all stacks of the SIP move, as a
// product of the host has, and eight programs that of eight cubes.
func TestProgramsOfAllCubesHaveAllMemory(t *testing.T) {
	const part = 1 << 19
	top, err := topology.Parse("test", []byte("name: test\nsystem: {sips: {count: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, blocks := range []int{1, 8, 17, 128} {
		m, err := prim.Over(top, 1, prim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		data := window(t, m, 128*part)
		var last sim.Time
		_, err = m.Submit(prim.Task{Name: "loads", Workers: []int{0}, Blocks: blocks, Kernel: func(c *prim.Context) error {
			c.Load(c.Tile(0, part), data.At(0, c.Block()*part))
			c.PipeBarrier(prim.AllPipes)
			last = max(last, c.Now())
			return nil
		}})
		if err != nil || m.Run() != nil {
			t.Fatal(err)
		}
		ofCube := int64((blocks + top.CubesPerSIP() - 1) / top.CubesPerSIP())
		rate := min(top.DMA().Bandwidth, top.Memory().Bandwidth/ofCube)
		own := m.Network.Path(m.PEs[0], m.PEs[0])
		if want := m.Network.Alpha(own) + sim.Time(part*int64(sim.Second)/rate); last != want {
			t.Errorf("%d programs: %v, want %v", blocks, last, want)
		}
	}
}

func TestTileArithmetic(t *testing.T) {
	x := newLab(t, 1, prim.Options{Check: true})
	rng := rand.New(rand.NewPCG(3, 3))
	const m, k, cols = 3, 5, 7
	a, b := floats(rng, m*k), floats(rng, k*cols)
	write(t, x.Machine, x.at(0, 0), raw(a))
	write(t, x.Machine, x.at(0, 512), raw(b))
	err := one(t, x, func(c *prim.Context) {
		ta, tb, td := c.Tile(0, 4*m*k), c.Tile(512, 4*k*cols), c.Tile(1024, 4*m*cols)
		half, back := c.Tile(2048, 2*m*cols), c.Tile(3072, 4*m*cols)
		c.Load(ta, x.at(0, 0))
		c.Load(tb, x.at(0, 512))
		c.PipeBarrier(prim.AllPipes)
		c.Dot(td, ta, tb, m, cols, k, false)
		c.Dot(td, ta, tb, m, cols, k, true)
		c.PipeBarrier(prim.AllPipes)
		c.Convert(half, dtype.F16, td, dtype.F32)
		c.Convert(back, dtype.F32, half, dtype.F16)
		c.PipeBarrier(prim.AllPipes)
		c.Store(x.at(0, 1024), td)
		c.Store(x.at(0, 2048), back)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, m*cols)
	for range 2 {
		for i := range m {
			for j := range cols {
				for l := range k {
					want[i*cols+j] += float32(a[i*k+l] * b[l*cols+j])
				}
			}
		}
	}
	if got := read(t, x.Machine, x.at(0, 1024), 4*m*cols); !bytes.Equal(got, raw(want)) {
		t.Error("Dot has another product")
	}
	for i, v := range want {
		want[i] = dtype.F16ToF32(dtype.F32ToF16(v))
	}
	if got := read(t, x.Machine, x.at(0, 2048), 4*m*cols); !bytes.Equal(got, raw(want)) {
		t.Error("Convert rounds otherwise")
	}
}

func floats(rng *rand.Rand, n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(rng.NormFloat64())
	}
	return list
}

func raw(f []float32) []byte {
	data := make([]byte, 4*len(f))
	dtype.FromF32(dtype.F32, data, f)
	return data
}

// Reducing stores of all ranks into one place, in any order: none is lost.
func TestReducingStoresLoseNothing(t *testing.T) {
	x := newLab(t, 8, prim.Options{Check: true, Reorder: true, Seed: 4})
	sums, err := x.Allocate("sums", []int{5}, n)
	if err != nil {
		t.Fatal(err)
	}
	x.Launch("add", func(c *prim.Context) error {
		tile := c.Tile(0, n)
		c.Load(tile, x.at(c.Rank(), 0))
		c.PipeBarrier(prim.AllPipes)
		for range 10 {
			c.StoreReduce(tensor.Sum, dtype.U8, sums.At(5, 0), tile)
		}
		return nil
	})
	if err := x.Run(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, x.Machine, sums.At(5, 0), n); !bytes.Equal(got, bytes.Repeat([]byte{80}, n)) {
		t.Errorf("sums %v, want 80s", got)
	}
}

// A queue of two slots and a slow receiver: the sender is held back, and every message comes once and in order.
func TestQueue(t *testing.T) {
	for _, o := range []prim.Options{{Check: true}, {Check: true, Reorder: true, Seed: 1}, {Check: true, Reorder: true, Seed: 2}} {
		x := newLab(t, 2, o)
		q, err := x.NewQueue("ring", 0, 1, 2, 64)
		if err != nil {
			t.Fatal(err)
		}
		var third sim.Time
		var sizes []int
		x.Launch("pass", func(c *prim.Context) error {
			for i := range 20 {
				if c.Rank() == 0 {
					c.Fill(c.Tile(0, 64), byte(i))
					c.PipeBarrier(prim.AllPipes)
					c.Send(q, c.Tile(0, 64).Addr, i)
					if i == 2 {
						third = c.Now()
					}
					continue
				}
				for range 50 {
					c.Test(x.word(1, 0), prim.EQ, 1)
				}
				sizes = append(sizes, c.Recv(q, x.at(1, 64*i), 64))
			}
			return nil
		})
		if err := x.Run(); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			if got := read(t, x.Machine, x.at(1, 64*i), i); sizes[i] != i || !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, i)) {
				t.Errorf("message %d has %d bytes: %v", i, sizes[i], got)
			}
		}
		if third < 5*sim.Microsecond {
			t.Errorf("the third send was over at %v, before the receiver took the first message", third)
		}
	}
}

func TestQueueDeadlocks(t *testing.T) {
	x := newLab(t, 2, prim.Options{})
	q, err := x.NewQueue("ring", 0, 1, 2, 64)
	if err != nil {
		t.Fatal(err)
	}
	wantDeadlock(t, one(t, x, func(c *prim.Context) {
		for range 3 {
			c.Send(q, x.at(0, 0), 64)
		}
	}), `a free slot of queue "ring" to rank 1: 2 of 2 hold messages`)
	x = newLab(t, 2, prim.Options{})
	q, _ = x.NewQueue("back", 1, 0, 2, 64)
	wantDeadlock(t, one(t, x, func(c *prim.Context) { c.Recv(q, x.at(0, 0), 64) }), `a message in queue "back" from rank 1`)
	wantText(t, one(t, x, func(c *prim.Context) { c.Send(q, x.at(0, 0), 64) }), `by rank 0 into queue "back", which is rank 1's`)
	for _, bad := range [][4]int{{-1, 0, 1, 1}, {0, 9, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}} {
		if _, err := x.NewQueue("bad", bad[0], bad[1], bad[2], bad[3]); err == nil {
			t.Errorf("a queue of %v is accepted", bad)
		}
	}
}

func TestFreedWindow(t *testing.T) {
	x := newLab(t, 2, prim.Options{})
	w, err := x.Allocate("brief", all(2), 64)
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.Submit(prim.Task{Name: "late", Workers: []int{0}, Done: w.Free, Kernel: func(c *prim.Context) error {
		c.Put(w.At(1, 0), x.at(0, 0), 64)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	f := wantKind(t, x.Run(), prim.FreedWindow)
	wantReport(t, f, "traffic after free", `window "brief" of rank 1`, "put by kernel \"late\" on rank 0 at operation_test.go:", "a quiet at the sender")
	if _, err := x.Read(w.At(1, 0), 1); err == nil || !w.Freed() {
		t.Error("the window can still be read")
	}
	next, _ := x.Allocate("next", all(2), 64)
	if next.At(0, 0) == w.At(0, 0) {
		t.Error("the addresses are used again")
	}
}

func TestUnwrittenRead(t *testing.T) {
	x := newLab(t, 1, prim.Options{Check: true})
	if err := one(t, x, func(c *prim.Context) { c.Load(c.Tile(0, 4), x.words.At(0, 0)) }); err != nil {
		t.Errorf("memory that is zeroed: %v", err)
	}
	w, _ := x.AttachAll("fresh", all(1), [][]byte{make([]byte, 128)}, false)
	write(t, x.Machine, w.At(0, 0), make([]byte, 64))
	f := wantKind(t, one(t, x, func(c *prim.Context) { c.Load(c.Tile(0, 128), w.At(0, 0)) }), prim.UnwrittenRead)
	wantReport(t, f, "byte 64", "load by")
	x = newLab(t, 1, prim.Options{Check: true})
	f = wantKind(t, one(t, x, func(c *prim.Context) { c.Store(x.at(0, 0), c.Tile(0, 4)) }), prim.UnwrittenRead)
	wantReport(t, f, "scratch memory of rank 0")
}

func TestWrongUse(t *testing.T) {
	x := newLab(t, 2, prim.Options{})
	small, _ := x.Allocate("small", []int{1}, 100)
	for about, k := range map[string]func(c *prim.Context){
		"is memory of rank 1 only":        func(c *prim.Context) { c.Load(c.Tile(0, 4), small.At(1, 0).On(0)) },
		"reach beyond window \"small\"":   func(c *prim.Context) { c.Load(c.Tile(0, 101), small.At(1, 0)) },
		"a tile of 1 bytes at 1048576":    func(c *prim.Context) { c.Tile(1<<20, 1) },
		"scratch memory +0 is in no":      func(c *prim.Context) { c.Load(prim.Tile{Addr: c.Tile(0, 1).Addr + 1<<32, Bytes: 1}, x.at(0, 0)) },
		"not a multiple":                  func(c *prim.Context) { c.Signal(prim.I64(x.words.At(1, 4)), prim.Add, 1) },
		"words are i32 or i64":            func(c *prim.Context) { c.Fetch(prim.Word{Addr: x.at(0, 0), Type: dtype.F32}) },
		"only for words of its own rank":  func(c *prim.Context) { c.Wait(x.word(1, 0), prim.EQ, 0) },
		"flags 0 to 7":                    func(c *prim.Context) { c.SetFlag(prim.Load, prim.Store, 8) },
		"cannot be combined":              func(c *prim.Context) { c.Combine(tensor.Sum, dtype.F32, c.Tile(0, 4), c.Tile(4, 8), c.Tile(0, 4)) },
		"are not f32 matrices":            func(c *prim.Context) { c.Dot(c.Tile(0, 4), c.Tile(0, 4), c.Tile(0, 8), 1, 1, 1, false) },
		"the signal's word is on rank 0":  func(c *prim.Context) { c.PutSignal(x.at(1, 0), x.at(0, 0), 1, x.word(0, 0), prim.Add, 1) },
		"is not in window":                func(c *prim.Context) { small.At(0, 0) },
		"waits for flag 2 from the load":  func(c *prim.Context) { c.WaitFlag(prim.Load, prim.Vector, 2) },
		"flag 1 from its store pipe":      func(c *prim.Context) { c.WaitFlag(prim.Store, prim.Scalar, 1) },
		"window \"small\" +0) to be EQ 1": nil,
	} {
		m := newLab(t, 2, prim.Options{})
		small, _ = m.Allocate("small", []int{1}, 100)
		x = m
		if k == nil {
			continue
		}
		wantText(t, one(t, x, k), about, `"one"`, "rank 0")
	}
}

func TestBadArguments(t *testing.T) {
	m := machine(t, 2, prim.Options{})
	for about, err := range map[string]error{
		"at least one rank":   second(m.Allocate("w", nil, 1)),
		"rank 2 is not one":   second(m.Allocate("w", []int{0, 2}, 1)),
		"occurs twice":        second(m.Allocate("w", []int{0, 0}, 1)),
		"0 bytes":             second(m.Allocate("w", []int{0}, 0)),
		"cannot be attached":  second(m.Attach("w", 0, nil)),
		"at least one worker": second(m.Submit(prim.Task{})),
		"worker 7":            second(m.Submit(prim.Task{Workers: []int{7}})),
		"blocks; a SIP has":   second(m.Submit(prim.Task{Workers: []int{0}, Blocks: 1000})),
		"is in no window":     m.Write(0, []byte{1}),
		"3 ranks":             second(prim.Over(sips(t, 2), 3, prim.Options{})),
	} {
		wantText(t, err, about)
	}
}

func second[T any](_ T, err error) error { return err }

func TestErrorsOfKernels(t *testing.T) {
	own := errors.New("own")
	m := machine(t, 3, prim.Options{})
	w := window(t, m, 64)
	var unwound int
	m.Launch("fails", func(c *prim.Context) error {
		defer func() { unwound++ }()
		if c.Rank() == 1 {
			return own
		}
		c.Wait(prim.I32(w.At(c.Rank(), 0)), prim.EQ, 1)
		return nil
	})
	err := m.Run()
	wantText(t, err, `kernel "fails" on rank 1: own`)
	if !errors.Is(err, own) || unwound != 2 {
		t.Errorf("%v; %d of the 2 programs that had begun were unwound", err, unwound)
	}
	m.Launch("panics", func(*prim.Context) error { panic("ouch") })
	wantText(t, m.Run(), "panic: ouch")
}

// A program that is driven from outside, as one in another language is.
func TestDrivenFromOutside(t *testing.T) {
	x := newLab(t, 2, prim.Options{Check: true})
	x.Launch("sender", func(c *prim.Context) error {
		if c.Rank() == 1 {
			c.Signal(x.word(0, 0), prim.Add, 3)
		}
		return nil
	})
	j, err := x.Submit(prim.Task{Name: "outside", Workers: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	steps := []func(c *prim.Context){
		func(c *prim.Context) { c.SetLine("user.py:7"); c.Wait(x.word(0, 0), prim.GE, 3) },
		func(c *prim.Context) { c.Fetch(x.word(0, 0)) },
	}
	var values []int64
	err = x.RunWith(func(c *prim.Context) {
		for len(steps) > 0 {
			steps[0](c)
			steps = steps[1:]
			if c.Blocked() {
				return
			}
		}
		values = append(values, c.Result())
		c.End(nil)
	})
	if err != nil || !slices.Equal(values, []int64{3}) || !j.Ended() {
		t.Errorf("%v, values %v", err, values)
	}
	if _, err := x.Submit(prim.Task{Name: "outside", Workers: []int{0}}); err != nil {
		t.Fatal(err)
	}
	wantDeadlock(t, x.RunWith(func(c *prim.Context) { c.SetLine("user.py:9"); c.Wait(x.word(0, 0), prim.EQ, 4) }), "at user.py:9 waits for the word")
}

func TestBlocksAndOrderOfTasks(t *testing.T) {
	_, err := fillThenGet(t, false)
	wantKind(t, err, prim.UnorderedRead)
	x, err := fillThenGet(t, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, x.Machine, x.at(1, 0), 128); !bytes.Equal(got, bytes.Repeat([]byte{3}, 128)) {
		t.Errorf("%v, want eight blocks of 3s", got)
	}
}

// fillThenGet has eight blocks of one rank fill memory, and another rank get that, afterwards or not.
func fillThenGet(t *testing.T, follows bool) (*lab, error) {
	x := newLab(t, 2, prim.Options{Check: true})
	fill := func(v byte) prim.Kernel {
		return func(c *prim.Context) error {
			tile := c.Tile(0, 16)
			c.Fill(tile, v)
			c.PipeBarrier(prim.AllPipes)
			c.Store(x.at(0, 16*c.Block()), tile)
			return nil
		}
	}
	first, err := x.Submit(prim.Task{Name: "first", Workers: []int{0}, Blocks: 8, Kernel: fill(3)})
	if err != nil {
		t.Fatal(err)
	}
	task := prim.Task{Name: "second", Workers: []int{1}, Kernel: func(c *prim.Context) error {
		c.Get(x.at(1, 0), x.at(0, 0), 128)
		return nil
	}}
	if follows {
		task.After = []*prim.Job{first}
	}
	if _, err := x.Submit(task); err != nil {
		t.Fatal(err)
	}
	return x, x.Run()
}

// The same program and seed give the same run.
func TestRunsRepeat(t *testing.T) {
	var first string
	for i := range 3 {
		x := newLab(t, 5, prim.Options{Check: true, Reorder: true, Seed: 9})
		x.Launch("race", func(c *prim.Context) error {
			for r := range 5 {
				c.Put(x.at(r, 0), x.at(c.Rank(), 64), 32)
			}
			c.Quiet()
			return nil
		})
		got := fmt.Sprint(x.Run(), x.Now())
		if i == 0 {
			first = got
		} else if got != first {
			t.Fatalf("run %d differs:\n%s\n%s", i, got, first)
		}
	}
}
