package calibrate

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
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

// Fitting is a fit under way.
type Fitting struct {
	machine *Machine
	cases   []Case
	start   *topology.Transport
	all     []coefficient
	origin  []float64 // logarithms of the starting values
	weights []float64

	x         []float64 // logarithms of the values so far
	predicted []float64 // logarithms
	loss      float64
	damping   float64
	round     int
}

// NewFitting begins a fit of the coefficients with which the machine's predictions are closest to the cases, from those of
// a transport.
func NewFitting(m *Machine, cases []Case, start *topology.Transport) (*Fitting, error) {
	if len(cases) == 0 {
		return nil, errors.New("there is nothing to fit: no measured collective")
	}
	f := &Fitting{
		machine: m, cases: cases, start: start, all: coefficients(start, cases), weights: weigh(cases),
		predicted: make([]float64, len(cases)), damping: 1e-2,
	}
	for _, c := range f.all {
		f.origin = append(f.origin, math.Log(c.get(start)))
	}
	f.x = slices.Clone(f.origin)
	f.predict(f.x, always, f.predicted)
	f.loss = f.lossOf(f.x, f.predicted)
	return f, nil
}

// Fit runs a fit to its end.
func Fit(m *Machine, cases []Case, start *topology.Transport) (*Result, error) {
	f, err := NewFitting(m, cases, start)
	if err != nil {
		return nil, err
	}
	for !f.Round() {
	}
	return f.Result()
}

// transport is the one with the coefficients whose logarithms are x.
func (f *Fitting) transport(x []float64) *topology.Transport {
	t := f.start.Clone()
	for i, c := range f.all {
		c.set(t, math.Exp(x[i]))
	}
	return t
}

// predict works out the logarithms of the predictions of those cases that want says.
func (f *Fitting) predict(x []float64, want func(c *Case) bool, into []float64) {
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
func (f *Fitting) residual(i int, predicted float64) (r, weight float64) {
	r = (predicted - math.Log(f.cases[i].Micros)) / scale
	return r, f.weights[i] / math.Sqrt(1+r*r)
}

// lossOf is what the fit makes least.
func (f *Fitting) lossOf(x, predicted []float64) float64 {
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

// Round is one round of Levenberg's and Marquardt's method. The result says whether it was the last.
func (f *Fitting) Round() (done bool) {
	normal, gradient := f.normal(f.jacobian())
	next, predicted, loss, ok := f.descend(normal, gradient)
	f.round++
	if !ok {
		return true
	}
	gain := f.loss - loss
	f.x, f.predicted, f.loss = next, predicted, loss
	return gain < tolerance*loss || f.round == maxRounds
}

// descend tries steps with more and more damping until one lessens the loss.
func (f *Fitting) descend(normal *mat.SymDense, gradient *mat.VecDense) (next, predicted []float64, loss float64, ok bool) {
	for ; f.damping < 1e6; f.damping *= 8 {
		step, err := solve(normal, gradient, f.damping)
		if err != nil {
			continue
		}
		next = slices.Clone(f.x)
		for i := range next {
			next[i] -= max(-1, min(1, step.AtVec(i)))
		}
		predicted = make([]float64, len(f.cases))
		f.predict(next, always, predicted)
		if loss = f.lossOf(next, predicted); loss < f.loss {
			f.damping = max(f.damping/10, 1e-8)
			return next, predicted, loss, true
		}
	}
	return nil, nil, 0, false
}

// jacobian is the derivatives of the predictions' logarithms, coefficient by coefficient.
func (f *Fitting) jacobian() [][]float64 {
	columns := make([][]float64, len(f.all))
	for k := range f.all {
		moved := slices.Clone(f.x)
		moved[k] += step
		column := slices.Clone(f.predicted)
		f.predict(moved, f.all[k].affects, column)
		for i := range column {
			column[i] = (column[i] - f.predicted[i]) / step
		}
		columns[k] = column
	}
	return columns
}

// normal is the matrix of the normal equations and the gradient.
func (f *Fitting) normal(jacobian [][]float64) (*mat.SymDense, *mat.VecDense) {
	n := len(f.x)
	matrix, gradient := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range f.cases {
		r, w := f.residual(i, f.predicted[i])
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
		gradient.SetVec(a, gradient.AtVec(a)+(f.x[a]-f.origin[a])/(prior*prior))
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

// Result says how well each coefficient is known: by the inverse of the normal equations, times how far predictions are
// off on the whole.
func (f *Fitting) Result() (*Result, error) {
	normal, _ := f.normal(f.jacobian())
	var factors mat.Cholesky
	if !factors.Factorize(normal) {
		return nil, errors.New("calibrate: the coefficients cannot be told apart")
	}
	var covariance mat.SymDense
	if err := factors.InverseTo(&covariance); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	spread := math.Sqrt(max(1, f.loss/float64(max(1, len(f.cases)-len(f.x)))))
	r := &Result{Transport: f.transport(f.x), Rounds: f.round}
	for k, c := range f.all {
		off := math.Sqrt(covariance.At(k, k)) * spread
		r.Fitted = append(r.Fitted, Estimate{c.path, math.Exp(f.x[k]), off, off <= determined})
	}
	return r, nil
}
