package replay

import (
	"encoding/binary"
	"fmt"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// decode reads the messages of a Chakra trace, each behind its length: metadata, then nodes.
func decode(file string, data []byte) ([]node, error) {
	var nodes []node
	for at, count := 0, 0; at < len(data); count++ {
		size, n := binary.Uvarint(data[at:])
		if n <= 0 || size > uint64(len(data)-at-n) {
			return nil, fmt.Errorf("%s: message %d, at byte %d: it is longer than the file", file, count, at)
		}
		text := data[at+n : at+n+int(size)]
		if count > 0 {
			one, err := decodeNode(text)
			if err != nil {
				return nil, fmt.Errorf("%s: message %d, at byte %d: %w", file, count, at, err)
			}
			nodes = append(nodes, one)
		}
		at += n + int(size)
	}
	return nodes, nil
}

// decodeNode reads a Node.
func decodeNode(text []byte) (node, error) {
	n := node{start: -1, numbers: map[string]int64{}, texts: map[string]string{}}
	err := eachField(text, func(field int, number uint64, inner []byte) error {
		switch field {
		case 1:
			n.id = number
		case 2:
			n.name = string(inner)
		case 3:
			n.kind = number
		case 4, 5: // control and data dependencies, one by one or packed
			return n.depend(number, inner)
		case 7:
			n.duration = sim.Time(number) * sim.Microsecond
		case 10:
			return n.attribute(inner)
		}
		return nil
	})
	if ps, ok := n.numbers["duration_ps"]; ok {
		n.duration = sim.Time(ps)
	}
	if ps, ok := n.numbers["start_ps"]; ok {
		n.start = sim.Time(max(0, ps))
	}
	if n.duration < 0 || n.duration > never || n.start > never {
		return n, fmt.Errorf("node %d: a time of %d ps, from %d on", n.id, n.duration, n.start)
	}
	return n, err
}

// never is later than any job ends.
const never sim.Time = 1 << 60

func (n *node) depend(number uint64, inner []byte) error {
	if inner == nil {
		n.after = append(n.after, number)
		return nil
	}
	for len(inner) > 0 {
		id, size := binary.Uvarint(inner)
		if size <= 0 {
			return fmt.Errorf("dependencies end within a number")
		}
		n.after, inner = append(n.after, id), inner[size:]
	}
	return nil
}

// attribute reads an AttributeProto: a name, and a number or a text in whichever field.
func (n *node) attribute(text []byte) error {
	name, isText, value, words := "", false, uint64(0), ""
	err := eachField(text, func(field int, number uint64, inner []byte) error {
		switch {
		case field == 1:
			name = string(inner)
		case field == 2: // what it means, for people
		case inner != nil:
			isText, words = true, string(inner)
		default:
			value = number
		}
		return nil
	})
	if isText {
		n.texts[name] = words
	} else {
		n.numbers[name] = int64(value)
	}
	return err
}

// eachField goes through the fields of a protocol buffer; those with a text have inner.
func eachField(text []byte, each func(field int, number uint64, inner []byte) error) error {
	for len(text) > 0 {
		tag, n := binary.Uvarint(text)
		if n <= 0 {
			return fmt.Errorf("it ends within a field's number")
		}
		text = text[n:]
		number, inner := uint64(0), []byte(nil)
		size := 0
		switch tag & 7 {
		case 0:
			number, size = binary.Uvarint(text)
		case 1:
			size = 8
		case 5:
			size = 4
		case 2:
			length, k := binary.Uvarint(text)
			if k <= 0 || length > uint64(len(text)-k) {
				return fmt.Errorf("field %d is longer than what is around it", tag>>3)
			}
			inner, size = text[k:k+int(length):k+int(length)], k+int(length)
			if inner == nil {
				inner = []byte{}
			}
		}
		if size <= 0 || size > len(text) {
			return fmt.Errorf("field %d is of kind %d, or ends too early", tag>>3, tag&7)
		}
		text = text[size:]
		if err := each(int(tag>>3), number, inner); err != nil {
			return err
		}
	}
	return nil
}
