package prim_test

import (
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
)

// TestDataWithFlagsThatArePut puts data with flags beside them, which the receiver looks at until they have come or when they
// have long been there, with an answer between the rounds or without one.
func TestDataWithFlagsThatArePut(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, answers := range []bool{true, false} {
			m, w := over(t, 2, prim.Options{Check: true, Fences: true})
			box, source, answer := w.At(1, 0), w.At(0, 128), prim.I64(w.At(0, 0))
			run := func(c *prim.Context) error {
				for round := int64(1); round <= 2; round++ {
					if c.Rank() == 0 {
						c.Write("store", source, []byte{byte(round), byte(round)}, false)
						c.PutNBI(box, source, 64)
						if answers {
							c.Wait(answer, prim.GE, round)
						} else {
							c.Pass(10_000_000)
						}
						c.Quiet()
						continue
					}
					if late {
						c.Pass(5_000_000)
					}
					takeFlagged(c, box, byte(round))
					if !answers {
						return nil
					}
					c.Signal(answer, prim.Add, 1)
				}
				return nil
			}
			for r := range 2 {
				submit(t, m, prim.Task{Name: "flagged", Kernel: run, Workers: []int{r}, Threads: 32, Beside: true})
			}
			if err := m.Run(); answers && err != nil {
				t.Errorf("late %v: %v", late, err)
			} else if !answers {
				wantKind(t, err, prim.WindowReused)
			}
		}
	}
}

// takeFlagged looks at 64 bytes before and after they are those of a round, of which the first two are the number.
func takeFlagged(c *prim.Context, box prim.Addr, round byte) {
	look, before := []prim.Run{{Addr: box, Bytes: 64}}, make([]byte, 64)
	before[0], before[1] = round-1, round-1
	c.Gather("look", look, prim.FlaggedLook, true)
	c.Watch(look, before, "a flag")
	c.Gather("look", look, prim.FlaggedLook, true)
}

// TestAWordThatIsPut puts data and then a word, for which the receiver waits: what a fence has between the two is there.
func TestAWordThatIsPut(t *testing.T) {
	for _, c := range []struct {
		name   string
		fences bool
		size   int
		kind   prim.Kind
	}{
		{"fence", true, 4, 0},
		{"no fence", false, 4, prim.SignalOvertakes},
		{"more than a word", true, 16, prim.RowReused},
	} {
		x := newLab(t, 2, prim.Options{Check: true, Fences: true})
		write(t, x.Machine, x.at(0, 256), make([]byte, 16))
		write(t, x.Machine, x.at(0, 256), []byte{7})
		err := runOn(t, x.Machine, all(2), func(p *prim.Context) error {
			if p.Rank() == 0 {
				p.PutNBI(x.at(1, 0), x.at(0, 0), n)
				if c.fences {
					p.Fence()
				}
				p.PutNBI(x.word(1, 0).Addr, x.at(0, 256), c.size)
				return nil
			}
			p.Wait(x.word(1, 0), prim.EQ, 7)
			p.Load(p.Tile(0, n), x.at(1, 0))
			return nil
		})
		if c.kind != 0 {
			wantKind(t, err, c.kind)
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
