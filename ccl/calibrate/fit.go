package calibrate

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// The fit is least squares over logarithms, so that an error counts by its ratio whatever the size. Beyond the scale an
// error counts by its amount and not its square (soft-L1): single points are off by chance.
const (
	scale = 0.05

	// prior is how far a coefficient may leave its starting value, in units of ln, before that counts as one scale: weak,
	// and all that holds those that the data say nothing about.
	prior = 3.0

	// determined is the standard error of ln up to which a coefficient counts as determined by the data.
	determined = 0.25

	maxRounds = 40
	tolerance = 1e-4
	step      = 0.01 // of the numeric derivative
)

// Rows whose protocol was forced, or whose blocks were moved off their places, count less than those of plain calls:
// they say what a protocol does, but nobody runs it there. They hardly count where they take much longer than the fastest of the same call.
const (
	weightOfForced  = 0.35
	weightOfOddOnes = 0.02
	muchLonger      = 1.5
)

// Result is a fit.
type Result struct {
	Transport *topology.Transport
	Fitted    []Estimate
	Rounds    int
}

// Estimate is a coefficient that was fitted.
type Estimate struct {
	Path       string
	Value      float64
	Error      float64 // standard error, as a share of the value
	Determined bool    // otherwise the value is little more than the one that the fit started from
}

// fit is a fit under way.
type fit struct {
	machine  *Machine
	cases    []Case
	start    *topology.Transport
	all      []coefficient
	origin   []float64 // logarithms of the starting values
	progress func(round int, loss float64)
	weights  []float64
}

// Fit finds the coefficients with which the machine's predictions are closest to the cases, beginning with a transport.
// progress is called after each round; it may be nil.
func Fit(m *Machine, cases []Case, start *topology.Transport, progress func(round int, loss float64)) (*Result, error) {
	if len(cases) == 0 {
		return nil, errors.New("there is nothing to fit: no measured collective")
	}
	f := &fit{machine: m, cases: cases, start: start, all: coefficients(start), progress: progress, weights: weigh(cases)}
	for _, c := range f.all {
		f.origin = append(f.origin, math.Log(c.get(start)))
	}
	return f.run()
}

// transport is the one with the coefficients whose logarithms are x.
func (f *fit) transport(x []float64) *topology.Transport {
	t := f.start.Clone()
	for i, c := range f.all {
		c.set(t, math.Exp(x[i]))
	}
	return t
}

// predict works out the logarithms of the predictions of those cases that want says.
func (f *fit) predict(x []float64, want func(c *Case) bool, into []float64) {
	t := f.transport(x)
	forEach(len(f.cases), func(i int) {
		if c := &f.cases[i]; want(c) {
			into[i] = math.Log(f.machine.Predict(c, t))
		}
	})
}

// forEach calls do for 0 … n-1, on all processors.
func forEach(n int, do func(i int)) {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	group.Wait()
}

// sameCall is what rows have in common that differ in their protocol only.
type sameCall struct {
	kind    collective.Kind
	world   int
	bytes   int64
	perElem int
}

// weigh works out how much each case counts.
func weigh(cases []Case) []float64 {
	fastest := map[sameCall]float64{}
	key := func(c *Case) sameCall { return sameCall{c.Collective, c.World, c.Bytes, c.ElemSize} }
	for i := range cases {
		k := key(&cases[i])
		if least, ok := fastest[k]; !ok || cases[i].Micros < least {
			fastest[k] = cases[i].Micros
		}
	}
	weights := make([]float64, len(cases))
	for i := range cases {
		c := &cases[i]
		switch _, free, _ := forced(c.Variant); {
		case c.Variant == "default":
			weights[i] = 1
		case free:
			weights[i] = weightOfForced
		case c.Micros > muchLonger*fastest[key(c)]:
			weights[i] = weightOfOddOnes
		default:
			weights[i] = weightOfForced
		}
	}
	return weights
}

// residual is what a case is off by, in scales, and how much it counts in this round.
func (f *fit) residual(i int, predicted float64) (r, weight float64) {
	r = (predicted - math.Log(f.cases[i].Micros)) / scale
	return r, f.weights[i] / math.Sqrt(1+r*r)
}

// loss is what the fit makes least.
func (f *fit) loss(x, predicted []float64) float64 {
	sum := 0.0
	for i := range f.cases {
		r, _ := f.residual(i, predicted[i])
		sum += f.weights[i] * 2 * (math.Sqrt(1+r*r) - 1)
	}
	for i := range x {
		d := (x[i] - f.origin[i]) / prior
		sum += d * d
	}
	return sum
}

// run is Levenberg's and Marquardt's method.
func (f *fit) run() (*Result, error) {
	x := append([]float64(nil), f.origin...)
	predicted := make([]float64, len(f.cases))
	f.predict(x, always, predicted)
	loss, damping := f.loss(x, predicted), 1e-2
	round := 0
	for ; round < maxRounds; round++ {
		if f.progress != nil {
			f.progress(round, loss)
		}
		normal, gradient := f.normal(x, predicted, f.jacobian(x, predicted))
		next, nextPredicted, nextLoss, ok := f.descend(x, normal, gradient, loss, &damping)
		if !ok {
			break
		}
		gain := loss - nextLoss
		x, predicted, loss = next, nextPredicted, nextLoss
		if gain < tolerance*loss {
			break
		}
	}
	return f.result(x, predicted, round)
}

// descend tries steps with more and more damping until one lessens the loss.
func (f *fit) descend(x []float64, normal *mat.SymDense, gradient *mat.VecDense, loss float64, damping *float64) (next, predicted []float64, least float64, ok bool) {
	for ; *damping < 1e6; *damping *= 8 {
		step, err := solve(normal, gradient, *damping)
		if err != nil {
			continue
		}
		next = make([]float64, len(x))
		for i := range x {
			next[i] = x[i] - max(-1, min(1, step.AtVec(i)))
		}
		predicted = make([]float64, len(f.cases))
		f.predict(next, always, predicted)
		if least = f.loss(next, predicted); least < loss {
			*damping = max(*damping/10, 1e-8)
			return next, predicted, least, true
		}
	}
	return nil, nil, 0, false
}

// jacobian is the derivatives of the predictions' logarithms, coefficient by coefficient.
func (f *fit) jacobian(x, predicted []float64) [][]float64 {
	columns := make([][]float64, len(f.all))
	for k := range f.all {
		moved := append([]float64(nil), x...)
		moved[k] += step
		column := append([]float64(nil), predicted...)
		f.predict(moved, f.all[k].affects, column)
		for i := range column {
			column[i] = (column[i] - predicted[i]) / step
		}
		columns[k] = column
	}
	return columns
}

// normal is the matrix of the normal equations and the gradient.
func (f *fit) normal(x, predicted []float64, jacobian [][]float64) (*mat.SymDense, *mat.VecDense) {
	n := len(x)
	matrix, gradient := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range f.cases {
		r, w := f.residual(i, predicted[i])
		for a := range n {
			da := jacobian[a][i] / scale
			if da == 0 {
				continue
			}
			gradient.SetVec(a, gradient.AtVec(a)+w*r*da)
			for b := a; b < n; b++ {
				matrix.SetSym(a, b, matrix.At(a, b)+w*da*jacobian[b][i]/scale)
			}
		}
	}
	for a := range n {
		matrix.SetSym(a, a, matrix.At(a, a)+1/(prior*prior))
		gradient.SetVec(a, gradient.AtVec(a)+(x[a]-f.origin[a])/(prior*prior))
	}
	return matrix, gradient
}

// solve solves the damped normal equations.
func solve(normal *mat.SymDense, gradient *mat.VecDense, damping float64) (*mat.VecDense, error) {
	n := normal.SymmetricDim()
	damped := mat.NewSymDense(n, nil)
	damped.CopySym(normal)
	for i := range n {
		damped.SetSym(i, i, normal.At(i, i)*(1+damping))
	}
	var factors mat.Cholesky
	if !factors.Factorize(damped) {
		return nil, errors.New("calibrate: the normal equations have no solution")
	}
	var step mat.VecDense
	if err := factors.SolveVecTo(&step, gradient); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	return &step, nil
}

// result says how well each coefficient is known: by the inverse of the normal equations, times how far predictions are
// off on the whole.
func (f *fit) result(x, predicted []float64, rounds int) (*Result, error) {
	normal, _ := f.normal(x, predicted, f.jacobian(x, predicted))
	var factors mat.Cholesky
	if !factors.Factorize(normal) {
		return nil, errors.New("calibrate: the coefficients cannot be told apart")
	}
	var covariance mat.SymDense
	if err := factors.InverseTo(&covariance); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	spread := math.Sqrt(max(1, f.loss(x, predicted)/float64(max(1, len(f.cases)-len(x)))))
	r := &Result{Transport: f.transport(x), Rounds: rounds}
	for k, c := range f.all {
		off := math.Sqrt(covariance.At(k, k)) * spread
		r.Fitted = append(r.Fitted, Estimate{c.path, math.Exp(x[k]), off, off <= determined})
	}
	return r, nil
}
