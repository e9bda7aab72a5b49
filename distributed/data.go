package distributed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// measure works out how long the blocks are, and verifies that the members agree on it.
func (m *meeting) measure() error {
	switch {
	case m.collective.Gathers():
		return m.measureBlocks(func(p part) []*tensor.Tensor { return p.in }, func(p part) []*tensor.Tensor { return p.out })
	case m.collective.Scatters():
		return m.measureBlocks(func(p part) []*tensor.Tensor { return p.out }, func(p part) []*tensor.Tensor { return p.in })
	case m.collective.Exchanges():
		return m.measurePairs()
	}
	m.elems = m.call.size
	return nil
}

// measureBlocks takes the length of block r from the tensor that member r has for it alone.
func (m *meeting) measureBlocks(one, many func(part) []*tensor.Tensor) error {
	sizes := make([]int, len(m.parts))
	for r, p := range m.parts {
		sizes[r] = numels(one(p))
	}
	for r, p := range m.parts {
		if err := m.compareBlocks(r, blocks{list: many(p), world: len(sizes), per: len(one(p))}, sizes); err != nil {
			return err
		}
	}
	m.setSizes(sizes)
	return nil
}

// compareBlocks verifies that member r's blocks have the given sizes.
func (m *meeting) compareBlocks(r int, many blocks, sizes []int) error {
	if many.list == nil {
		return nil
	}
	for i, size := range sizes {
		if n := many.numel(i); n != size {
			return m.disagreement(r, i, n, size)
		}
	}
	return nil
}

// measurePairs takes the length of block (s, d) from what s gives and verifies it with what d receives.
func (m *meeting) measurePairs() error {
	n := len(m.parts)
	if m.allTogether() {
		m.elems = n * m.parts[0].in[0].Numel()
		return nil
	}
	sizes := make([]int, 0, n*n)
	for s, p := range m.parts {
		given := blocks{list: p.in, world: n, per: 1}
		for d, q := range m.parts {
			gives, has := given.numel(d), blocks{list: q.out, world: n, per: 1}.numel(s)
			if has != gives {
				return m.disagreement(d, s, has, gives)
			}
			sizes = append(sizes, gives)
		}
	}
	m.setSizes(sizes)
	return nil
}

// allTogether says whether all members give and receive equal blocks in one tensor each.
func (m *meeting) allTogether() bool {
	for _, p := range m.parts {
		if len(p.in) != 1 || len(p.out) != 1 || p.in[0].Numel() != p.out[0].Numel() ||
			p.in[0].Numel() != m.parts[0].in[0].Numel() {
			return false
		}
	}
	return true
}

func (m *meeting) setSizes(sizes []int) {
	m.elems = sum(sizes)
	for _, n := range sizes {
		if n != sizes[0] {
			m.sizes = sizes
		}
	}
}

func sum(list []int) int {
	total := 0
	for _, n := range list {
		total += n
	}
	return total
}

// disagreement says that member r has another length for member i's block than that one has.
func (m *meeting) disagreement(r, i, rs, is int) error {
	b := m.group.backend
	rank, other := m.group.Members[r], m.group.Members[i]
	return &MismatchError{
		Group: m.group.Name, Seq: m.seq, Rank: rank, Other: other,
		Call:      fmt.Sprintf("%v with %s for rank %d's block", m.call, plural(rs), other),
		OtherCall: fmt.Sprintf("%v with %s for it", m.call, plural(is)),
		Site:      b.Sites.Text(m.parts[r].site), OtherSite: b.Sites.Text(m.parts[i].site),
		Differ: "the number of elements",
		Right:  fmt.Sprintf("Rank %d must make room for just what rank %d gives.", rank, other),
		Calls:  []Fingerprint{m.fingerprintOf(r), m.fingerprintOf(i)},
	}
}

func plural(n int) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

// moveData executes the schedule on the members' tensors.
func (m *meeting) moveData() error {
	if m.isPhantom() || m.group.of != nil && m.collective.Rooted() {
		return nil // what a root gives, a rank that stands for it has
	}
	inputs := make([][]byte, len(m.parts))
	for i, p := range m.parts {
		inputs[i] = multiplied(contents(p.in), m.scalars.dtype, p.factor)
	}
	results, err := m.schedule.Evaluate(ccl.Values{
		Op: m.op, DType: m.scalars.dtype, AccumulateF32: m.group.backend.Options.AccumulateF32,
		Inputs: inputs, Sizes: m.scalars.sizes,
	})
	if err != nil {
		return err
	}
	defer releaseEach(results)
	for i, p := range m.parts {
		if m.group.isMirrored(i) {
			continue
		}
		if err := store(p.out, results[i]); err != nil {
			return err
		}
	}
	return nil
}

// isPhantom says whether some member's tensors have no bytes: there is no data to move then, for any of them.
func (m *meeting) isPhantom() bool {
	for _, p := range m.parts {
		for _, list := range [][]*tensor.Tensor{p.in, p.out} {
			if slices.ContainsFunc(list, func(t *tensor.Tensor) bool { return t.Storage().IsPhantom() }) {
				return true
			}
		}
	}
	return false
}

// contents returns the tensors' elements in order, without a copy when they lie so in memory; nil for no tensors.
func contents(list []*tensor.Tensor) []byte {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return elements(list[0])
	}
	all := []byte{}
	for _, t := range list {
		all = append(all, elements(t)...)
	}
	return all
}

// multiplied returns the elements times the factor, which is rounded to their type first, as each product is.
func multiplied(elements []byte, d dtype.DType, factor *float64) []byte {
	if factor == nil {
		return elements
	}
	number := binary.LittleEndian.AppendUint64(nil, math.Float64bits(*factor))
	one := make([]byte, d.Size())
	dtype.Convert(one, d, number, dtype.F64)
	products := bytes.Repeat(one, len(elements)/d.Size())
	tensor.Combine(tensor.Prod, d, products, elements, products)
	return products
}

func elements(t *tensor.Tensor) []byte {
	if !t.IsContiguous() {
		return t.Gather()
	}
	size := t.DType().Size()
	lo := t.Offset() * size
	return t.Storage().Bytes()[lo : lo+t.Numel()*size]
}

// store makes result the tensors' contents, one after another. A tensor that is all of its storage takes the memory
// over, shared with the other members until someone writes.
func store(list []*tensor.Tensor, result *tensor.Storage) error {
	if result == nil {
		return nil
	}
	if len(list) == 1 && list[0].IsContiguous() && list[0].Storage().Len() == result.Len() {
		list[0].Storage().Adopt(result)
		return nil
	}
	rest := result.Bytes()
	for _, t := range list {
		n := t.Numel() * t.DType().Size()
		if err := t.Scatter(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// releaseEach gives up this function's hold on the results, of which several may be the same.
func releaseEach(results []*tensor.Storage) {
	released := map[*tensor.Storage]bool{nil: true}
	for _, r := range results {
		if !released[r] {
			released[r] = true
			r.Release()
		}
	}
}
