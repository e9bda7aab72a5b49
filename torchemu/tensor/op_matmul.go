package tensor

import (
	"fmt"
	"runtime"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// MatMul returns a·b for matrices of shapes [m, k] and [k, n] and one floating-point dtype.
//
// Each element is the sum of its k products in the order of k, every product and every sum rounded to float32 (F64: to
// float64), and the whole rounded once to the dtype: what an accumulator of a matrix unit does. So an element depends
// on its row and its column alone, and a part of a product, by rows or columns, has the bits that the whole has. On
// processors other than amd64 a product and a sum may be fused and rounded once.
func MatMul(a, b *Tensor) (*Tensor, error) {
	if err := checkFloats("matmul", a, b); err != nil {
		return nil, err
	}
	x, y := a.layout.Shape, b.layout.Shape
	if len(x) != 2 || len(y) != 2 || x[1] != y[0] {
		return nil, fmt.Errorf("matmul of shapes %v and %v: want [m, k] and [k, n]", x, y)
	}
	if a.dtype == dtype.F64 {
		return product(gonum.Implementation{}.Dgemm, a, b)
	}
	return product(gonum.Implementation{}.Sgemm, a, b)
}

// gemm is the BLAS routine c = alpha·op(a)·op(b) + beta·c on row-major matrices.
type gemm[T wideFloat] func(aT, bT blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)

func product[T wideFloat](f gemm[T], a, b *Tensor) (*Tensor, error) {
	m, k, n := a.layout.Shape[0], a.layout.Shape[1], b.layout.Shape[1]
	r, err := newResult[T](a.dtype, m, n)
	if err != nil {
		return nil, err
	}
	// gonum adds in the order of k only if b is not transposed, so that wide copies a transposed b.
	if y := wide[T](b); k == 0 || !finite(y) {
		multiplyAll(r.values, wide[T](a), y, n)
	} else if n > 0 {
		x, trans, lda := operand[T](a)
		f(trans, blas.NoTrans, m, n, k, 1, x, lda, y, n, 0, r.values, n)
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	return r.done(), nil
}

// operand is a matrix as BLAS takes it: row-major, or the transpose of such a one.
func operand[T wideFloat](t *Tensor) (values []T, trans blas.Transpose, stride int) {
	l := t.layout
	flipped := t.view(Layout{[]int{l.Shape[1], l.Shape[0]}, []int{l.Strides[1], l.Strides[0]}, l.Offset})
	if !t.IsContiguous() && flipped.IsContiguous() {
		return wide[T](flipped), blas.Trans, max(1, l.Shape[0])
	}
	return wide[T](t), blas.NoTrans, max(1, l.Shape[1])
}

// finite says whether none of the values is infinite or NaN.
func finite[T wideFloat](values []T) bool {
	for _, v := range values {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// multiplyAll multiplies a by b, of n columns, without leaving anything out: BLAS skips the zeros of a, which is wrong
// where they meet something infinite.
func multiplyAll[T wideFloat](c, a, b []T, n int) {
	clear(c)
	if n == 0 || len(b) == 0 {
		return
	}
	k := len(b) / n
	for i := range len(c) / n {
		row := c[i*n : (i+1)*n]
		for l, x := range a[i*k : (i+1)*k] {
			for j, y := range b[l*n : (l+1)*n] {
				row[j] += T(x * y)
			}
		}
	}
}
