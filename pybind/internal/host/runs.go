package host

import "github.com/torchemu/torchemu/ccl/prim"

// Runs copies runs of memory, an address and a number of bytes each, from n integers at an address.
func Runs(at int64, n int) ([]prim.Run, error) {
	list, err := words(at, n)
	if err != nil {
		return nil, err
	}
	if n%2 != 0 {
		return nil, Raise("ValueError", "%d integers are no addresses and numbers of bytes", n)
	}
	runs := make([]prim.Run, n/2)
	for i := range runs {
		runs[i] = prim.Run{Addr: prim.Addr(list[2*i]), Bytes: int(list[2*i+1])}
	}
	return runs, nil
}

// RunsOf is Runs with as many bytes of Python's as these have together.
func RunsOf(at int64, n int, from int64, bytes int) ([]prim.Run, []byte, error) {
	runs, err := Runs(at, n)
	if err != nil {
		return nil, nil, err
	}
	all := 0
	for _, r := range runs {
		all += r.Bytes
	}
	if all != bytes {
		return nil, nil, Raise("ValueError", "%d bytes for runs of %d in all", bytes, all)
	}
	data, err := MemoryAt(from, bytes)
	return runs, data, err
}

// Rates are what PrimRates fills in.
func (m *Machine) Rates() []int64 {
	t := m.Topology
	k, memory := t.Compute(), t.Memory()
	return []int64{
		k.MatrixF8, k.MatrixF16, k.MatrixF32, k.VectorF32, memory.Bandwidth, int64(memory.Latency),
		int64(t.PEsPerCube()), int64(t.CubesPerSIP()),
	}
}
