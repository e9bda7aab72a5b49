package tp

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// VocabRange is the part of a vocabulary that a rank of a group has: from first up to but without end.
func VocabRange(vocabSize, rank, groupSize int) (first, end int, err error) {
	n, err := divide("vocabulary size", vocabSize, "tensor parallel size", groupSize)
	return rank * n, (rank + 1) * n, err
}

// vocabPart is a rank's part of a vocabulary of size tokens.
type vocabPart struct{ first, end, size int }

func (c *Comm) vocabPart(size int) (vocabPart, error) {
	first, end, err := VocabRange(size, c.Rank, c.Size())
	return vocabPart{first, end, size}, err
}

// checkTokens verifies that tokens are in a vocabulary of so many: nobody would look up others.
func (c *Comm) checkTokens(t *tensor.Tensor, size int) error {
	if err := c.settle(t); err != nil {
		return err
	}
	tokens, err := tensor.Ints(t)
	if err != nil {
		return err
	}
	for i, token := range tokens {
		if token < 0 || token >= size {
			return fmt.Errorf("token %d at position %d is not in the vocabulary: it has tokens 0 to %d", token, i, size-1)
		}
	}
	return nil
}
