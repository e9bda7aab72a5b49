package tp

import "fmt"

// NotInitializedError says that a group was used before [InitializeModelParallel], after [State.Destroy], or by a rank
// that is in no group of the kind. It is an AssertionError in Megatron.
type NotInitializedError struct {
	Group string // the kind of group: "tensor model parallel"
	Why   string // "" where nothing was initialized
}

func (e *NotInitializedError) Error() string {
	text := e.Group + " group is not initialized"
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// NotDivisibleError says that Size cannot be divided into By equal parts. It is an AssertionError in Megatron, and a
// RuntimeError where Size is the world size.
type NotDivisibleError struct {
	What   string // what has the size: "output size"
	Size   int
	ByWhat string // what it is divided by: "tensor model parallel size"; may be ""
	By     int
}

func (e *NotDivisibleError) Error() string {
	if e.ByWhat == "" {
		return fmt.Sprintf("%s (%d) is not divisible by %d", e.What, e.Size, e.By)
	}
	return fmt.Sprintf("%s (%d) is not divisible by %s (%d)", e.What, e.Size, e.ByWhat, e.By)
}

// OfWorld says whether it is the world size that cannot be divided.
func (e *NotDivisibleError) OfWorld() bool { return e.What == worldSize }

// worldSize is what messages call the number of ranks.
const worldSize = "world_size"

// ConflictError says that the sizes of a [Config] contradict each other. It is an AssertionError in Megatron.
type ConflictError struct{ Text string }

func (e *ConflictError) Error() string { return e.Text }

func conflict(format string, args ...any) error {
	return &ConflictError{fmt.Sprintf(format, args...)}
}

// divide returns size/by, which must be whole.
func divide(what string, size int, byWhat string, by int) (int, error) {
	if by < 1 || size%by != 0 {
		return 0, &NotDivisibleError{what, size, byWhat, by}
	}
	return size / by, nil
}

// ShapeError says that a tensor has another shape than it must have. It is a RuntimeError in Megatron.
type ShapeError struct {
	What      string // what the tensor is: "the weight"
	Got, Want []int  // a size of -1 in Want may be any
}

func (e *ShapeError) Error() string {
	return fmt.Sprintf("%s has shape %s, not %s as expected", e.What, shapeText(e.Got), shapeText(e.Want))
}

// shapeText writes a shape as [2, 3]; any size as …
func shapeText(shape []int) string {
	text := "["
	for i, n := range shape {
		if i > 0 {
			text += ", "
		}
		if n < 0 {
			text += "…"
		} else {
			text += fmt.Sprint(n)
		}
	}
	return text + "]"
}
