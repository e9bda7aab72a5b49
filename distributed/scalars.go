package distributed

import "github.com/torchemu/torchemu/torchemu/dtype"

// scalars are the numbers that a schedule moves and combines: the elements of all blocks, or of complex ones the parts,
// as PyTorch hands those to its backends.
type scalars struct {
	dtype dtype.DType
	elems int   // of all blocks together
	sizes []int // of each block; nil when they are equal
}

func scalarsOf(d dtype.DType, elems int, sizes []int) scalars {
	if !d.IsComplex() {
		return scalars{d, elems, sizes}
	}
	parts := scalars{dtype: d.Real(), elems: 2 * elems}
	for _, n := range sizes {
		parts.sizes = append(parts.sizes, 2*n)
	}
	return parts
}
