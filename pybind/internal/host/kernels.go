package host

import (
	"math"
	"slices"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// kernelKinds are the names and units of kernels that Python issues by number.
type kernelKinds struct {
	numbers map[kindKey]int64
	kinds   []kernelKind
}

type kindKey struct {
	name, unit string
	recorded   bool
}

type kernelKind struct {
	launch torchemu.Launch // with amounts of 0
	each   float64         // operations of the unit for each that is counted
}

// rounding is the matrix units' name for products of float32 whose operands they may round to 10 bits of fraction.
const rounding = "tfloat32"

// KernelKind numbers kernels of a name and a unit, which autograd records or not; the vector units have a name for each of
// topology.Ways, too.
func (w *World) KernelKind(name, unit string, recorded bool) (int64, error) {
	k := &w.kernelKinds
	key := kindKey{name, unit, recorded}
	if number, known := k.numbers[key]; known {
		return number, nil
	}
	kind := kernelKind{torchemu.Launch{Name: name, Recorded: recorded}, w.Topology.Kernels().Operation(name, unit)}
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

// launchWords is how many integers a kernel crosses as: the number of its kind, bytes and operations.
const launchWords = 3

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
		kind, bytes, ops := list[launchWords*i], list[launchWords*i+1], list[launchWords*i+2]
		if kind < 0 || kind >= int64(len(w.kernelKinds.kinds)) {
			return nil, Raise("ValueError", "%d is no kind of kernels", kind)
		}
		k := &w.kernelKinds.kinds[kind]
		launches[i] = k.launch
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
