package dtype_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// codeBytes is every code of a format, raw, starting at an address that is odd.
func (f *format) codeBytes() []byte {
	raw := make([]byte, 1, 1+int(f.codes())*f.d.Size())
	for c := range f.codes() {
		for i := range f.d.Size() {
			raw = append(raw, byte(c>>(8*i)))
		}
	}
	return raw[1:]
}

func (f *format) codeAt(raw []byte, i int) uint32 {
	if f.d.Size() == 1 {
		return uint32(raw[i])
	}
	return uint32(raw[2*i]) | uint32(raw[2*i+1])<<8
}

func TestVectorsOfEveryCode(t *testing.T) {
	for _, f := range formats() {
		raw := f.codeBytes()
		wide := make([]float32, f.codes())
		dtype.ToF32(f.d, wide, raw)
		for c := range f.codes() {
			if got, want := math.Float32bits(wide[c]), math.Float32bits(f.widen(c)); got != want {
				t.Fatalf("%v %#x: vector gives %#x, scalar %#x", f.d, c, got, want)
			}
		}
		back := make([]byte, len(raw)+1)[1:]
		dtype.FromF32(f.d, back, wide)
		for c := range f.codes() {
			if got, want := f.codeAt(back, int(c)), f.narrow(wide[c]); got != want {
				t.Fatalf("%v %#x: vector narrows to %#x, scalar to %#x", f.d, c, got, want)
			}
		}
	}
}

// Every length up to a few machine vectors at every misalignment, with guards on both sides of the destination.
func TestVectorsOfEveryShortLength(t *testing.T) {
	for _, f := range formats() {
		all := f.codeBytes()
		size := f.d.Size()
		for n := range 70 {
			start := 5 + n%40 // all finite
			src := all[start*size : (start+n)*size]
			wide := make([]float32, n+2)
			wide[0], wide[n+1] = 7, 7
			dtype.ToF32(f.d, wide[1:n+1], src)
			dst := make([]byte, n*size+2)
			dst[0], dst[n*size+1] = 7, 7
			dtype.FromF32(f.d, dst[1:n*size+1], wide[1:n+1])
			if string(dst[1:n*size+1]) != string(src) {
				t.Fatalf("%v × %d: %x came back as %x", f.d, n, src, dst[1:n*size+1])
			}
			if wide[0] != 7 || wide[n+1] != 7 || dst[0] != 7 || dst[n*size+1] != 7 {
				t.Fatalf("%v × %d: written out of bounds", f.d, n)
			}
		}
	}
}

func TestF32VectorsAreCopied(t *testing.T) {
	want := []float32{1, float32(math.Copysign(0, -1)), float32(math.Inf(-1)), math.SmallestNonzeroFloat32}
	raw := make([]byte, 17)[1:]
	dtype.FromF32(dtype.F32, raw, want)
	got := make([]float32, 4)
	dtype.ToF32(dtype.F32, got, raw)
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) || *(*float32)(unsafe.Pointer(&raw[4*i])) != want[i] {
			t.Errorf("%v became %v", want[i], got[i])
		}
	}
}

func TestVectorsPanicOnMisuse(t *testing.T) {
	for name, f := range map[string]func(){
		"ToF32 of f64":    func() { dtype.ToF32(dtype.F64, make([]float32, 1), make([]byte, 8)) },
		"ToF32 of i32":    func() { dtype.ToF32(dtype.I32, make([]float32, 1), make([]byte, 4)) },
		"FromF32 to bool": func() { dtype.FromF32(dtype.Bool, make([]byte, 1), make([]float32, 1)) },
		"too long":        func() { dtype.ToF32(dtype.F16, make([]float32, 2), make([]byte, 2)) },
		"too short":       func() { dtype.FromF32(dtype.BF16, make([]byte, 4), make([]float32, 1)) },
		"invalid":         func() { dtype.FromF32(dtype.Invalid, nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
