package prim_test

import (
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
)

// counting is a gathering in two rounds: ranks 1 and 2 send to rank 0 and count in a word of it, for which it waits before
// it looks at what they have sent.
type counting struct {
	words  int  // one for both senders, or one for each
	tells  bool // rank 0 tells the senders when it has waited
	late   int  // the sender that comes late
	looks  bool
	rounds int64
}

func (k counting) run(t *testing.T) error {
	x := newLab(t, 3, prim.Options{Check: true})
	x.Launch("count", func(c *prim.Context) error {
		if c.Rank() > 0 {
			k.send(x, c)
			return nil
		}
		for round := range k.rounds {
			for w := range k.words {
				c.Wait(x.word(0, w), prim.GE, (round+1)*2/int64(k.words))
			}
			if k.looks {
				for sender := 1; sender <= 2; sender++ {
					c.Load(c.Tile(64*sender, 64), x.at(0, int(round)*256+64*sender))
				}
			}
			c.PipeBarrier(prim.AllPipes)
			if k.tells {
				c.Signal(x.word(1, 5), prim.Add, 1)
				c.Signal(x.word(2, 5), prim.Add, 1)
			}
		}
		return nil
	})
	return x.Run()
}

func (k counting) send(x *lab, c *prim.Context) {
	for round := range k.rounds {
		if c.Rank() == k.late {
			for range 40 {
				c.Test(x.word(c.Rank(), 7), prim.EQ, 1) // some time
			}
		}
		c.PutSignalNBI(x.at(0, int(round)*256+64*c.Rank()), x.at(c.Rank(), 2048), 64, x.word(0, c.Rank()%k.words), prim.Add, 1)
		if k.tells {
			c.Wait(x.word(c.Rank(), 5), prim.GE, round+1)
		}
	}
}

// A wait for a count that a sender's second signal could satisfy instead of another one's first is named, whichever came
// first in this run; where no data depends on it, where each sender has a word, or where senders know that the wait is
// over, it is not.
func TestCountsThatOtherSignalsSatisfy(t *testing.T) {
	for _, late := range []int{0, 1, 2} {
		for _, c := range []struct {
			name  string
			k     counting
			wrong bool
		}{
			{"one word", counting{words: 1, looks: true, rounds: 2}, true},
			{"a word for each", counting{words: 2, looks: true, rounds: 2}, false},
			{"the senders wait", counting{words: 1, looks: true, tells: true, rounds: 2}, false},
			{"nobody looks", counting{words: 1, rounds: 2}, false},
			{"one round", counting{words: 1, looks: true, rounds: 1}, false},
		} {
			c.k.late = late
			err := c.k.run(t)
			if !c.wrong {
				if err != nil {
					t.Errorf("%s, rank %d late: %v", c.name, late, err)
				}
				continue
			}
			if late == 0 {
				f := wantKind(t, err, prim.Miscounted)
				wantReport(t, f, "wait that other signals can satisfy", "wait by kernel", "load by kernel", "GE 2", "a word for each sender")
			} else if err == nil {
				t.Errorf("%s, rank %d late: nothing is found", c.name, late)
			}
		}
	}
}

// TestALineThatIsItsOwnRival names a line once whose own next signal may come before its last one.
func TestALineThatIsItsOwnRival(t *testing.T) {
	x := newLab(t, 2, prim.Options{Check: true, Fences: true})
	err := runOn(t, x.Machine, all(2), func(c *prim.Context) error {
		if c.Rank() == 0 {
			for i := range 2 {
				c.PutSignalNBI(x.at(1, 64*i), x.at(0, 2048), 64, x.word(1, 0), prim.Add, 1)
			}
			return nil
		}
		c.Wait(x.word(1, 0), prim.GE, 1)
		c.Load(c.Tile(0, 64), x.at(1, 0))
		return nil
	})
	if f := wantKind(t, err, prim.Miscounted); f != nil {
		wantReport(t, f, "if another one of that line, of another time round, comes first")
	}
}

// A count that is written as memory between two rounds begins anew: signals of the last round are none that could come in the
// place of this one's.
func TestACountThatIsClearedBetweenRounds(t *testing.T) {
	for _, cleared := range []bool{true, false} {
		x := newLab(t, 3, prim.Options{Check: true})
		x.Launch("rounds", func(c *prim.Context) error {
			for range 2 {
				if c.Rank() > 0 {
					c.PutSignalNBI(x.at(0, 64*c.Rank()), x.at(c.Rank(), 2048), 64, x.word(0, 0), prim.Add, 1)
				} else {
					c.Wait(x.word(0, 0), prim.GE, 2)
					c.Load(c.Tile(0, 128), x.at(0, 64))
					c.PipeBarrier(prim.AllPipes)
				}
				c.Barrier(x.barrier)
				if c.Rank() == 0 && cleared {
					c.Write("store", x.word(0, 0).Addr, make([]byte, 4), false)
				}
				c.Barrier(x.barrier)
			}
			return nil
		})
		if err := x.Run(); (err == nil) != cleared {
			t.Errorf("cleared %v: got %v", cleared, err)
		}
	}
}

// Who writes again on the strength of credits does so wrongly where other credits than those that are meant suffice, whichever
// come first in this run, or none where the word is enough from the beginning.
func TestCreditsThatOthersCanGive(t *testing.T) {
	for _, c := range []struct {
		name  string
		words int // one for both receivers, or one for each
		cmp   prim.Cmp
		need  int64
		wrong bool
	}{
		{"one word", 1, prim.GE, 4, false},
		{"one word, greater", 1, prim.GT, 3, false},
		{"one word, half of the credits", 1, prim.GE, 2, true},
		{"one word, all but one", 1, prim.GT, 2, true},
		{"a word for each", 2, prim.GE, 2, false},
		{"a word for each, half of the credits", 2, prim.GE, 1, true},
		{"a word for each, another value than at first", 2, prim.NE, 0, true},
		{"enough from the beginning", 2, prim.GE, 0, true},
		{"another value than ever", 1, prim.NE, -1, true},
	} {
		for _, late := range []int{0, 1, 2} {
			x := newLab(t, 3, prim.Options{Check: true, Fences: true})
			x.Launch("credits", func(p *prim.Context) error {
				if p.Rank() > 0 {
					receiveInRounds(x, p, c.words, late)
					return nil
				}
				for round := range int64(2) {
					for w := range c.words {
						if round > 0 {
							p.Wait(x.word(0, 8+w), c.cmp, c.need)
						}
					}
					for r := 1; r <= 2; r++ {
						p.Put(x.at(r, 0), x.at(0, 2048), 64)
						p.Put(x.at(r, 128), x.at(0, 2048), 64)
						p.Fence()
						p.Signal(x.word(r, int(round)), prim.Set, 1)
					}
				}
				return nil
			})
			if err := x.Run(); (err != nil) != c.wrong {
				t.Errorf("%s, rank %d late: got %v", c.name, late, err)
			}
		}
	}
}

// receiveInRounds reads two buffers in each of two rounds, and gives a credit for each of them.
func receiveInRounds(x *lab, p *prim.Context, words, late int) {
	for round := range 2 {
		p.Wait(x.word(p.Rank(), round), prim.GE, 1)
		if p.Rank() == late {
			for range 40 {
				p.Test(x.word(p.Rank(), 7), prim.EQ, 1) // some time
			}
		}
		for half := range 2 {
			p.Load(p.Tile(64*half, 64), x.at(p.Rank(), 128*half))
			p.PipeBarrier(prim.AllPipes)
			p.Signal(x.word(0, 8+p.Rank()%words), prim.Add, 1)
		}
	}
}

// Two receivers give credits in one word for each of two buffers. A wait for one credit of each can be over by two of one of
// them, while the other one, which is slow, has given none: also where both of its credits have come in this run.
func TestCreditsOfASlowReceiver(t *testing.T) {
	for _, need := range []int64{2, 4} {
		x := newLab(t, 3, prim.Options{Check: true, Fences: true})
		x.Launch("credits", func(p *prim.Context) error {
			if p.Rank() > 0 {
				receiveInRounds(x, p, 1, 0)
				return nil
			}
			for half := range 2 {
				for r := 1; r <= 2; r++ {
					p.Put(x.at(r, 128*half), x.at(0, 2048), 64)
				}
			}
			p.Fence()
			for r := 1; r <= 2; r++ {
				p.Signal(x.word(r, 0), prim.Set, 1)
			}
			for range 200 {
				p.Test(x.word(0, 7), prim.EQ, 1) // until all have come, in this run
			}
			p.Wait(x.word(0, 8), prim.GE, need)
			for r := 1; r <= 2; r++ {
				p.Put(x.at(r, 0), x.at(0, 2048), 64)
				p.Put(x.at(r, 128), x.at(0, 2048), 64)
				p.Fence()
				p.Signal(x.word(r, 1), prim.Set, 1)
			}
			return nil
		})
		if err := x.Run(); (err == nil) != (need == 4) {
			t.Errorf("for %d: %v", need, err)
		}
	}
}
