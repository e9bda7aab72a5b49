package host

import (
	"errors"

	"github.com/torchemu/torchemu/tp"
)

// AsMegatron makes an error of tp that which Megatron raises: what contradicts itself fails an assertion.
func AsMegatron(err error) error {
	var indivisible *tp.NotDivisibleError
	var conflict *tp.ConflictError
	if errors.As(err, &conflict) || errors.As(err, &indivisible) && !indivisible.OfWorld() {
		return Raise("AssertionError", "%v", err)
	}
	return Raise("RuntimeError", "%v", err)
}
