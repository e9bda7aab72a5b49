package ccl

// compiler turns value numbers into code, one chunk after another. What it knows of a made value is in slices
// indexed by the value's number less inputs.
type compiler struct {
	*numbering
	batch *batch

	uses     []uint32  // how often code yet to be emitted will read the value
	need     []uint8   // registers that computing the value takes
	register []operand // where the value is, once emitted
	pending  []int     // values being computed: those whose operands are not all there
	free     []operand // registers of the present chunk to be used again
	width    int       // registers of the present chunk so far
}

// absent marks a value that has not been emitted.
const absent = none

func newCompiler(n *numbering, b *batch) *compiler {
	k := &compiler{numbering: n, batch: b}
	k.uses = make([]uint32, len(n.made))
	k.need = make([]uint8, len(n.made))
	k.register = make([]operand, len(n.made))
	for v := range k.register {
		k.register[v] = absent
	}
	return k
}

func (k *compiler) compile() {
	owners := k.batch.owners(k.schedule)
	k.countUses(owners)
	k.countNeeds()
	k.batch.code = make([]instr, 0, len(k.made)+k.hi-k.lo)
	k.batch.start = make([]uint32, 0, k.hi-k.lo+1)
	for c := k.lo; c < k.hi; c++ {
		k.batch.start = append(k.batch.start, uint32(len(k.batch.code)))
		k.width, k.free = 0, k.free[:0]
		k.chunk(c, owners)
	}
	k.batch.start = append(k.batch.start, uint32(len(k.batch.code)))
}

// chunk emits the code of one chunk.
func (k *compiler) chunk(c int, owners []int) {
	if k.schedule.Collective.Scatters() {
		rank := c / k.schedule.Sub
		k.result(rank, k.current[k.index(rank, c)])
		return
	}
	for _, r := range owners {
		k.result(r, k.current[k.index(r, c)])
	}
}

// countUses finds the values that the results need, and how often each is read; operands have lower numbers than
// what is made of them, so one pass downwards does. A value that no result needs ends with no use.
func (k *compiler) countUses(owners []int) {
	for _, r := range owners {
		for i, v := range k.row(r) {
			if k.schedule.has(k.schedule.ends(r), r, k.lo+i) {
				k.use(v)
			}
		}
	}
	for v := len(k.made) - 1; v >= 0; v-- {
		if k.uses[v] > 0 {
			k.use(k.made[v].a)
			k.use(k.made[v].b)
		}
	}
}

func (k *compiler) use(v valueID) {
	if k.isMade(v) {
		k.uses[int(v)-k.inputs]++
	}
}

// countNeeds is Sethi and Ullman's labelling: computing the operand that needs more registers first takes the fewest
// in all. (For values used more than once it is only a good guess.)
func (k *compiler) countNeeds() {
	for v, m := range k.made {
		a, b := k.needOf(m.a), k.needOf(m.b)
		k.need[v] = max(a, b)
		if a == b {
			k.need[v]++
		}
	}
}

func (k *compiler) needOf(v valueID) uint8 {
	if !k.isMade(v) {
		return 0
	}
	return k.need[int(v)-k.inputs]
}

// result emits the code that leaves v in a rank's result. A value with no other use is computed right there.
func (k *compiler) result(rank int, v valueID) {
	dst := firstResult + operand(rank)
	if k.isMade(v) {
		at := int(v) - k.inputs
		if k.register[at] == absent && k.uses[at] == 1 {
			k.compute(at, dst)
			return
		}
		if k.register[at] == absent {
			k.compute(at, none)
		}
	}
	k.emit(instr{dst: dst, a: k.read(v), b: none})
}

// compute emits all that made value v needs, operands first, and leaves it in dst; none stands for a register.
func (k *compiler) compute(v int, dst operand) {
	k.pending = append(k.pending[:0], v)
	for len(k.pending) > 0 {
		top := k.pending[len(k.pending)-1]
		if k.register[top] != absent { // was an operand twice
			k.pending = k.pending[:len(k.pending)-1]
			continue
		}
		if k.demand(top) {
			continue
		}
		k.pending = k.pending[:len(k.pending)-1]
		if top == v {
			k.combine(top, dst)
		} else {
			k.combine(top, none)
		}
	}
}

// demand puts the operands of v that are not there yet on the list, the one to compute first last. It says whether
// there were any.
func (k *compiler) demand(v int) bool {
	first, second := k.made[v].a, k.made[v].b
	if k.needOf(second) > k.needOf(first) {
		first, second = second, first
	}
	before := len(k.pending)
	for _, operand := range [2]valueID{second, first} {
		if k.isMade(operand) && k.register[int(operand)-k.inputs] == absent {
			k.pending = append(k.pending, int(operand)-k.inputs)
		}
	}
	return len(k.pending) > before
}

// combine emits the reduction that makes v. It may write over an operand that it is the last to read.
func (k *compiler) combine(v int, dst operand) {
	in := instr{a: k.read(k.made[v].a), b: k.read(k.made[v].b), dst: dst}
	if dst == none {
		in.dst = k.allocate()
	}
	k.register[v] = in.dst
	k.emit(in)
}

// read returns where v is, and frees its register when no later code reads it.
func (k *compiler) read(v valueID) operand {
	if !k.isMade(v) {
		return ^operand(int(v) / (k.hi - k.lo))
	}
	at := int(v) - k.inputs
	k.uses[at]--
	if k.uses[at] == 0 {
		k.free = append(k.free, k.register[at])
	}
	return k.register[at]
}

func (k *compiler) allocate() operand {
	if last := len(k.free) - 1; last >= 0 {
		r := k.free[last]
		k.free = k.free[:last]
		return r
	}
	r := operand(k.width)
	k.width++
	k.batch.registers = max(k.batch.registers, k.width)
	return r
}

func (k *compiler) emit(in instr) { k.batch.code = append(k.batch.code, in) }
