package distributed

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Operation is a rank's call of a collective.
type Operation struct {
	Name       string // as the program called it, for messages: "all_reduce"
	Collective collective.Kind
	Reduce     tensor.ReduceOp // of the collectives that reduce
	Factor     *float64        // what the rank's elements are multiplied by before they are reduced; nil for nothing
	Root       int             // group rank, of the collectives that have one
	Algorithm  string          // the one that the program asks for; "" for the Options'

	// Out and In are what the rank receives and gives, nil where it does not. Where a rank has several blocks they are
	// in one tensor, one after another, or in a list with a tensor for each; or, where its own block is of several
	// tensors, with as many for each.
	Out, In []*tensor.Tensor
}

// dtype is the element type of the operation's first tensor.
func (o *Operation) dtype() dtype.DType {
	for _, list := range o.tensors() {
		for _, t := range list {
			return t.DType()
		}
	}
	return dtype.Invalid
}

// tensors are what the rank gives and what it receives.
func (o *Operation) tensors() [2][]*tensor.Tensor { return [2][]*tensor.Tensor{o.In, o.Out} }

// check verifies what one rank can know to be wrong.
func (o *Operation) check(g *ProcessGroup, member int) error {
	for _, list := range o.tensors() {
		if slices.Contains(list, nil) {
			return fmt.Errorf("%s: a tensor is nil", o.Name)
		}
	}
	d := o.dtype()
	for _, list := range o.tensors() {
		for _, t := range list {
			if t.DType() != d {
				return fmt.Errorf("%s: Invalid usage of tensors with different dtypes: Found torch.%s and torch.%s",
					o.Name, d.Name(), t.DType().Name())
			}
		}
	}
	if o.Collective.Reduces() {
		if err := o.Reduce.Check(d); err != nil {
			return err
		}
	}
	if o.Collective.Rooted() && (o.Root < 0 || o.Root >= g.Size()) {
		return fmt.Errorf("%s: invalid root rank: %d; the group has ranks 0 to %d", o.Name, o.Root, g.Size()-1)
	}
	return o.checkSizes(g.Size(), member)
}

// checkSizes compares what the rank gives with what it receives.
func (o *Operation) checkSizes(world, member int) error {
	in, out := numels(o.In), numels(o.Out)
	switch c := o.Collective; {
	case c.Gathers():
		return o.checkBlocks(blocks{"output", o.Out, world, len(o.In)}, "input", in, member)
	case c.Scatters():
		return o.checkBlocks(blocks{"input", o.In, world, len(o.Out)}, "output", out, member)
	case c.Exchanges():
		return cmp.Or(o.checkExchanged("input", o.In, world), o.checkExchanged("output", o.Out, world))
	case !c.Starts().Root && !c.Ends().Root && in != out:
		return o.wrongSize("output", out, "the input has %d", in)
	}
	return nil
}

// checkExchanged verifies that there is a block for every rank.
func (o *Operation) checkExchanged(name string, list []*tensor.Tensor, world int) error {
	b := blocks{name, list, world, 1}
	switch {
	case !b.together() && len(list) != world:
		return fmt.Errorf("%s: invalid %s tensor list (expected length %d, got %d)", o.Name, name, world, len(list))
	case b.together() && list[0].Numel()%world != 0:
		return o.wrongSize(name, list[0].Numel(), "its blocks for the %d ranks must be equal", world)
	}
	return nil
}

// blocks are a block for each of world ranks: in one tensor, or each of as many tensors as per says.
type blocks struct {
	name  string
	list  []*tensor.Tensor
	world int
	per   int
}

// together says whether all blocks are in one tensor.
func (b blocks) together() bool { return len(b.list) == 1 && b.world != 1 }

// numel is the number of elements of block r. Blocks in one tensor are equal.
func (b blocks) numel(r int) int {
	if b.together() {
		return b.list[0].Numel() / b.world
	}
	return numels(b.list[r*b.per : (r+1)*b.per])
}

// checkBlocks verifies that the many blocks, one for each rank, fit the rank's own one.
func (o *Operation) checkBlocks(many blocks, oneName string, one, member int) error {
	switch {
	case many.list == nil:
		return nil
	case many.together():
		if has := numels(many.list); has != many.world*one {
			return o.wrongSize(many.name, has, "%s tensor size must be equal to world_size times %s tensor size, which is %d × %d",
				many.name, oneName, many.world, one)
		}
	case len(many.list) != many.world*many.per:
		return fmt.Errorf("%s: invalid %s tensor list (expected length %d, got %d)",
			o.Name, many.name, many.world*many.per, len(many.list))
	case many.numel(member) != one:
		return o.wrongSize(fmt.Sprintf("%s at index %d", many.name, member), many.numel(member), "the %s has %d", oneName, one)
	}
	return nil
}

func (o *Operation) wrongSize(what string, has int, format string, args ...any) error {
	return fmt.Errorf("%s: the %s has %d elements, but %s", o.Name, what, has, fmt.Sprintf(format, args...))
}

// numels adds up the elements of tensors.
func numels(list []*tensor.Tensor) int {
	n := 0
	for _, t := range list {
		n += t.Numel()
	}
	return n
}

// call is what the ranks of a group must agree on when they meet.
type call struct {
	name  string
	dtype dtype.DType
	op    string // "" without one
	root  int    // -1 without one
	size  int    // elements that must be equal on all ranks; -1 where they may differ
	parts string // the sizes of several tensors that are moved as one: "3+5"; "" for a single one
}

func callOf(o *Operation) call {
	k := call{name: o.Name, dtype: o.dtype(), root: -1, size: -1}
	if o.Collective.Reduces() {
		k.op = o.Reduce.String()
		if o.Factor != nil {
			k.op = "premul_sum"
		}
	}
	if o.Collective.Rooted() {
		k.root = o.Root
	}
	if o.Collective.Reduces() || o.Collective.Blocks(1) == 0 {
		k.size = max(numels(o.In), numels(o.Out))
	}
	switch {
	case o.Collective.Scatters():
		k.parts = partsOf(o.Out)
	case !o.Collective.Exchanges():
		k.parts = partsOf(o.In)
	}
	return k
}

// partsOf spells the sizes of several tensors.
func partsOf(list []*tensor.Tensor) string {
	if len(list) < 2 {
		return ""
	}
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = strconv.Itoa(t.Numel())
	}
	return strings.Join(texts, "+")
}

func (c call) String() string {
	if c.name == barrier {
		return c.name // what its ranks exchange is no business of the program
	}
	var b strings.Builder
	b.WriteString(c.name)
	if c.size >= 0 {
		b.WriteString(" of " + count(c.size, c.dtype))
	} else if c.dtype != dtype.Invalid {
		fmt.Fprintf(&b, " of %s", c.dtype.Name())
	}
	if c.parts != "" {
		fmt.Fprintf(&b, " (%s)", c.parts)
	}
	if c.op != "" {
		fmt.Fprintf(&b, ", op %s", c.op)
	}
	if c.root >= 0 {
		fmt.Fprintf(&b, ", root %d", c.root)
	}
	return b.String()
}

// barrier is the name of the collective that moves nothing.
const barrier = "barrier"

// count is a number of elements: "1 float32 element".
func count(n int, d dtype.DType) string {
	if n == 1 {
		return fmt.Sprintf("1 %s element", d.Name())
	}
	return fmt.Sprintf("%d %s elements", n, d.Name())
}

// differences names, in words, what c and d disagree on.
func (c call) differences(d call) []string {
	if c.name != d.name {
		return []string{"operation"}
	}
	var list []string
	for _, f := range []struct {
		name string
		same bool
	}{
		{"dtype", c.dtype == d.dtype},
		{"number of elements", c.size == d.size},
		{"sizes of the tensors", c.parts == d.parts || c.size != d.size},
		{"reduce op", c.op == d.op},
		{"root", c.root == d.root},
	} {
		if !f.same {
			list = append(list, f.name)
		}
	}
	return list
}

// right says what would be right where c and d disagree.
func (c call) right(d call) string {
	if c.name != d.name {
		return "All ranks of a group must call the same collectives in the same order."
	}
	return fmt.Sprintf("All ranks of the group must call this %s with the same %s.",
		c.name, strings.Join(c.differences(d), " and "))
}
