package prim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
)

// step is an operation of a random program.
type step func(x *lab, c *prim.Context)

// Random programs use four places of 8 bytes on each of two ranks, and two words.
func randomStep(rng *rand.Rand, number int) (string, step) {
	to, from, place, other, w := rng.IntN(2), rng.IntN(2), 8*rng.IntN(2), 8*(2+rng.IntN(2)), rng.IntN(2)
	switch rng.IntN(9) {
	case 0:
		return "put", func(x *lab, c *prim.Context) { c.Put(x.at(to, place), x.at(c.Rank(), other), 8) }
	case 1:
		return "put_nbi", func(x *lab, c *prim.Context) { c.PutNBI(x.at(to, place), x.at(c.Rank(), other), 8) }
	case 2:
		return "get", func(x *lab, c *prim.Context) { c.Get(x.at(c.Rank(), other), x.at(from, place), 8) }
	case 3, 4:
		return "signal", func(x *lab, c *prim.Context) { c.Signal(x.word(1-c.Rank(), w), prim.Add, 1) }
	case 5, 6:
		return "wait", func(x *lab, c *prim.Context) { c.Wait(x.word(c.Rank(), w), prim.GE, 1) }
	case 7:
		return "store", func(x *lab, c *prim.Context) {
			tile := c.Tile(8*number, 8)
			c.Fill(tile, byte(10*c.Rank()+number))
			c.SetFlag(prim.Vector, prim.Store, 0)
			c.WaitFlag(prim.Vector, prim.Store, 0)
			c.Store(x.at(to, place), tile)
		}
	}
	return "order", []step{
		func(_ *lab, c *prim.Context) { c.Fence() },
		func(_ *lab, c *prim.Context) { c.Quiet() },
		func(_ *lab, c *prim.Context) { c.PipeBarrier(prim.AllPipes) },
	}[rng.IntN(3)]
}

// results runs a program in all orders and returns the contents of memory that it can end with.
func results(t *testing.T, program [2][]step, o prim.Options) (map[string]bool, error) {
	ends := map[string]bool{}
	_, err := prim.Explore(sips(t, 2), 2, o, 600, func(m *prim.Machine) (func() error, error) {
		x := &lab{Machine: m}
		x.data, _ = m.Allocate("data", all(2), 512)
		x.words, _ = m.Allocate("words", all(2), 512)
		for r := range 2 {
			for i := range 4 {
				write(t, m, x.at(r, 8*i), []byte{byte(100 + 10*r + i), 0, 0, 0, 0, 0, 0, 0})
			}
		}
		m.Launch("random", func(c *prim.Context) error {
			for _, s := range program[c.Rank()] {
				s(x, c)
			}
			return nil
		})
		return func() error {
			ends[fmt.Sprint(read(t, m, x.at(0, 0), 32), read(t, m, x.at(1, 0), 32))] = true
			return nil
		}, nil
	})
	return ends, err
}

// Whatever can end in two ways, the checker reports in some order; so what it does not report ends in one.
func TestCheckerSeesAllThatOrdersCanChange(t *testing.T) {
	racy, clean, strict, stuck := 0, 0, 0, 0
	for seed := range uint64(160) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var program [2][]step
		var text string
		for r := range program {
			for i := range 2 + rng.IntN(3) {
				name, s := randomStep(rng, i)
				program[r] = append(program[r], s)
				text += fmt.Sprint(" ", r, ":", name)
			}
		}
		o := prim.Options{Reorder: seed%2 == 0}
		ends, err := results(t, program, o)
		if err != nil {
			stuck++
			continue
		}
		o.Check = true
		_, found := results(t, program, o)
		switch {
		case len(ends) > 1 && found == nil:
			t.Errorf("seed %d:%s: ends in %d ways, and nothing is found", seed, text, len(ends))
		case len(ends) > 1:
			racy++
		case found == nil:
			clean++
		default:
			strict++
		}
	}
	t.Logf("%d racy programs, %d clean, %d that are reported and end in one way, %d that can deadlock", racy, clean, strict, stuck)
	if racy < 10 || clean < 10 {
		t.Errorf("%d racy programs and %d clean ones are too few to tell", racy, clean)
	}
}
