// Package host holds what the doors of pybind share: the registry of handles, Worlds with what belongs to them, the
// machines of device programs, and how errors become exceptions. Here arguments are checked; pybind only converts.
package host
