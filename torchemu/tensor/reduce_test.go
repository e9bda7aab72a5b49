package tensor_test

import (
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

var allOps = []tensor.ReduceOp{tensor.Sum, tensor.Prod, tensor.Min, tensor.Max, tensor.Avg, tensor.BAnd, tensor.BOr, tensor.BXor}

func TestParseReduceOp(t *testing.T) {
	for name, want := range map[string]tensor.ReduceOp{
		"sum": tensor.Sum, "SUM": tensor.Sum, "prod": tensor.Prod, "product": tensor.Prod, "PRODUCT": tensor.Prod,
		"min": tensor.Min, "max": tensor.Max, "avg": tensor.Avg, "mean": tensor.Avg, "band": tensor.BAnd,
		"bor": tensor.BOr, "BXOR": tensor.BXor, " Sum ": tensor.Sum,
	} {
		if got, err := tensor.ParseReduceOp(name); err != nil || got != want {
			t.Errorf("ParseReduceOp(%q) = %v, %v; want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "add", "premul_sum"} {
		_, err := tensor.ParseReduceOp(name)
		if err == nil {
			t.Fatalf("ParseReduceOp(%q): no error", name)
		}
		for _, op := range allOps {
			if !strings.Contains(err.Error(), op.String()) {
				t.Errorf("%q does not list %v", err, op)
			}
		}
	}
}

// Where an error lists operations, they are all that the type has.
func TestErrorsListTheOperationsThatThereAre(t *testing.T) {
	for _, op := range allOps {
		for _, d := range dtype.All() {
			err := op.Check(d)
			if err == nil {
				continue
			}
			_, list, found := strings.Cut(err.Error(), "one of ")
			if !found {
				continue
			}
			var want []string
			for _, other := range allOps {
				if other.Check(d) == nil {
					want = append(want, other.String())
				}
			}
			if got := strings.Join(want, ", "); list != got {
				t.Errorf("%v: want the list %q", err, got)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for _, op := range append(allOps, tensor.BXor+1, 255) {
		for _, d := range append(dtype.All(), dtype.Invalid, 200) {
			want := op <= tensor.BXor && d.Valid()
			switch op {
			case tensor.Avg:
				want = want && d != dtype.Bool
			case tensor.BAnd, tensor.BOr, tensor.BXor:
				want = want && (d.IsInteger() || d == dtype.Bool)
			case tensor.Prod, tensor.Min, tensor.Max:
				want = want && d != dtype.C64 && d != dtype.C128
			}
			if err := op.Check(d); (err == nil) != want {
				t.Errorf("%v on %v: %v, want allowed: %v", op, d, err, want)
			} else if err != nil && !strings.Contains(err.Error(), op.String()) {
				t.Errorf("%q does not name %v", err, op)
			}
		}
	}
}
