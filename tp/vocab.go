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

// local returns where the tokens are in the rank's part, and -1 for those of other ranks. A token that is in no part is
// an error: nobody would look it up.
func (v vocabPart) local(tokens []int) ([]int, error) {
	index := make([]int, len(tokens))
	for i, token := range tokens {
		if token < 0 || token >= v.size {
			return nil, fmt.Errorf("token %d at position %d is not in the vocabulary: it has tokens 0 to %d", token, i, v.size-1)
		}
		index[i] = -1
		if token >= v.first && token < v.end {
			index[i] = token - v.first
		}
	}
	return index, nil
}

// tokens reads token numbers.
func (c *Comm) tokens(t *tensor.Tensor) ([]int, error) {
	if err := c.settle(t); err != nil {
		return nil, err
	}
	return tensor.Ints(t)
}
