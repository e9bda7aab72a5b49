package prim

import "github.com/torchemu/torchemu/torchemu/order"

type (
	clock  = order.Clock
	moment = order.Moment
)

// agent is a lane with what it knows.
type agent struct {
	last moment
	now  clock
}

// advance starts the agent's next moment, which knows all that came before.
func (a *agent) advance() moment {
	a.last.Tick++
	a.now.Set(a.last)
	return a.last
}
