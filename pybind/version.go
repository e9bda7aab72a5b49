package pybind

// Version is the release of torchemu: the Go core and the Python package are always of one.
func Version() string { return "0.1.0" }
