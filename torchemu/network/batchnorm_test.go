package network_test

import (
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
)

// By hand, on 10 PEs: 25 channels are three waves.
func TestElementsOfBatchNorm(t *testing.T) {
	for _, c := range []struct {
		kernels               string
		channels, plane       int
		training, byGivenOnes int64
	}{
		{"", 25, 49, 2 * 25 * 49, 2 * 25 * 49},
		{"kernels: {launch: 1}\n", 25, 49, 2 * 25 * 49, 2 * 25 * 49},
		{"kernels: {batch_norm: {plane: 200}}\n", 25, 49, 2 * 30 * 49, 2 * 25 * 200},
		{"kernels: {batch_norm: {plane: 200}}\n", 20, 256, 2 * 20 * 256, 2 * 20 * 256},
		{"kernels: {batch_norm: {plane: 200}}\n", 1, 256, 2 * 10 * 256, 2 * 256},
	} {
		topo := parse(t, tiled+c.kernels)
		for given, want := range map[bool]int64{false: c.training, true: c.byGivenOnes} {
			if got := network.BatchNormElements(topo, 2, c.channels, c.plane, given); got != want {
				t.Errorf("%q, %d channels of %d, given: %v: %d elements, want %d", c.kernels, c.channels, c.plane, given, got, want)
			}
		}
	}
}
