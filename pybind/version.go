// Package pybind is the face that gopy exports to Python: plain functions over basic types, nothing else.
package pybind

// Version is the release of the Go core; the Python package checks that it was built from the same one.
func Version() string { return "0.1.0" }
