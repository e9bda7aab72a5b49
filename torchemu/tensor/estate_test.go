package tensor_test

import (
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// TestMemoryThatIsUsedAgain gives the memory of a tensor, which stream 1 reads, to another one of stream 0: that is a race
// unless stream 0 has waited for stream 1, or the memory was not given out before that had read it, whether the read is
// told of before the first use of the other tensor or after it, as that of a device program is.
func TestMemoryThatIsUsedAgain(t *testing.T) {
	for _, x := range []struct {
		name        string
		stream      int // that reads
		waits, late bool
		waited      []int
		wrong       bool
	}{
		{name: "nothing", stream: 1, wrong: true},
		{name: "the read is told of late", stream: 1, late: true, wrong: true},
		{name: "a wait", stream: 1, waits: true},
		{name: "a wait, and told of late", stream: 1, waits: true, late: true},
		{name: "the stream was waited for", stream: 1, waited: []int{2, 1}},
		{name: "another stream was waited for", stream: 1, waited: []int{2}, wrong: true},
		{name: "no stream", stream: -1},
	} {
		old, next := floats(t), floats(t)
		next.Storage().Inherit(old.Storage(), x.waited)
		read := deed(1, nil, x.stream)
		var known order.Clock
		if x.waits {
			known.Set(read.At)
		}
		first := deed(2, known, 0)
		uses := []func() error{
			func() error { return old.Touch(tensor.Read, read) },
			func() error { return next.Touch(tensor.Write, first) },
		}
		if x.late {
			uses[0], uses[1] = uses[1], uses[0]
		}
		err := uses[0]()
		if err == nil {
			err = uses[1]()
		}
		if (err != nil) != x.wrong || err != nil && !strings.Contains(err.Error(), "freed while stream 1 may still use it") {
			t.Errorf("%s: %v", x.name, err)
		}
		if err := next.Touch(tensor.Write, deed(2, known, 0)); err != nil {
			t.Errorf("%s, a later use: %v", x.name, err)
		}
	}
}

func floats(t *testing.T) *tensor.Tensor {
	x, err := tensor.New(dtype.F32, 16)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// deed is one on a stream of rank 0, in a lane, for which some other things are over.
func deed(lane int32, known order.Clock, stream int) *tensor.Deed {
	at := order.Moment{Lane: lane, Tick: 1}
	known = known.Clone()
	known.Set(at)
	end := order.NewPoint(known).Seal()
	return &tensor.Deed{Name: "op", At: at, Known: known, Begin: end, End: end, Stream: stream + 1}
}
