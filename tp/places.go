package tp

import "github.com/torchemu/torchemu/torchemu/tensor"

// located reads token numbers as places: those in a table of which the rank has all.
func located(v value) (*places, error) {
	if v.places != nil {
		return v.places, nil
	}
	index, err := tensor.Ints(v.tensor)
	return &places{index, v.tensor.Shape()}, err
}

// locate finds tokens in the rank's part of a vocabulary: places, which also say which are others'.
func locate(c *Comm, with Parameters, in []value) (value, error) {
	found, err := located(in[0])
	if err != nil {
		return value{}, err
	}
	first := c.Rank * with.Part
	for i, token := range found.index {
		found.index[i] = -1
		if token >= first && token < first+with.Part {
			found.index[i] = token - first
		}
	}
	return value{places: found}, nil
}

// lookup returns the rows of a table at places; zeros where they are another rank's.
func lookup(_ *Comm, _ Parameters, in []value) (value, error) {
	at, err := located(in[0])
	if err != nil {
		return value{}, err
	}
	table := in[1].tensor
	found, err := tensor.Rows(table, at.index)
	if err != nil {
		return value{}, err
	}
	found, err = found.Reshape(append(at.shape[:len(at.shape):len(at.shape)], table.Shape()[1])...)
	return value{tensor: found}, err
}

// masked returns a copy of rows, which lookup and tableGrad need no other zeros in than they put there.
func masked(rows value) (value, error) {
	t, err := tensor.Clone(rows.tensor)
	return value{tensor: t}, err
}

// tableGrad adds rows up at places.
func tableGrad(_ *Comm, with Parameters, in []value) (value, error) {
	at, err := located(in[0])
	if err != nil {
		return value{}, err
	}
	grad, err := rows(in[1].tensor)
	if err != nil {
		return value{}, err
	}
	sums, err := tensor.AddRows(with.Part, at.index, grad)
	return value{tensor: sums}, err
}

// pick takes one element of each row.
func pick(_ *Comm, _ Parameters, in []value) (value, error) {
	at := in[3].places
	matrix, err := rows(in[0].tensor)
	if err != nil {
		return value{}, err
	}
	picked, err := tensor.Pick(matrix, at.index)
	if err != nil {
		return value{}, err
	}
	picked, err = picked.Reshape(at.shape...)
	return value{tensor: picked}, err
}

// addAt adds a number to one element of each row.
func addAt(_ *Comm, with Parameters, in []value) (value, error) {
	matrix, err := rows(in[0].tensor)
	if err != nil {
		return value{}, err
	}
	return in[0], tensor.AddAt(matrix, in[2].places.index, with.Number)
}
