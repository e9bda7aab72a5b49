// Package protobuf writes protocol buffers field by field, without schemas and code made of them.
package protobuf

import (
	"encoding/binary"
	"math"
)

// Message is the text of a protocol buffer in the making: fields, each behind its number and kind.
type Message []byte

// The kinds of fields: how the text of a value is delimited.
const (
	varintKind  = 0
	fixed64Kind = 1
	bytesKind   = 2
)

func (m *Message) tag(field, kind int) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|uint64(kind))
}

// Uint adds a number.
func (m *Message) Uint(field int, v uint64) {
	m.tag(field, varintKind)
	*m = binary.AppendUvarint(*m, v)
}

// Int is for fields that may be negative and are not declared as sint.
func (m *Message) Int(field int, v int64) { m.Uint(field, uint64(v)) }

// Fixed64 adds eight bytes.
func (m *Message) Fixed64(field int, v uint64) {
	m.tag(field, fixed64Kind)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

// Double adds a floating-point number.
func (m *Message) Double(field int, v float64) { m.Fixed64(field, math.Float64bits(v)) }

// Str adds a text.
func (m *Message) Str(field int, s string) {
	m.tag(field, bytesKind)
	*m = binary.AppendUvarint(*m, uint64(len(s)))
	*m = append(*m, s...)
}

// Sub adds a message in a message.
func (m *Message) Sub(field int, inner Message) {
	m.Head(field, len(inner))
	*m = append(*m, inner...)
}

// Head adds what is before a message of so many bytes.
func (m *Message) Head(field, size int) {
	m.tag(field, bytesKind)
	*m = binary.AppendUvarint(*m, uint64(size))
}
