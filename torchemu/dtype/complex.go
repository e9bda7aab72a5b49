package dtype

// convertComplex converts from or to a complex type, through its parts.
func convertComplex(dst []byte, to DType, src []byte, from DType) {
	switch {
	case to.IsComplex() && from.IsComplex():
		Convert(dst, to.Real(), src, from.Real())
	case to.IsComplex():
		fromReal(dst, to.Real(), src, from)
	case to == Bool:
		parts := make([]byte, 2*len(dst))
		Convert(parts, Bool, src, from.Real())
		for i := range dst {
			dst[i] = parts[2*i] | parts[2*i+1]
		}
	default:
		toReal(dst, to, src, from.Real())
	}
}

// fromReal converts to complex numbers with parts of the type part.
func fromReal(dst []byte, part DType, src []byte, from DType) {
	in, out := from.Size(), part.Size()
	buf := make([]byte, block*out)
	for len(src) > 0 {
		n := min(block, len(src)/in)
		Convert(buf[:n*out], part, src[:n*in], from)
		clear(dst[:2*n*out])
		for i := range n {
			copy(dst[2*i*out:], buf[i*out:(i+1)*out])
		}
		src, dst = src[n*in:], dst[2*n*out:]
	}
}

// toReal converts the real parts of complex numbers with parts of the type part.
func toReal(dst []byte, to DType, src []byte, part DType) {
	in, out := part.Size(), to.Size()
	buf := make([]byte, block*in)
	for len(src) > 0 {
		n := min(block, len(src)/(2*in))
		for i := range n {
			copy(buf[i*in:(i+1)*in], src[2*i*in:])
		}
		Convert(dst[:n*out], to, buf[:n*in], part)
		src, dst = src[2*n*in:], dst[n*out:]
	}
}
