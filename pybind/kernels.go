package pybind

import (
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// LaunchKernel puts a kernel on a stream, after all that is on it; the host spends a launch overhead. It moves so many
// bytes between the device's memory and its PEs and does so many operations of a unit: "vector", or the name of a dtype
// for the matrix unit that multiplies it. The results are in outs ("12,13") already; hosts that look at them wait for the
// kernel's end. Without outs that end is returned, an event that Python releases; else 0. name is for reports.
func LaunchKernel(stream int64, name, outs string, bytes, ops int64, unit string) (event int64, err error) {
	defer guard(&err)
	s, tensors, err := launchArguments(stream, outs)
	if err != nil {
		return 0, err
	}
	k := network.Kernel{Bytes: bytes, Ops: ops}
	if k.Unit, err = parseUnit(unit); err != nil {
		return 0, err
	}
	e, err := s.object.Kernel(name, k, tensors...)
	return launched(s, e, outs, err)
}

// LaunchCopy puts a copy of so many bytes between the device and its host on a stream, like a kernel.
func LaunchCopy(stream int64, outs string, bytes int64, toHost bool) (event int64, err error) {
	defer guard(&err)
	s, tensors, err := launchArguments(stream, outs)
	if err != nil {
		return 0, err
	}
	way := network.ToDevice
	if toHost {
		way = network.ToHost
	}
	e, err := s.object.Copy(way, bytes, tensors...)
	return launched(s, e, outs, err)
}

func launchArguments(stream int64, outs string) (owned[*torchemu.Stream], []*tensor.Tensor, error) {
	s, err := streamOf(stream)
	if err != nil {
		return s, nil, err
	}
	tensors, err := parseTensors(s.world, outs)
	return s, tensors, err
}

// launched hands the end of a kernel or copy to Python if it is pending on no tensor.
func launched(s owned[*torchemu.Stream], e *torchemu.Event, outs string, err error) (int64, error) {
	if err != nil || outs != "" {
		return 0, err
	}
	return register(owned[*torchemu.Event]{e, s.world}), nil
}

// parseUnit reads "vector" or a dtype's name.
func parseUnit(text string) (network.Unit, error) {
	if text == "vector" {
		return network.Vector, nil
	}
	d, err := dtype.Parse(text)
	return network.MatrixUnit(d), err
}
