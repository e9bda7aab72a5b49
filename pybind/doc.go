// Package pybind has the doors between Python and the core, which gopy exports: plain functions over basic types. A door
// checks, converts and calls; what doors share is in internal/host. Objects cross as handles, shapes
// as text ("2,3"; "" for a scalar), structured answers as JSON. Every function that can fail returns an error whose
// text is the name of a Python exception, a unit separator, and the message; no panic leaves this package.
//
// A World belongs to the thread that opened it: ranks are cooperative tasks on one thread, and the Go runtime does
// not survive being entered for one World from two.
package pybind
