package dtype_test

import (
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

func TestParse(t *testing.T) {
	for name, want := range map[string]dtype.DType{
		"f16": dtype.F16, "float16": dtype.F16, "half": dtype.F16, "torch.float16": dtype.F16, "torch.half": dtype.F16,
		"bf16": dtype.BF16, "bfloat16": dtype.BF16, "f8e4m3": dtype.F8E4M3, "float8_e4m3fn": dtype.F8E4M3,
		"torch.float8_e5m2": dtype.F8E5M2, "f8e5m2": dtype.F8E5M2, "bool": dtype.Bool, "torch.bool": dtype.Bool,
		"u8": dtype.U8, "uint8": dtype.U8, "i8": dtype.I8, "short": dtype.I16, "int": dtype.I32, "long": dtype.I64,
		"i64": dtype.I64, "int64": dtype.I64, "uint16": dtype.U16, "u32": dtype.U32, "uint64": dtype.U64,
		"float": dtype.F32, "f32": dtype.F32, "double": dtype.F64, "F64": dtype.F64, " Float32 ": dtype.F32,
		"c64": dtype.C64, "cfloat": dtype.C64, "torch.complex64": dtype.C64, "cdouble": dtype.C128, "complex128": dtype.C128,
	} {
		if got, err := dtype.Parse(name); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", name, got, err, want)
		}
	}
}

func TestParseUnknownListsTheNames(t *testing.T) {
	for _, name := range []string{"", "torch.", "invalid", "f17", "float 16", "int128", "complex32", "complex"} {
		d, err := dtype.Parse(name)
		if err == nil || d != dtype.Invalid {
			t.Fatalf("Parse(%q) = %v, %v; want an error", name, d, err)
		}
		for _, known := range dtype.All() {
			if !strings.Contains(err.Error(), known.String()) {
				t.Errorf("Parse(%q): %q does not list %v", name, err, known)
			}
		}
	}
}

func TestTraits(t *testing.T) {
	for _, want := range []struct {
		d                      dtype.DType
		short, name            string
		size                   int
		float, integer, signed bool
	}{
		{dtype.Bool, "bool", "bool", 1, false, false, false},
		{dtype.U8, "u8", "uint8", 1, false, true, false},
		{dtype.U16, "u16", "uint16", 2, false, true, false},
		{dtype.U32, "u32", "uint32", 4, false, true, false},
		{dtype.U64, "u64", "uint64", 8, false, true, false},
		{dtype.I8, "i8", "int8", 1, false, true, true},
		{dtype.I16, "i16", "int16", 2, false, true, true},
		{dtype.I32, "i32", "int32", 4, false, true, true},
		{dtype.I64, "i64", "int64", 8, false, true, true},
		{dtype.F8E4M3, "f8e4m3", "float8_e4m3fn", 1, true, false, true},
		{dtype.F8E5M2, "f8e5m2", "float8_e5m2", 1, true, false, true},
		{dtype.F16, "f16", "float16", 2, true, false, true},
		{dtype.BF16, "bf16", "bfloat16", 2, true, false, true},
		{dtype.F32, "f32", "float32", 4, true, false, true},
		{dtype.F64, "f64", "float64", 8, true, false, true},
		{dtype.C64, "c64", "complex64", 8, false, false, true},
		{dtype.C128, "c128", "complex128", 16, false, false, true},
	} {
		d := want.d
		if d.String() != want.short || d.Name() != want.name || d.Size() != want.size ||
			d.IsFloat() != want.float || d.IsInteger() != want.integer || d.IsSigned() != want.signed {
			t.Errorf("%v: got %s %s %d %v %v %v, want %+v", d, d.String(), d.Name(), d.Size(), d.IsFloat(), d.IsInteger(), d.IsSigned(), want)
		}
	}
}

func TestAllIsEveryTypeOnceWithNamesThatParseBack(t *testing.T) {
	all := dtype.All()
	if len(all) != 17 {
		t.Fatalf("%d types", len(all))
	}
	for i, d := range all {
		if int(d) != i+1 || !d.Valid() {
			t.Errorf("All()[%d] = %v", i, d)
		}
		if names := d.Names(); names[0] != d.String() || names[1] != d.Name() {
			t.Errorf("names of %v: %v", d, names)
		}
		for _, name := range append(d.Names(), "torch."+d.Name(), strings.ToUpper(d.Name())) {
			if back, err := dtype.Parse(name); err != nil || back != d {
				t.Errorf("Parse(%q) = %v, %v; want %v", name, back, err, d)
			}
		}
	}
}

func TestPartsOfComplexTypes(t *testing.T) {
	for _, d := range dtype.All() {
		want := d
		switch d {
		case dtype.C64:
			want = dtype.F32
		case dtype.C128:
			want = dtype.F64
		}
		if d.Real() != want || d.IsComplex() != (want != d) || d.IsComplex() && d.Size() != 2*want.Size() {
			t.Errorf("%v: parts of %v, complex %v, %d bytes", d, d.Real(), d.IsComplex(), d.Size())
		}
	}
	if d := dtype.Invalid; d.Real() != d || d.IsComplex() {
		t.Errorf("the invalid type has parts of %v, complex %v", d.Real(), d.IsComplex())
	}
}

func TestInvalidHasNoTraits(t *testing.T) {
	for _, d := range []dtype.DType{dtype.Invalid, dtype.C128 + 1, 255} {
		if d.Valid() || d.Size() != 0 || d.IsFloat() || d.IsInteger() || d.IsSigned() || d.Names() != nil || !strings.Contains(d.String(), "invalid") {
			t.Errorf("dtype %d: %v %d", uint8(d), d, d.Size())
		}
	}
}
