package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// bench is the measurements of collectives and what is fitted to them.
type bench struct {
	machine *calibrate.Machine
	cases   []calibrate.Case
	start   *topology.Transport
}

func load(file string) (*bench, error) {
	library, err := ccl.LoadLibrary("nccl-2.28")
	if err != nil {
		return nil, err
	}
	base := calibrate.Base()
	b := &bench{machine: calibrate.NewMachine(base, library), start: base.Transport()}
	cases, err := read(b.machine, file)
	b.cases = slices.DeleteFunc(cases, func(c calibrate.Case) bool { return isArtefact(c.Row) })
	return b, err
}

// read prepares the rows of a file.
func read(m *calibrate.Machine, file string) ([]calibrate.Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rows, err := calibrate.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var cases []calibrate.Case
	for _, r := range rows {
		c, err := m.Case(r)
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// isArtefact says whether a row is of the method and not of the machine: slopes between two graphs of small calls have
// 10 µs of their own.
func isArtefact(r calibrate.Row) bool {
	return strings.HasPrefix(r.Variant, "default_odd") && r.Bytes < 3<<19
}

func collectives(w io.Writer, file string) error {
	b, err := load(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n## Collectives of NCCL on H200\n\n%d measured times, of which %d are of NCCL's own choice; the others are "+
		"forced protocols and unaligned blocks, to fit to.\n", len(b.cases), calibrate.Compare(b.machine, b.start, b.cases, plain).N())
	if err := b.fromTwo(w); err != nil {
		return err
	}
	if err := b.fromAll(w); err != nil {
		return err
	}
	if err := b.leaveOneOut(w); err != nil {
		return err
	}
	return b.winners(w)
}

func plain(c *calibrate.Case) bool { return c.Plain() }

func large(c *calibrate.Case) bool { return c.Plain() && c.Bytes >= 1<<20-4096 }

// fromTwo fits 2 GPUs and predicts more.
func (b *bench) fromTwo(w io.Writer) error {
	of := b.cases
	for _, world := range calibrate.Worlds(b.cases) {
		if world > 2 {
			of = calibrate.Without(of, world)
		}
	}
	r, err := calibrate.Fit(b.machine, of, b.start)
	if err != nil {
		return err
	}
	more := calibrate.Without(b.cases, 2)
	aligned := func(c *calibrate.Case) bool { return large(c) && c.Aligned() }
	fmt.Fprintf(w, "\n### Fitted on 2 GPUs, predicted for 3 and 4\n\nFrom 1 MB on, aligned blocks: %s (aim: a mean of 5).\n\n",
		calibrate.Compare(b.machine, r.Transport, more, aligned))
	calibrate.Table(w, b.machine, r.Transport, more, plain)
	return nil
}

// fromAll fits all GPUs.
func (b *bench) fromAll(w io.Writer) error {
	r, err := calibrate.Fit(b.machine, b.cases, b.start)
	if err != nil {
		return err
	}
	fmt.Fprint(w, "\n### Fitted on 2, 3 and 4 GPUs, the same predicted\n\n")
	calibrate.Table(w, b.machine, r.Transport, b.cases, plain)
	fmt.Fprint(w, "\nThe coefficients, with their standard error (those with more than 25 % are hardly determined):\n\n"+
		"| | | ± % |\n|---|---|---|\n")
	for _, e := range r.Fitted {
		fmt.Fprintf(w, "| %s | %.4g | %.0f |\n", e.Path, e.Value, 100*e.Error)
	}
	return nil
}

// leaveOneOut fits all world sizes but one, and predicts that one.
func (b *bench) leaveOneOut(w io.Writer) error {
	fmt.Fprint(w, "\n### Each world size predicted from the others\n\nThe aim is a mean of 7, and of 4.5 from 1 MB on.\n\n"+
		"| left out | all | from 1 MB on | aligned blocks from 1 MB on |\n|---|---|---|---|\n")
	for _, world := range calibrate.Worlds(b.cases) {
		r, err := calibrate.Fit(b.machine, calibrate.Without(b.cases, world), b.start)
		if err != nil {
			return err
		}
		among := func(want func(c *calibrate.Case) bool) *calibrate.Errors {
			return calibrate.Compare(b.machine, r.Transport, b.cases, func(c *calibrate.Case) bool {
				return c.World == world && want(c)
			})
		}
		fmt.Fprintf(w, "| %d GPUs | %s | %s | %s |\n", world, among(plain), among(large),
			among(func(c *calibrate.Case) bool { return large(c) && c.Aligned() }))
	}
	return nil
}

// winners compares the protocol that is fastest with that which was measured to be.
func (b *bench) winners(w io.Writer) error {
	r, err := calibrate.Fit(b.machine, b.cases, b.start)
	if err != nil {
		return err
	}
	right, all := calibrate.Winners(b.machine, r.Transport, b.cases)
	fmt.Fprintf(w, "\n### The fastest protocol\n\nOf %d calls for which forced protocols differ by more than 5 %%, the prediction "+
		"has the same winner in %d (%.0f %%; aim: 95 %%).\n", all, right, 100*float64(right)/float64(max(all, 1)))
	return nil
}
