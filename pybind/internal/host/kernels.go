package host

import (
	"math"
	"slices"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// kernelKinds are the names and units of kernels that Python issues by number.
type kernelKinds struct {
	numbers map[kindKey]int64
	kinds   []kernelKind
}

type kindKey struct{ name, unit string }

type kernelKind struct {
	launch torchemu.Launch // with amounts of 0
	each   float64         // operations of the unit for each that is counted
}

// rounding is the matrix units' name for products of float32 whose operands they may round to 10 bits of fraction.
const rounding = "tfloat32"

// KernelKind numbers kernels of a name and a unit; the vector units have a name for each of topology.Ways, too.
func (w *World) KernelKind(name, unit string) (int64, error) {
	k := &w.kernelKinds
	key := kindKey{name, unit}
	if number, known := k.numbers[key]; known {
		return number, nil
	}
	kind := kernelKind{torchemu.Launch{Name: name}, w.Topology.Kernels().Operation(name, unit)}
	switch {
	case slices.Contains(topology.Ways, unit):
	case unit == rounding:
		c := w.Topology.Compute()
		kind.launch.Kernel.Unit = network.MatrixF32
		kind.each *= float64(c.MatrixF32) / float64(c.MatrixTF32)
	default:
		var err error
		if kind.launch.Kernel.Unit, err = ParseUnit(unit); err != nil {
			return 0, err
		}
	}
	if k.numbers == nil {
		k.numbers = map[kindKey]int64{}
	}
	number := int64(len(k.kinds))
	k.kinds, k.numbers[key] = append(k.kinds, kind), number
	return number, nil
}

// launchWords is how many integers a kernel crosses as: the number of its kind, bytes, operations, and picoseconds of the
// host beside its launch.
const launchWords = 4

// ReadLaunches are the kernels that Python has packed into n integers at an address; see pybind.LaunchKernels.
func (w *World) ReadLaunches(at int64, n int) ([]torchemu.Launch, error) {
	list, err := words(at, n)
	if err != nil {
		return nil, err
	}
	if n == 0 || n%launchWords != 0 {
		return nil, Raise("ValueError", "%d integers are no kernels: each has %d", n, launchWords)
	}
	launches := make([]torchemu.Launch, n/launchWords)
	for i := range launches {
		kind, bytes, ops, beside := list[launchWords*i], list[launchWords*i+1], list[launchWords*i+2], list[launchWords*i+3]
		if kind < 0 || kind >= int64(len(w.kernelKinds.kinds)) {
			return nil, Raise("ValueError", "%d is no kind of kernels", kind)
		}
		if beside < 0 {
			return nil, Raise("ValueError", "a host does nothing for %d ps", beside)
		}
		k := &w.kernelKinds.kinds[kind]
		launches[i] = k.launch
		launches[i].Beside = sim.Time(beside)
		launches[i].Kernel.Bytes, launches[i].Kernel.Ops = bytes, k.operations(ops)
	}
	return launches, nil
}

// operations are what a kernel takes of its unit for so many that are counted.
func (k *kernelKind) operations(counted int64) int64 {
	if k.each == 1 {
		return counted
	}
	return int64(min(math.Round(float64(counted)*k.each), 1<<62)) // which a kernel's check refuses
}
