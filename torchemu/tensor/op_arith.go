package tensor

import (
	"fmt"
	"runtime"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// Add returns a + b. Like the other three it broadcasts one operand, or both, as torch does.
func Add(a, b *Tensor) (*Tensor, error) { return arith("add", &kernels[Sum], a, b) }

// Sub returns a - b.
func Sub(a, b *Tensor) (*Tensor, error) { return arith("sub", &differences, a, b) }

// Mul returns a · b, element by element.
func Mul(a, b *Tensor) (*Tensor, error) { return arith("mul", &kernels[Prod], a, b) }

// Div returns a / b.
func Div(a, b *Tensor) (*Tensor, error) { return arith("div", &quotients, a, b) }

// kernelRow has the kernels of one operation, by dtype.
type kernelRow = [dtype.F64 + 1]kernel

var (
	differences = floatRow(subtract[float32], subtract[float64])
	quotients   = floatRow(divideBy[float32], divideBy[float64])
)

func floatRow(f32 func(a, b float32) float32, f64 func(a, b float64) float64) kernelRow {
	return kernelRow{
		dtype.F8E4M3: bytewise(f32, dtype.F8E4M3ToF32, dtype.F32ToF8E4M3),
		dtype.F8E5M2: bytewise(f32, dtype.F8E5M2ToF32, dtype.F32ToF8E5M2),
		dtype.F16:    halves(f32, dtype.F16ToF32, dtype.F32ToF16),
		dtype.BF16:   halves(f32, dtype.BF16ToF32, dtype.F32ToBF16),
		dtype.F32:    floats(f32),
		dtype.F64:    floats(f64),
	}
}

func subtract[T wideFloat](a, b T) T { return a - b }
func divideBy[T wideFloat](a, b T) T { return a / b }

func arith(op string, row *kernelRow, a, b *Tensor) (*Tensor, error) {
	if err := checkFloats(op, a, b); err != nil {
		return nil, err
	}
	shape, err := broadcastShape(a.layout.Shape, b.layout.Shape)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	out, err := NewUninit(a.dtype, shape...)
	if err != nil {
		return nil, err
	}
	dst := out.writable().extent()
	row[a.dtype](dst, a.broadcast(shape), b.broadcast(shape))
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	return out, nil
}

// broadcast is the elements in row-major order under a shape that the tensor broadcasts to.
func (t *Tensor) broadcast(shape []int) []byte {
	l, _ := t.layout.expanded(shape)
	return inOrder(plane{t.dtype, l, t.storage.Bytes()})
}
