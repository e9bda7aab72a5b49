package calibrate

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Calibration is what torchemu calibrate does, round by round: a fit to all measurements, and one without each world
// size, to see how well that is predicted.
type Calibration struct {
	machine *Machine
	base    *topology.Topology
	own     bool // the base is Base's: the file is to have as many SIPs as the largest world
	library string
	cases   []Case

	worlds  []int // that are left out, after the fit to all
	fitting *Fitting
	stage   int // 0: the fit to all
	results []*Result

	products []Product
	fitted   *topology.Topology // to the products; nil without
}

// AddProducts fits the kernels section, and the rates of the matrix units, to products of matrices, beginning with the
// base's.
func (c *Calibration) AddProducts(products []Product) error {
	fitted, err := FitProducts(c.base, products)
	if err != nil {
		return err
	}
	c.products, c.fitted = products, fitted
	return nil
}

// NewCalibration begins with measurements. The fit starts from the transport of the base, which is to have as many SIPs as
// the largest world; nil is [Base].
func NewCalibration(rows []Row, library string, base *topology.Topology) (*Calibration, error) {
	l, err := ccl.LoadLibrary(library)
	if err != nil {
		return nil, err
	}
	own := base == nil
	if own {
		base = Base()
	}
	if base.Transport() == nil {
		return nil, fmt.Errorf("topology %s has no transport section to start from", base.Name)
	}
	c := &Calibration{machine: NewMachine(base, l), base: base, own: own, library: library}
	for _, r := range rows {
		if r.World > base.SIPs() {
			return nil, fmt.Errorf("a measurement has %d ranks; topology %s has %d SIPs", r.World, base.Name, base.SIPs())
		}
		one, err := c.machine.Case(r)
		if err != nil {
			return nil, err
		}
		c.cases = append(c.cases, one)
	}
	if worlds := Worlds(c.cases); len(worlds) > 1 {
		c.worlds = worlds
	}
	c.fitting, err = NewFitting(c.machine, c.cases, base.Transport())
	return c, err
}

// Step is one round of the present fit. It returns how much of all is done, and whether that is everything.
func (c *Calibration) Step() (share float64, done bool, err error) {
	const usual = 10.0 // rounds of a fit
	if !c.fitting.Round() {
		of := min(float64(c.fitting.round)/usual, 0.99)
		return (float64(c.stage) + of) / float64(1+len(c.worlds)), false, nil
	}
	r, err := c.fitting.Result()
	if err != nil {
		return 0, false, err
	}
	c.results = append(c.results, r)
	if c.stage++; c.stage > len(c.worlds) {
		return 1, true, nil
	}
	c.fitting, err = NewFitting(c.machine, Without(c.cases, c.worlds[c.stage-1]), c.base.Transport())
	return float64(c.stage) / float64(1+len(c.worlds)), false, err
}

// Report writes the errors and the coefficients that the data do not determine. It is for when all steps are done.
func (c *Calibration) Report(w io.Writer) error {
	if len(c.results) <= len(c.worlds) {
		return errors.New("the calibration is not done")
	}
	plain := func(one *Case) bool { return one.Plain() }
	fmt.Fprintf(w, "%d measurements; errors are mean / median / 95th percentile of |predicted / measured - 1|, in percent.\n\n", len(c.cases))
	Table(w, c.machine, c.results[0].Transport, c.cases, plain)
	for i, world := range c.worlds {
		of := Compare(c.machine, c.results[i+1].Transport, c.cases, func(one *Case) bool { return one.World == world && plain(one) })
		fmt.Fprintf(w, "\n%d ranks, predicted from the other world sizes: %s\n", world, of)
	}
	if len(c.worlds) == 0 {
		fmt.Fprintf(w, "\nThere is one world size only, %d: nothing says how well others are predicted.\n", Worlds(c.cases)[0])
	}
	if c.fitted != nil {
		fmt.Fprintf(w, "\n%d products of matrices: %s\n", len(c.products), CompareProducts(c.fitted, c.products))
	}
	c.reportAssumed(w)
	return nil
}

func (c *Calibration) reportAssumed(w io.Writer) {
	var assumed []string
	for _, e := range c.results[0].Fitted {
		if !e.Determined {
			assumed = append(assumed, "transport."+e.Path)
		}
	}
	if len(assumed) > 0 {
		fmt.Fprintf(w, "\nThe data do not determine these; they are marked assumed:\n  %s\n", strings.Join(assumed, "\n  "))
	}
}
