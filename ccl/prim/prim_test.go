package prim_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// sips is the default system with another number of SIPs.
func sips(tb testing.TB, n int) *topology.Topology {
	tb.Helper()
	const text = "name: test\nsystem: {sips: {count: %d}}\nsip: {cube_mesh: {w: 1, h: 1}}\n"
	t, err := topology.Parse("test", []byte(strings.Replace(text, "%d", itoa(n), 1)))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func machine(tb testing.TB, ranks int, o prim.Options) *prim.Machine {
	tb.Helper()
	m, err := prim.Over(sips(tb, ranks), ranks, o)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// window allocates on all ranks.
func window(tb testing.TB, m *prim.Machine, size int) *prim.Window {
	tb.Helper()
	w, err := m.Allocate("scratch", all(m.World()), size)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func write(tb testing.TB, m *prim.Machine, a prim.Addr, data []byte) {
	tb.Helper()
	if err := m.Write(a, data); err != nil {
		tb.Fatal(err)
	}
}

func read(tb testing.TB, m *prim.Machine, a prim.Addr, n int) []byte {
	tb.Helper()
	data, err := m.Read(a, n)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func TestPutSignalWait(t *testing.T) {
	m := machine(t, 2, prim.Options{Check: true})
	w := window(t, m, 1024)
	write(t, m, w.At(0, 0), []byte("hello"))
	m.Launch("pass", func(c *prim.Context) error {
		sig := prim.I32(w.At(1, 512))
		if c.Rank() == 0 {
			c.Put(w.At(1, 0), w.At(0, 0), 5)
			c.Signal(sig, prim.Add, 1)
			return nil
		}
		c.Wait(sig, prim.GE, 1)
		c.Put(w.At(1, 100), w.At(1, 0), 5)
		return nil
	})
	if err := m.Run(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, m, w.At(1, 100), 5); !bytes.Equal(got, []byte("hello")) {
		t.Errorf("rank 1 has %q", got)
	}
	if m.Now() == 0 {
		t.Error("it took no time")
	}
}

func TestMissingSignalIsFound(t *testing.T) {
	m := machine(t, 2, prim.Options{Check: true})
	w := window(t, m, 1024)
	write(t, m, w.At(0, 0), []byte("hello"))
	write(t, m, w.At(1, 0), []byte("wrong"))
	m.Launch("pass", func(c *prim.Context) error {
		if c.Rank() == 0 {
			c.Put(w.At(1, 0), w.At(0, 0), 5)
			return nil
		}
		c.Put(w.At(1, 100), w.At(1, 0), 5)
		return nil
	})
	var found *prim.FindingsError
	if err := m.Run(); !errors.As(err, &found) {
		t.Fatalf("Run: %v, want findings", err)
	}
	t.Log(found)
}

func itoa(n int) string {
	return strings.TrimLeft(string([]byte{byte('0' + n/1000%10), byte('0' + n/100%10), byte('0' + n/10%10), byte('0' + n%10)}), "0")
}
