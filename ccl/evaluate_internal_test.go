package ccl

import (
	"bytes"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// A program that has no room left for code compiles it again whenever it runs.
func TestEvaluateWithoutRoomForCode(t *testing.T) {
	v := Values{Op: tensor.Sum, DType: dtype.U8, Inputs: [][]byte{{1, 2, 3}, {10, 20, 30}, {100, 200, 44}}}
	s := allReduceRing().Build(Layout{World: 3}, 0)
	p := s.program()
	p.kept = maxInstructions
	for range 2 {
		got, err := s.Evaluate(v)
		if err != nil {
			t.Fatal(err)
		}
		if want := []byte{111, 222, 77}; !bytes.Equal(got[0].Bytes(), want) || got[2] != got[0] {
			t.Errorf("got %v, want %v", got[0].Bytes(), want)
		}
	}
	if p.surveyed[0].batch != nil {
		t.Error("the code was kept")
	}
}
