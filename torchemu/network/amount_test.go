package network

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
)

func (w picobytes) big() *big.Int {
	n := new(big.Int).SetUint64(w.hi)
	return n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(w.lo))
}

// Against big integers: time = round(work·2^shift / value), and what is left after that time.
func TestAmounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	checked := 0
	for range 20000 {
		w := amount(rng.Int64() >> rng.IntN(63))
		r := rate{1 + rng.Uint64()>>(1+rng.IntN(62)), uint8(rng.IntN(63))}
		value := new(big.Int).SetUint64(r.value)
		want := new(big.Int).Lsh(w.big(), uint(r.shift))
		want.Add(want, new(big.Int).Rsh(value, 1))
		if r.shift > 0 {
			want.Add(want, new(big.Int).Rsh(value, 20)) // halves begin early
		}
		want.Quo(want, value)
		got := w.at(r)
		fits := got != busy
		if fits != (want.Cmp(big.NewInt(int64(busy))) < 0) || fits && got != sim.Time(want.Int64()) {
			t.Fatalf("%v picobytes at %+v take %d ps (fits: %v), want %v", w.big(), r, got, fits, want)
		}
		if !fits {
			continue
		}
		checked++
		dt := sim.Time(rng.Int64N(int64(got) + 1))
		done := new(big.Int).Mul(value, big.NewInt(int64(dt)))
		left := new(big.Int).Sub(w.big(), done.Rsh(done, uint(r.shift)))
		if left.Sign() < 0 {
			left.SetInt64(0)
		}
		if w.less(r, dt).big().Cmp(left) != 0 {
			t.Fatalf("%v picobytes at %+v for %d ps leave %v, want %v", w.big(), r, dt, w.less(r, dt).big(), left)
		}
	}
	if checked < 5000 {
		t.Errorf("only %d of 20000 cases fit", checked)
	}
}
