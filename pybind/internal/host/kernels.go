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

// ReadLaunches are kernels that Python has packed at an address; see pybind.LaunchKernels.
func (w *World) ReadLaunches(address int64, count int) ([]torchemu.Launch, error) {
	if count <= 0 {
		return nil, Raise("ValueError", "%d is no number of kernels", count)
	}
	r := &regionReader{next: pointer(address)}
	list := make([]torchemu.Launch, count)
	for i := range list {
		kind, bytes, ops := r.word(), r.word(), r.word()
		if kind < 0 || kind >= len(w.kernelKinds.kinds) {
			return nil, Raise("ValueError", "%d is no kind of kernels", kind)
		}
		list[i] = w.kernelKinds.kinds[kind]
		list[i].Kernel.Bytes, list[i].Kernel.Ops = int64(bytes), int64(ops)
	}
	return list, nil
}
