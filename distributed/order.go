package distributed

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// errand is what is known of an operation that a rank has issued, for those who look for what nothing orders. It is nil
// when no order is kept.
type errand struct {
	deed  tensor.Deed
	begin *order.Point // when the rank's device may start
	end   *order.Point // when it has ended; others' points are added to it
	of    *Backend
}

// wayOut says what makes others come after an operation between ranks.
func wayOut(c Caller) string {
	if c.Async {
		return "nothing waits for the first one: call wait() of its work before its tensors are used again"
	}
	return fmt.Sprintf("nothing waits for the first one, which is on stream %d: the other stream needs a wait_stream(), or "+
		"an event that is recorded after it and waited for", c.Stream.Number)
}

// run sends a rank on an errand: after what is on its stream, and what the group has done for it on the line before.
func (b *Backend) run(line **order.Line, c Caller, what string) *errand {
	lanes := b.World.Lanes
	if lanes == nil {
		return nil
	}
	if *line == nil {
		*line = lanes.NewLine()
	}
	(*line).Learn(c.Stream.Here())
	moment := (*line).Advance()
	begin := (*line).Here()
	end := order.NewPoint(nil, begin)
	(*line).Reach(end)
	return &errand{tensor.Deed{
		Name: what, Place: b.Sites.Text(c.Site), Rank: c.Rank, At: moment, Known: begin.Clock(), Begin: begin, End: end, Wait: wayOut(c),
	}, begin, end, b}
}

// known is what is over when the errand begins.
func (e *errand) known() *order.Point {
	if e == nil {
		return nil
	}
	return e.begin
}

// touches notes what the errand does with tensors.
func (e *errand) touches(u torchemu.Uses) error {
	if e == nil {
		return nil
	}
	for _, t := range u.Reads {
		if err := e.touch(t, tensor.Read); err != nil {
			return err
		}
	}
	for _, t := range u.Writes {
		if err := e.touch(t, tensor.Write); err != nil {
			return err
		}
	}
	return nil
}

func (e *errand) touch(t *tensor.Tensor, a tensor.Access) error {
	if look := e.of.Look; look != nil {
		look(t, a, &e.deed)
	}
	return t.Touch(a, &e.deed)
}

// tellOf lets an event say what is known once it has happened.
func (e *errand) tellOf(event *torchemu.Event, host *torchemu.Rank) {
	if e != nil {
		event.Knows(e.end)
		host.Ended(e.end)
	}
}

// fails ends what is known of an operation that fails: nobody else's part is added any more.
func (e *errand) fails() {
	if e != nil {
		e.end.Seal()
	}
}

// exchange lets every member know, once the collective has ended for it, what those know of whom it gets something. A
// kernel has its own order, which the checker sees: what its programs know is added when they end.
func (m *meeting) exchange() {
	if m.run != nil || m.parts[0].errand == nil {
		return
	}
	for i := range m.parts {
		end := m.parts[i].errand.end
		for k := range m.parts {
			if k != i && m.elems > 0 && m.gets(i, k) {
				end.Add(m.parts[k].errand.begin)
			}
		}
		end.Seal()
	}
}

// gets says whether a member gets something that depends on another one's part.
func (m *meeting) gets(member, from int) bool {
	if m.collective.Starts().Root {
		return from == m.root
	}
	return !m.collective.Ends().Root || member == m.root
}
