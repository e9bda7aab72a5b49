package host

import "github.com/torchemu/torchemu/multiprocessing"

// Exploration is one of schedules, and the run of it that is going on.
type Exploration struct {
	*multiprocessing.Exploration
	now *multiprocessing.Attempt
}

// ExplorationOf finds one.
func ExplorationOf(handle int64) (*Exploration, error) {
	x, ok := Lookup(handle).(*Exploration)
	if !ok {
		return nil, Raise("RuntimeError", "%d is no exploration", handle)
	}
	return x, nil
}

// Begin prepares the next run; false when there is none.
func (x *Exploration) Begin() bool {
	x.now = x.Attempt()
	return x.now != nil
}

// run is the one that has begun.
func (x *Exploration) run() (*multiprocessing.Attempt, error) {
	if x.now == nil {
		return nil, Raise("RuntimeError", "no run of this exploration has begun")
	}
	return x.now, nil
}

// End learns from the run, and lists what pybind.EndOrder fills in.
func (x *Exploration) End() ([]int, error) {
	run, err := x.run()
	if err != nil {
		return nil, err
	}
	run.End()
	ways, switches := x.Left()
	full := 0
	if x.IsFull() {
		full = 1
	}
	return []int{ways, switches, full}, nil
}

// attempt is the policy of a World's spawn in the run of an exploration.
func (w *World) attempt(exploration int64) (multiprocessing.Policy, error) {
	x, err := ExplorationOf(exploration)
	if err != nil {
		return nil, err
	}
	if w.exploring, err = x.run(); err != nil {
		return nil, err
	}
	return w.recorded(w.exploring), nil
}

// Hides says that a World's program does something of which footprints say too little.
func (w *World) Hides() {
	if w.exploring != nil {
		w.exploring.Fill()
	}
}
