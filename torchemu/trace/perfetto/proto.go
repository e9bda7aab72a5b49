package perfetto

import (
	"encoding/binary"
	"math"
)

// message is the text of a protocol buffer in the making: fields, each behind its number and kind.
type message []byte

// The kinds of fields: how the text of a value is delimited.
const (
	varintKind  = 0
	fixed64Kind = 1
	bytesKind   = 2
)

func (m *message) tag(field, kind int) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|uint64(kind))
}

func (m *message) uint(field int, v uint64) {
	m.tag(field, varintKind)
	*m = binary.AppendUvarint(*m, v)
}

// int is for fields that may be negative and are not declared as sint.
func (m *message) int(field int, v int64) { m.uint(field, uint64(v)) }

func (m *message) fixed64(field int, v uint64) {
	m.tag(field, fixed64Kind)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *message) double(field int, v float64) { m.fixed64(field, math.Float64bits(v)) }

func (m *message) str(field int, s string) {
	m.tag(field, bytesKind)
	*m = binary.AppendUvarint(*m, uint64(len(s)))
	*m = append(*m, s...)
}

// sub adds a message in a message.
func (m *message) sub(field int, inner message) {
	m.tag(field, bytesKind)
	*m = binary.AppendUvarint(*m, uint64(len(inner)))
	*m = append(*m, inner...)
}
