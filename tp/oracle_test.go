package tp_test

import "math"

// The undivided layers, from their definitions.

// product is a·b, of matrices; with size, of their magnitudes.
func product(a, b array) (sum, size array) {
	m, k, n := a.shape[0], a.shape[1], b.shape[1]
	sum, size = zeros(m, n), zeros(m, n)
	for i := range m {
		for j := range n {
			for l := range k {
				p := a.values[a.at(i, l)] * b.values[b.at(l, j)]
				sum.values[sum.at(i, j)] += p
				size.values[sum.at(i, j)] += math.Abs(p)
			}
		}
	}
	return sum, size
}

func turned(a array) array {
	b := zeros(a.shape[1], a.shape[0])
	for i := range a.shape[0] {
		for j := range a.shape[1] {
			b.values[b.at(j, i)] = a.values[a.at(i, j)]
		}
	}
	return b
}

// linearOracle is y = x·wᵀ + b and its gradients for dy, each with the magnitudes of what was added up.
type linearOracle struct{ y, dx, dw, db, ySize, dxSize, dwSize, dbSize array }

func newLinearOracle(x, w, b, dy array) linearOracle {
	var o linearOracle
	rows, grad := x.matrix(), dy.matrix()
	o.y, o.ySize = product(rows, turned(w))
	for i := range o.y.values {
		o.y.values[i] += b.values[i%len(b.values)]
		o.ySize.values[i] += math.Abs(b.values[i%len(b.values)])
	}
	o.dx, o.dxSize = product(grad, w)
	o.dw, o.dwSize = product(turned(grad), rows)
	ones := zeros(1, grad.shape[0])
	for i := range ones.values {
		ones.values[i] = 1
	}
	o.db, o.dbSize = product(ones, grad)
	o.db.shape, o.dbSize.shape = b.shape, b.shape
	for _, a := range []*array{&o.y, &o.ySize} {
		a.shape = dy.shape
	}
	for _, a := range []*array{&o.dx, &o.dxSize} {
		a.shape = x.shape
	}
	return o
}

// crossEntropyOracle is the loss of each row of logits and its gradient for dloss, as the rank sees them that has the
// part of the vocabulary from first up to but without end. The target has the probability 1-s, and besides each token of
// the part an equal share of s.
func crossEntropyOracle(logits array, target []int, s float64, dloss []float64, first, end int) (loss, grad array) {
	rows := logits.matrix()
	n, v := rows.shape[0], rows.shape[1]
	loss, grad = zeros(logits.shape[:len(logits.shape)-1]...), zeros(logits.shape...)
	for i := range n {
		row := rows.values[i*v : (i+1)*v]
		top, total := math.Inf(-1), 0.0
		for _, x := range row {
			top = max(top, x)
		}
		for _, x := range row {
			total += math.Exp(x - top)
		}
		for j, x := range row {
			wanted := 0.0
			if j == target[i] {
				wanted = 1 - s
			}
			if j >= first && j < end {
				wanted += s / float64(end-first)
			}
			loss.values[i] -= wanted * (x - top - math.Log(total))
			grad.values[i*v+j] = dloss[i] * (math.Exp(x-top)/total - wanted)
		}
	}
	return loss, grad
}
