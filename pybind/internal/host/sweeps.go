package host

import "github.com/torchemu/torchemu/ccl/bandwidth"

// SweepOf finds a sweep of bandwidths by its handle.
func SweepOf(handle int64) (*bandwidth.Sweep, error) {
	if s, ok := Lookup(handle).(*bandwidth.Sweep); ok {
		return s, nil
	}
	return nil, Raise("RuntimeError", "there is no such sweep")
}
