package host

import "github.com/torchemu/torchemu/torchemu"

// kernelKinds are the names and units of kernels that Python issues by number.
type kernelKinds struct {
	numbers map[[2]string]int64
	kinds   []torchemu.Launch // with amounts of 0
}

// KernelKind numbers kernels of a name and a unit.
func (w *World) KernelKind(name, unit string) (int64, error) {
	k := &w.kernelKinds
	key := [2]string{name, unit}
	if number, known := k.numbers[key]; known {
		return number, nil
	}
	kind := torchemu.Launch{Name: name}
	var err error
	if kind.Kernel.Unit, err = ParseUnit(unit); err != nil {
		return 0, err
	}
	if k.numbers == nil {
		k.numbers = map[[2]string]int64{}
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
		launches[i] = w.kernelKinds.kinds[kind]
		launches[i].Kernel.Bytes, launches[i].Kernel.Ops = bytes, ops
	}
	return launches, nil
}
