package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/replay"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

func load(tb testing.TB, name string, ranks int) *topology.Topology {
	tb.Helper()
	t, err := topology.LoadFor(name, ranks)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func play(t *testing.T, text string) replay.Result {
	t.Helper()
	j, err := replay.ParseGOAL("a.goal", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := j.Play(load(t, "default", 0))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// alone is how long a message takes on an idle fabric.
func alone(t *testing.T, from, to int, bytes int64) sim.Time {
	topo := load(t, "default", 0)
	n := network.New(sim.NewEngine(), topo)
	return n.Uncontended(n.Path(topo.PE(from, 0, 0), topo.PE(to, 0, 0)), bytes)
}

func TestAMessageBetweenCalcs(t *testing.T) {
	got := play(t, `
num_ranks 2
rank 0 {
l1: calc 100
l2: send 4096b to 1 tag 7 cpu 0 nic 0
l3: calc 50
l2 requires l1
l3 irequires l2
}
rank 1 {
l1: recv 4096b from 0 tag 7
l2: calc 30
l2 requires l1
}
`)
	arrives := 100*sim.Nanosecond + alone(t, 0, 1, 4096)
	if got.Ends[0] != arrives || got.Ends[1] != arrives+30*sim.Nanosecond || got.Last() != got.Ends[1] {
		t.Errorf("ends at %v, want %v and 30 ns later", got.Ends, arrives)
	}
}

func TestCalcsOfAUnitFollowEachOther(t *testing.T) {
	for unit, want := range map[int]sim.Time{0: 30, 1: 20} {
		got := play(t, fmt.Sprintf("num_ranks 1\nrank 0 {\ncalc 10\nl2: calc 20 cpu %d\n}", unit))
		if got.Last() != want*sim.Nanosecond {
			t.Errorf("unit %d: %v, want %d ns", unit, got.Last(), want)
		}
	}
}

// Messages of one tag are taken in order; of several tags each by its own.
func TestTags(t *testing.T) {
	var text strings.Builder
	const n = 200
	text.WriteString("num_ranks 2\nrank 0 {\n")
	for i := range n {
		fmt.Fprintf(&text, "l%d: send %db to 1 tag %d\n", i+1, i+1, i)
	}
	text.WriteString("}\nrank 1 {\n")
	for i := range n {
		fmt.Fprintf(&text, "l%d: recv %db from 0 tag %d\n", i+1, n-i, n-1-i)
	}
	text.WriteString("}\n")
	if got := play(t, text.String()); got.Ends[0] != got.Ends[1] {
		t.Errorf("ends at %v", got.Ends)
	}
}

// ringText is a ring all-gather of blocks in GOAL.
func ringText(ranks int, block int64) string {
	var text strings.Builder
	fmt.Fprintf(&text, "num_ranks %d\n", ranks)
	for r := range ranks {
		fmt.Fprintf(&text, "rank %d {\n", r)
		for k := range ranks - 1 {
			fmt.Fprintf(&text, "l%d: send %db to %d tag %d\nl%d: recv %db from %d tag %d\n", 2*k+1, block, (r+1)%ranks, k, 2*k+2, block, (r+ranks-1)%ranks, k)
			if k > 0 {
				fmt.Fprintf(&text, "l%d requires l%d\n", 2*k+1, 2*k)
			}
		}
		text.WriteString("}\n")
	}
	return text.String()
}

// A ring in GOAL takes what the ring algorithm takes.
func TestARingIsARing(t *testing.T) {
	for _, ranks := range []int{2, 3, 16} {
		topo := load(t, "sips16", ranks)
		j, err := replay.ParseGOAL("ring.goal", []byte(ringText(ranks, 4096)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := j.Play(topo)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := ccl.Lookup(collective.AllGather, "ring")
		l := ccl.Launch{Schedule: a.Build(ccl.Layout{World: ranks}, 0), Elems: 4096 * ranks, ElemSize: 1, PartialSize: 1}
		for r := range ranks {
			l.Devices = append(l.Devices, topo.PE(r, 0, 0))
		}
		if want := ccl.Repeat(topo, l, 1); got.Last() != want {
			t.Errorf("%d ranks: %v, want %v", ranks, got.Last(), want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "a.goal:1: a GOAL file begins with num_ranks"},
		{"rank 0 {\n}", `a.goal:1: a GOAL file begins with num_ranks and a number from 1 to 1048576, not "rank 0 {"`},
		{"num_ranks 0", "a.goal:1: a GOAL file begins"},
		{"num_ranks 2\nrank 2 {\n}", "a.goal:2: rank 2: there are 2 ranks"},
		{"num_ranks 2\nrank 1 {\n}\nrank 1 {\n}", "a.goal:4: rank 1 is there twice, first in line 2"},
		{"num_ranks 2\nrank 1 {\n", "a.goal:2: rank 1 has no end"},
		{"num_ranks 1\n\nhello", `a.goal:3: want rank and its number and {, not "hello"`},
		{"num_ranks 1\nrank 0 {\nl1: calc x\n}", `a.goal:3: rank 0: cannot read "l1: calc x"`},
		{"num_ranks 1\nrank 0 {\nl1: calc -1\n}", `a.goal:3: rank 0: cannot read "l1: calc -1"`},
		{"num_ranks 1\nrank 0 {\nl1: jump 1\n}", `a.goal:3: rank 0: want calc, send or recv, not "l1: jump 1"`},
		{"num_ranks 1\nrank 0 {\nl1: send 1b to 1\n}", "a.goal:3: rank 0: rank 1: there are 1 ranks"},
		{"num_ranks 1\nrank 0 {\nl1: calc 1\nl1: calc 1\n}", "a.goal:4: rank 0: there are two operations l1"},
		{"num_ranks 1\nrank 0 {\nl1: calc 1\nl1 requires l2\n}", "a.goal:4: rank 0: there is no operation l2 before this line"},
		{"num_ranks 1\nrank 0 {\nl1: calc 1\nl1 requires l1\n}", "a.goal:4: rank 0: l1 requires itself"},
		{"num_ranks 1\nrank 0 {\nl1: calc 1\nl1 wants l1\n}", "a.goal:4: rank 0: want an operation, or one that requires another"},
		{"num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 3\n}", "a.goal:3: rank 0: send 8b to 1 tag 3: there is no recv for it"},
		{"num_ranks 2\nrank 0 {\nl1: recv 8b from 1 tag 3\n}", "a.goal:3: rank 0: recv 8b from 1 tag 3: there is no send for it"},
		{"num_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\nrank 1 {\nl1: recv 9b from 0\n}",
			"a.goal:6: rank 1: recv 9b from 0 tag 0: its send is of another size, a.goal:3: rank 0: send 8b to 1 tag 0"},
	} {
		_, err := replay.ParseGOAL("a.goal", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
	}
}

func TestOperationsThatWaitForEver(t *testing.T) {
	j, err := replay.ParseGOAL("a.goal", []byte(`num_ranks 2
rank 0 {
l1: recv 8b from 1
l2: send 8b to 1
l2 requires l1
}
rank 1 {
l1: recv 8b from 0
l2: send 8b to 0
l2 requires l1
}
`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Play(load(t, "default", 0))
	for _, line := range []string{"a.goal:3: rank 0: recv 8b from 1 tag 0", "a.goal:4: rank 0: send 8b to 1 tag 0", "a.goal:8: rank 1: recv", "a.goal:9: rank 1: send"} {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("got %v, want %q in it", err, line)
		}
	}
	if _, err := j.Play(load(t, "sips2", 0)); err == nil || !strings.Contains(err.Error(), "for ever") {
		t.Errorf("two SIPs suffice: %v", err)
	}
}

func TestTooFewSIPs(t *testing.T) {
	j, err := replay.ParseGOAL("a.goal", []byte("num_ranks 5\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Play(load(t, "default", 0)); err == nil || !strings.Contains(err.Error(), "a.goal has 5 ranks, and topology \"default\" only 4 SIPs") {
		t.Errorf("got %v", err)
	}
}

func FuzzGOAL(f *testing.F) {
	f.Add([]byte(ringText(3, 8)))
	f.Add([]byte("num_ranks 1\nrank 0 {\ncalc 5\n}"))
	topo := load(f, "default", 0)
	f.Fuzz(func(t *testing.T, text []byte) {
		if j, err := replay.ParseGOAL("f.goal", text); err == nil && j.Ranks() <= 4 {
			_, _ = j.Play(topo)
		}
	})
}

// BenchmarkGOALRing reads and plays a ring all_reduce of 1024 ranks × 1 MiB: 4.2 million operations.
func BenchmarkGOALRing(b *testing.B) {
	const ranks = 1024
	var text strings.Builder
	fmt.Fprintf(&text, "num_ranks %d\n", ranks)
	for r := range ranks {
		fmt.Fprintf(&text, "rank %d {\n", r)
		for k := range 2 * (ranks - 1) {
			fmt.Fprintf(&text, "l%d: send 1024b to %d tag %d\nl%d: recv 1024b from %d tag %d\n", 2*k+1, (r+1)%ranks, k, 2*k+2, (r+ranks-1)%ranks, k)
			if k > 0 {
				fmt.Fprintf(&text, "l%d requires l%d\n", 2*k+1, 2*k)
			}
		}
		text.WriteString("}\n")
	}
	data, topo := []byte(text.String()), load(b, "default", ranks)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		j, err := replay.ParseGOAL("ring.goal", data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := j.Play(topo); err != nil {
			b.Fatal(err)
		}
	}
}
