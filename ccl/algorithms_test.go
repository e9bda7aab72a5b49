package ccl_test

import (
	"fmt"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/ccltest"
)

// collectives are all there are.
var collectives = []ccl.Collective{ccl.AllReduce, ccl.AllGather, ccl.ReduceScatter}

// everyAlgorithm lists those of all collectives.
func everyAlgorithm() []ccl.Algorithm {
	var all []ccl.Algorithm
	for _, c := range collectives {
		all = append(all, ccl.Algorithms(c)...)
	}
	return all
}

func TestConformance(t *testing.T) {
	for _, a := range everyAlgorithm() {
		t.Run(fmt.Sprintf("%s/%s", a.Collective(), a.Name()), func(t *testing.T) { ccltest.Check(t, a) })
	}
}
