package prim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// engineMachine is two nodes of four devices with a window of so many bytes on each.
func engineMachine(t *testing.T, bytes int, o prim.Options) (*prim.Machine, *prim.Window) {
	t.Helper()
	preset, err := topology.Load("mi355x_2x4")
	if err != nil {
		t.Fatal(err)
	}
	m, err := prim.Over(preset, 8, o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := m.Allocate("data", all(8), bytes)
	if err != nil {
		t.Fatal(err)
	}
	return m, w
}

// runOn runs a kernel on some ranks to its end.
func runOn(t *testing.T, m *prim.Machine, ranks []int, k prim.Kernel) error {
	t.Helper()
	for _, r := range ranks {
		if _, err := m.Submit(prim.Task{Name: "engines", Kernel: k, Workers: []int{r}}); err != nil {
			t.Fatal(err)
		}
	}
	return m.Run()
}

func TestACopysTimeIsThatOfItsEngine(t *testing.T) {
	sdma, nic := prim.EngineQueue{Class: prim.SDMA, Peer: 1}, prim.EngineQueue{Class: prim.NIC, Peer: 4}
	for _, x := range []struct {
		queue       prim.EngineQueue
		bytes       int
		micros, per float64 // until it is known that it has landed; bytes per microsecond
	}{
		{sdma, 64 << 10, 2.8, 60.9e3}, {sdma, 8 << 20, 2.8, 60.9e3}, {sdma, 1, 2.8, 60.9e3},
		{nic, 64 << 10, 5.8, 49.6e3}, {nic, 1 << 20, 5.8, 49.6e3}, {nic, 64 << 20, 5.8, 49.6e3},
	} {
		m, w := engineMachine(t, x.bytes, prim.Options{})
		err := runOn(t, m, []int{0}, func(c *prim.Context) error {
			c.Post(x.queue, w.At(x.queue.Peer, 0), w.At(0, 0), x.bytes)
			c.Drain(x.queue)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := x.micros + float64(x.bytes)/x.per
		if got := float64(m.Now()) / float64(sim.Microsecond); math.Abs(got-want) > 0.001*want {
			t.Errorf("%v, %d bytes: %.3f µs; want %.3f", x.queue, x.bytes, got, want)
		}
	}
}

// More queues and engines of a pair share its link; a packet's own time is hidden behind another engine's copy.
func TestQueuesOfAPairShareItsLink(t *testing.T) {
	const n = 4 << 20
	m, w := engineMachine(t, 4*n, prim.Options{})
	err := runOn(t, m, []int{0}, func(c *prim.Context) error {
		for k := range 4 {
			c.Post(prim.EngineQueue{Class: prim.SDMA, Peer: 1, Number: k}, w.At(1, k*n), w.At(0, k*n), n)
		}
		for k := range 4 {
			c.Drain(prim.EngineQueue{Class: prim.SDMA, Peer: 1, Number: k})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, link := float64(m.Now())/float64(sim.Microsecond), 4*n/60.9e3
	if got < link || got > link+3*2.8 {
		t.Errorf("four copies on four queues take %.2f µs; the link alone takes %.2f", got, link)
	}
}

// ring sends a rank's bytes to the next one, of the node or of the other node, with a signal behind them.
func engineRing(w *prim.Window, n, step int, data, signal prim.EngineQueue, drains bool) prim.Kernel {
	return func(c *prim.Context) error {
		own, next := c.Rank(), (c.Rank()+step)%c.World()
		data, signal := data, signal
		data.Peer, signal.Peer = next, next
		c.Post(data, w.At(next, n), w.At(own, 0), n)
		if drains {
			c.Drain(data)
		}
		c.PostSignal(signal, prim.I64(w.At(next, 2*n)), prim.Add, 1)
		c.Wait(prim.I64(w.At(own, 2*n)), prim.GE, 1)
		read := c.Tile(0, n)
		c.Load(read, w.At(own, n))
		c.PipeBarrier(prim.AllPipes)
		c.Drain(data)
		c.Drain(signal)
		return nil
	}
}

func TestASignalIsBehindTheCopiesOfItsQueueOnly(t *testing.T) {
	const n = 4096
	queue := func(class prim.EngineClass, number int) prim.EngineQueue {
		return prim.EngineQueue{Class: class, Number: number}
	}
	for name, x := range map[string]struct {
		step         int
		data, signal prim.EngineQueue
		drains, safe bool
	}{
		"a queue pair":            {4, queue(prim.NIC, 1), queue(prim.NIC, 1), false, true},
		"two queue pairs":         {4, queue(prim.NIC, 1), queue(prim.NIC, 0), false, false},
		"two queue pairs, quiet":  {4, queue(prim.NIC, 1), queue(prim.NIC, 0), true, true},
		"cards within the node":   {1, queue(prim.NIC, 3), queue(prim.NIC, 3), false, true},
		"cards, another pair":     {1, queue(prim.NIC, 3), queue(prim.NIC, 2), false, false},
		"cards, another, drained": {1, queue(prim.NIC, 3), queue(prim.NIC, 2), true, true},
	} {
		for seed := range uint64(4) {
			m, w := engineMachine(t, 2*n+8, prim.Options{Check: true, Reorder: seed > 0, Seed: seed})
			for r := range 8 {
				if err := m.Write(w.At(r, 0), []byte(strings.Repeat(fmt.Sprint(r), n))); err != nil {
					t.Fatal(err)
				}
			}
			err := runOn(t, m, all(8), engineRing(w, n, x.step, x.data, x.signal, x.drains))
			if (err == nil) != x.safe {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
			if err != nil && !strings.Contains(err.Error(), "signal overtakes its data") {
				t.Errorf("%s: %v", name, err)
			}
			for r := range 8 {
				from := (r + 8 - x.step) % 8
				got, err := m.Read(w.At(r, n), n)
				if err != nil || string(got) != strings.Repeat(fmt.Sprint(from), n) {
					t.Fatalf("%s, seed %d: rank %d has not got rank %d's bytes: %v", name, seed, r, from, err)
				}
			}
		}
	}
}

func TestEnginesReachWhatTheyDoOnAMachine(t *testing.T) {
	for name, x := range map[string]struct {
		queue    prim.EngineQueue
		to, from int
		want     string
	}{
		"another node":   {prim.EngineQueue{Class: prim.SDMA, Peer: 4}, 4, 0, "reaches ranks of its own node"},
		"between others": {prim.EngineQueue{Class: prim.SDMA, Peer: 1}, 2, 1, "it is between ranks 0 and 1"},
		"a ninth queue":  {prim.EngineQueue{Class: prim.SDMA, Peer: 1, Number: 8}, 1, 0, "there are queues 0 to 7"},
		"no such rank":   {prim.EngineQueue{Class: prim.SDMA, Peer: 8}, 1, 0, "ranks are 0 to 7"},
		"to itself":      {prim.EngineQueue{Class: prim.NIC, Peer: 0}, 0, 0, "between its rank's memory and the peer's"},
		"at the peer's":  {prim.EngineQueue{Class: prim.NIC, Peer: 4}, 4, 4, "between its rank's memory and the peer's"},
		"units afar":     {prim.EngineQueue{Class: prim.UnitCopies, Peer: 0}, 1, 0, "within rank 0's memory"},
	} {
		m, w := engineMachine(t, 64, prim.Options{})
		err := runOn(t, m, []int{0}, func(c *prim.Context) error {
			c.Post(x.queue, w.At(x.to, 0), w.At(x.from, 0), 8)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; want %q", name, err, x.want)
		}
	}
}

func TestADrainOfAnUnusedQueueIsOver(t *testing.T) {
	m, _ := engineMachine(t, 64, prim.Options{Check: true})
	err := runOn(t, m, all(8), func(c *prim.Context) error {
		c.Drain(prim.EngineQueue{Class: prim.SDMA, Peer: 1})
		return nil
	})
	if err != nil || m.Now() != 0 {
		t.Errorf("%v at %v", err, m.Now())
	}
}

func TestCopiesOfMemoryWithoutBytesTakeTheirTime(t *testing.T) {
	const n = 1 << 40
	m, w := engineMachine(t, 64, prim.Options{Check: true})
	h, err := m.AllocateHollow("hollow", all(8), n)
	if err != nil {
		t.Fatal(err)
	}
	q := prim.EngineQueue{Class: prim.SDMA, Peer: 1}
	err = runOn(t, m, []int{0}, func(c *prim.Context) error {
		c.Post(q, h.At(1, 0), h.At(0, 0), n)
		c.Post(q, w.At(1, 0), h.At(0, 0), 64)
		c.PostSignal(q, prim.I64(w.At(1, 0)), prim.Set, 1)
		c.Drain(q)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := float64(m.Now())/float64(sim.Second), n/60.9e9; math.Abs(got-want) > 1e-4*want {
		t.Errorf("a tebibyte takes %.3f s; want %.3f", got, want)
	}
	err = runOn(t, m, []int{0}, func(c *prim.Context) error {
		c.Put(w.At(1, 0), h.At(0, 0), 8)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "has no bytes") {
		t.Errorf("a put of memory without bytes: %v", err)
	}
}

func TestACardsReadTakesItsRequestToo(t *testing.T) {
	m, w := engineMachine(t, 1<<20, prim.Options{})
	copy(w.Storage(4).Writable(), "far away")
	q := prim.EngineQueue{Class: prim.NIC, Peer: 4}
	err := runOn(t, m, []int{0}, func(c *prim.Context) error {
		c.Post(q, w.At(0, 0), w.At(4, 0), 1<<20)
		c.Drain(q)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(w.Storage(0).Bytes()[:8]); got != "far away" {
		t.Errorf("the read brought %q", got)
	}
	micros := 9.8 + float64(1<<20)/49.6e3 // as a write, and once more the 4 µs to the peer
	if got := float64(m.Now()) / float64(sim.Microsecond); math.Abs(got-micros) > 0.001*micros {
		t.Errorf("it took %v µs, want %v", got, micros)
	}
}
