package distributed_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// noise is a tensor of n random float64, so that the order of a sum shows in its bits, or of n/2 complex numbers.
func noise(d dtype.DType, n int, seed uint64) *tensor.Tensor {
	rng := rand.New(rand.NewPCG(seed, 0))
	x, err := tensor.New(d, n*dtype.F64.Size()/d.Size())
	if err != nil {
		panic(err)
	}
	var raw []byte
	for range n {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(rng.NormFloat64()))
	}
	if err := x.Scatter(raw); err != nil {
		panic(err)
	}
	return x
}

// ofEitherType are collectives of real or complex numbers with the same bytes.
func ofEitherType() map[string]func(d dtype.DType, rank int) distributed.Operation {
	sizes := []int{6, 0, 2, 14}
	half := -0.5
	return map[string]func(d dtype.DType, rank int) distributed.Operation{
		"all_reduce": func(d dtype.DType, rank int) distributed.Operation {
			x := one(noise(d, 22, uint64(rank)))
			return distributed.Operation{Collective: collective.AllReduce, Out: x, In: x}
		},
		"all_reduce with a factor": func(d dtype.DType, rank int) distributed.Operation {
			x := one(noise(d, 22, uint64(rank)))
			return distributed.Operation{Collective: collective.AllReduce, Factor: &half, Out: x, In: x}
		},
		"average, scattered unevenly": func(d dtype.DType, rank int) distributed.Operation {
			o := distributed.Operation{Collective: collective.ReduceScatter, Reduce: tensor.Avg, Out: one(noise(d, sizes[rank], 9))}
			for i, n := range sizes {
				o.In = append(o.In, noise(d, n, uint64(10*rank+i)))
			}
			return o
		},
		"all_to_all": func(d dtype.DType, rank int) distributed.Operation {
			o := distributed.Operation{Collective: collective.AllToAll}
			for i := range sizes {
				o.In = append(o.In, noise(d, sizes[(rank+i)%4], uint64(10*rank+i)))
				o.Out = append(o.Out, noise(d, sizes[(rank+i)%4], 9))
			}
			return o
		},
	}
}

// Collectives of complex numbers are those of their parts: in bits, time, and what they are estimated at.
func TestComplexNumbersAreMovedAsTheirParts(t *testing.T) {
	for name, op := range ofEitherType() {
		of := func(d dtype.DType) (results [4][]byte, took, estimate sim.Time) {
			c := newCluster(t, "default", distributed.Options{})
			err := do(c, func(rank int) distributed.Operation {
				o := op(d, rank)
				o.Name = "a collective"
				var err error
				if estimate, err = c.group.Estimate(rank, o); err != nil {
					t.Error(err)
				}
				return o
			}, func(rank int, out []*tensor.Tensor) error {
				for _, x := range out {
					results[rank] = append(results[rank], x.Gather()...)
				}
				return nil
			})
			if err != nil {
				t.Fatalf("%s of %v: %v", name, d, err)
			}
			return results, c.Log[0].End - c.Log[0].Start, estimate
		}
		parts, partsTook, partsEstimate := of(dtype.F64)
		numbers, took, estimate := of(dtype.C128)
		for r := range parts {
			if !bytes.Equal(numbers[r], parts[r]) {
				t.Errorf("%s: rank %d has % x, want % x", name, r, numbers[r], parts[r])
			}
		}
		if took != partsTook || estimate != partsEstimate {
			t.Errorf("%s took %v, estimated at %v; of the parts %v and %v", name, took, estimate, partsTook, partsEstimate)
		}
	}
}

func TestComplexNumbersInMessages(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := one(noise(dtype.C128, 6+2*(p.ID/3), 0))
		_, err := c.group.Do(me(p), distributed.Operation{Name: "all_reduce", Collective: collective.AllReduce, Out: x, In: x})
		return err
	})
	want := "rank 0 calls all_reduce of 3 complex128 elements, op sum\n  rank 3 calls all_reduce of 4 complex128 elements, op sum"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	for _, op := range []tensor.ReduceOp{tensor.Prod, tensor.Min, tensor.Max, tensor.BAnd, tensor.BOr, tensor.BXor} {
		x := one(noise(dtype.C64, 6, 0))
		o := distributed.Operation{Name: "all_reduce", Collective: collective.AllReduce, Reduce: op, Out: x, In: x}
		_, err := c.group.Do(distributed.Caller{Rank: 0}, o)
		if want := fmt.Sprintf("reduce op %v is not defined on c64", op); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v", op, err)
		}
	}
}
