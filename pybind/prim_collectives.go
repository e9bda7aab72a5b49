package pybind

import (
	"github.com/torchemu/torchemu/pybind/internal/host"
)

// PrimMember describes a member of a collective, whose handle PrimAbout gives for its program, as JSON: run, which is the
// same for all members, collective, ranks, index, out, source, n, op and dtype.
func PrimMember(handle int64) (about string, err error) {
	defer host.Guard(&err)
	return host.DescribeMember(handle)
}
