package dtype

import (
	"fmt"
	"slices"
	"strings"
)

// DType is the element type of a tensor. The zero value is Invalid.
type DType uint8

// The element types. Bool is one byte, 0 or 1; when read any other byte counts as 1. A complex number is two floats one
// after the other, the real part first.
const (
	Invalid DType = iota
	Bool
	U8
	U16
	U32
	U64
	I8
	I16
	I32
	I64
	F8E4M3
	F8E5M2
	F16
	BF16
	F32
	F64
	C64
	C128
)

// class is the arithmetic family of a type.
type class uint8

const (
	none class = iota
	boolean
	unsigned
	signed
	float
	complexes
)

// traits has one row a type, in the order of the constants. The names are, in this order: the short one, torch's,
// then synonyms.
var traits = [...]struct {
	class class
	size  int
	names []string
}{
	Invalid: {none, 0, []string{"invalid", "invalid"}},
	Bool:    {boolean, 1, []string{"bool", "bool"}},
	U8:      {unsigned, 1, []string{"u8", "uint8", "byte"}},
	U16:     {unsigned, 2, []string{"u16", "uint16"}},
	U32:     {unsigned, 4, []string{"u32", "uint32"}},
	U64:     {unsigned, 8, []string{"u64", "uint64"}},
	I8:      {signed, 1, []string{"i8", "int8"}},
	I16:     {signed, 2, []string{"i16", "int16", "short"}},
	I32:     {signed, 4, []string{"i32", "int32", "int"}},
	I64:     {signed, 8, []string{"i64", "int64", "long"}},
	F8E4M3:  {float, 1, []string{"f8e4m3", "float8_e4m3fn", "f8e4m3fn", "fp8e4m3", "fp8_e4m3", "float8_e4m3"}},
	F8E5M2:  {float, 1, []string{"f8e5m2", "float8_e5m2", "fp8e5m2", "fp8_e5m2"}},
	F16:     {float, 2, []string{"f16", "float16", "half", "fp16"}},
	BF16:    {float, 2, []string{"bf16", "bfloat16"}},
	F32:     {float, 4, []string{"f32", "float32", "float", "fp32"}},
	F64:     {float, 8, []string{"f64", "float64", "double", "fp64"}},
	C64:     {complexes, 8, []string{"c64", "complex64", "cfloat"}},
	C128:    {complexes, 16, []string{"c128", "complex128", "cdouble"}},
}

// All returns every type but Invalid, in the order of the constants.
func All() []DType {
	all := make([]DType, 0, len(traits)-1)
	for d := Bool; d <= C128; d++ {
		all = append(all, d)
	}
	return all
}

// Parse finds a type by its short name (f16), torch's (float16, torch.float16, half) or a common synonym, whatever
// the case. The error of an unknown name lists the names.
func Parse(name string) (DType, error) {
	key := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "torch.")
	for _, d := range All() {
		if slices.Contains(traits[d].names, key) {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("unknown dtype %q: want one of %s (or torch's names, such as float16)", name, shortNames())
}

func shortNames() string {
	var names []string
	for _, d := range All() {
		names = append(names, d.String())
	}
	return strings.Join(names, ", ")
}

// Valid says whether d is one of the types of [All].
func (d DType) Valid() bool { return Invalid < d && d <= C128 }

// Size is the number of bytes of an element; 0 for Invalid.
func (d DType) Size() int {
	if !d.Valid() {
		return 0
	}
	return traits[d].size
}

// String is the short name: f16, bf16, f8e4m3, f8e5m2, f32, f64, c64, c128, i8…i64, u8…u64, bool.
func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("invalid dtype %d", uint8(d))
	}
	return traits[d].names[0]
}

// Name is torch's name without the "torch.": float16, bfloat16, float8_e4m3fn, uint8, …
func (d DType) Name() string {
	if !d.Valid() {
		return d.String()
	}
	return traits[d].names[1]
}

// Names returns all names that [Parse] takes: the short one, torch's, then synonyms.
func (d DType) Names() []string {
	if !d.Valid() {
		return nil
	}
	return slices.Clone(traits[d].names)
}

func (d DType) class() class {
	if !d.Valid() {
		return none
	}
	return traits[d].class
}

// IsFloat says whether d is a floating-point type; the complex ones are not.
func (d DType) IsFloat() bool { return d.class() == float }

// IsInteger says whether d is a signed or unsigned integer; Bool is not.
func (d DType) IsInteger() bool { return d.class() == signed || d.class() == unsigned }

// IsSigned says whether d has negative values, in some part: the signed integers, the floats and the complex types.
func (d DType) IsSigned() bool { return d.class() >= signed }

// IsComplex says whether d is a type of complex numbers.
func (d DType) IsComplex() bool { return d.class() == complexes }

// Real is the type of the two parts of a complex number, and d itself of other types. Elements of d are, byte for byte,
// d.Size()/d.Real().Size() times as many of it.
func (d DType) Real() DType {
	switch d {
	case C64:
		return F32
	case C128:
		return F64
	}
	return d
}
