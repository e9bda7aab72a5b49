package pybind

import (
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/network"
)

// LaunchKernel puts a kernel on a stream, after all that is on it; the host spends a launch overhead. It moves so many
// bytes between the device's memory and its PEs and does so many operations of a unit: "vector", or the name of a dtype
// for the matrix unit that multiplies it; or "idle", whose operations are picoseconds. The results are there already; hosts that look at them wait for the kernel's
// end: the launch's number, for LaunchEnd, is returned. name is for reports.
func LaunchKernel(stream int64, name string, bytes, ops int64, unit string) (launch int64, err error) {
	defer host.Guard(&err)
	s, err := host.StreamOf(stream)
	if err != nil {
		return 0, err
	}
	k := network.Kernel{Bytes: bytes, Ops: ops}
	if k.Unit, err = host.ParseUnit(unit); err != nil {
		return 0, err
	}
	e, err := s.Object.Kernel(name, k)
	return host.Launched(s, e, err)
}

// KernelKind numbers kernels of a name and a unit for LaunchKernels.
func KernelKind(worldHandle int64, name, unit string) (kind int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	return w.KernelKind(name, unit)
}

// LaunchKernels is LaunchKernel for several kernels, one after another. Each is four integers: its kind,
// its bytes, its operations, and the picoseconds that its host does something else before it launches it. The number of the last one is returned.
func LaunchKernels(stream, kernelsAt int64, kernels int) (launch int64, err error) {
	defer host.Guard(&err)
	s, err := host.StreamOf(stream)
	if err != nil {
		return 0, err
	}
	list, err := s.World.ReadLaunches(kernelsAt, kernels)
	if err != nil {
		return 0, err
	}
	e, err := s.Object.Kernels(list)
	return host.Launched(s, e, err)
}

// ConvolutionCosts lists, as JSON, what the kernels of a convolution take on a SIP of a World, each as LaunchKernels has
// it: its bytes, operations and unit, which may be "tfloat32". The convolution is JSON: the fields of network.Convolution
// and its DType, with Pass forward, data or weight. There is none where the topology says nothing of convolutions.
func ConvolutionCosts(worldHandle int64, convolution string) (costs string, err error) {
	defer host.Guard(&err)
	return host.Costs(worldHandle, convolution, host.ConvolutionLaunches)
}

// AttentionCosts lists, as JSON, what the kernels of a fused attention take on a SIP of a World, as ConvolutionCosts does.
// The attention is JSON: the fields of network.Attention and its DType.
func AttentionCosts(worldHandle int64, attention string) (costs string, err error) {
	defer host.Guard(&err)
	return host.Costs(worldHandle, attention, host.AttentionLaunches)
}

// RecurrentCosts lists, as JSON, what the kernels of LSTM, GRU or RNN take on a SIP of a World, as ConvolutionCosts does.
// The call is JSON: the fields of network.Recurrent and its DType.
func RecurrentCosts(worldHandle int64, recurrent string) (costs string, err error) {
	defer host.Guard(&err)
	return host.Costs(worldHandle, recurrent, host.RecurrentLaunches)
}

// BatchNormElements is how many elements a kernel takes that normalizes images by channels; see network.BatchNormElements.
func BatchNormElements(worldHandle int64, batch, channels, plane int, given bool) (elements int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	return network.BatchNormElements(w.Topology, batch, channels, plane, given), nil
}

// LaunchCopy puts a copy of so many bytes between the device and its host on a stream, like a kernel.
func LaunchCopy(stream int64, bytes int64, toHost bool) (launch int64, err error) {
	defer host.Guard(&err)
	s, err := host.StreamOf(stream)
	if err != nil {
		return 0, err
	}
	way := network.ToDevice
	if toHost {
		way = network.ToHost
	}
	e, err := s.Object.Copy(way, bytes)
	return host.Launched(s, e, err)
}

// LaunchEnd returns the end of a rank's launch, an event that Python releases; 0 when it has come.
func LaunchEnd(worldHandle int64, rank int, launch int64) (event int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	e := w.LaunchEnd(rank, launch)
	if e == nil {
		return 0, nil
	}
	return host.Own(w, e), nil
}
