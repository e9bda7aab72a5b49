package network

import "github.com/torchemu/torchemu/torchemu/topology"

// BatchNormElements is how many elements the vector units take to normalize a batch of images by channels, which are planes
// of so many elements in each image: all, unless the topology says that a PE takes a channel whole. Then, for statistics
// or gradients, channels go in waves of as many as there are PEs, of which the last one takes as long as a full one; with
// statistics that are given, a small plane takes as long as the least.
func BatchNormElements(t *topology.Topology, batch, channels, plane int, given bool) int64 {
	k := t.Kernels()
	switch {
	case k == nil || k.Plane == 0:
		return int64(batch * channels * plane)
	case given:
		return int64(batch * channels * max(plane, k.Plane))
	}
	return int64(batch * plane * up(channels, t.CubesPerSIP()*t.PEsPerCube()))
}
