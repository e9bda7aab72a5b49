package network

import "fmt"

// Leftover says what an idle network still holds; "" when that is nothing.
func (n *Network) Leftover() string {
	now := n.engine.Now()
	for i, h := range n.holds {
		if h.until > now || n.links[i].load != 0 || len(n.links[i].members) > 0 || n.links[i].changed {
			return fmt.Sprintf("link %d: %+v, %+v", i, h, n.links[i])
		}
	}
	for i, s := range n.sources {
		if s.head != none || s.wake > now {
			return fmt.Sprintf("source %d: %+v", i, s)
		}
	}
	for i, until := range n.engines {
		if until > now {
			return fmt.Sprintf("DMA engine %d is busy until %v", i, until)
		}
	}
	free := 0
	for f := n.freeFlow; f != none; f = n.flows[f].next {
		free++
	}
	if free != len(n.flows) {
		return fmt.Sprintf("%d of %d flows are free", free, len(n.flows))
	}
	if len(n.changed) > 0 {
		return fmt.Sprintf("links %v have changed", n.changed)
	}
	return ""
}
