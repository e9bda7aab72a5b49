package calibrate

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Errors are how far predictions are off: |predicted / measured − 1|.
type Errors struct {
	off  []float64
	bias float64
}

// Add adds one prediction.
func (e *Errors) Add(predicted, measured float64) {
	e.off = append(e.off, math.Abs(predicted/measured-1))
	e.bias += predicted/measured - 1
}

// N is how many there are.
func (e *Errors) N() int { return len(e.off) }

// Mean is their mean, Bias that of the signed ones, and Quantile the value below which a share of them is.
func (e *Errors) Mean() float64 {
	sum := 0.0
	for _, off := range e.off {
		sum += off
	}
	return sum / float64(max(1, len(e.off)))
}

// Bias is the mean of predicted / measured − 1.
func (e *Errors) Bias() float64 { return e.bias / float64(max(1, len(e.off))) }

// Quantile is the error that a share of them does not exceed.
func (e *Errors) Quantile(share float64) float64 {
	if len(e.off) == 0 {
		return 0
	}
	sorted := slices.Clone(e.off)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// String is mean, median and 95th percentile in percent.
func (e *Errors) String() string {
	if e.N() == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f / %.1f / %.1f", 100*e.Mean(), 100*e.Quantile(0.5), 100*e.Quantile(0.95))
}

// Compare predicts the cases that want picks, and says how far off it is.
func Compare(m *Machine, t *topology.Transport, cases []Case, want func(c *Case) bool) *Errors {
	predicted := make([]float64, len(cases))
	forEach(len(cases), func(i int) {
		if want(&cases[i]) {
			predicted[i] = m.Predict(&cases[i], t)
		}
	})
	e := &Errors{}
	for i := range cases {
		if want(&cases[i]) {
			e.Add(predicted[i], cases[i].Micros)
		}
	}
	return e
}

// Aligned says whether all blocks of a row begin at multiples of 16 bytes.
func (r *Row) Aligned() bool {
	switch r.Collective {
	case collective.AllReduce, collective.Broadcast, collective.Reduce:
		return true
	}
	return r.blockAlignment()%16 == 0
}

// Plain says whether nothing about a row was forced.
func (r *Row) Plain() bool { return r.Variant == "default" }

// decades are the sizes that a table has columns for.
var decades = []struct {
	below int64
	name  string
}{
	{16 << 10, "< 16 KB"}, {128 << 10, "< 128 KB"}, {1 << 20, "< 1 MB"}, {16 << 20, "< 16 MB"}, {128 << 20, "< 128 MB"},
	{math.MaxInt64, "128 MB and more"},
}

// Table writes, as Markdown, the errors by collective and decade of size.
func Table(w io.Writer, m *Machine, t *topology.Transport, cases []Case, want func(c *Case) bool) {
	fmt.Fprint(w, "| | all |")
	for _, d := range decades {
		fmt.Fprintf(w, " %s |", d.name)
	}
	fmt.Fprintf(w, "\n|---|%s\n", repeat("---|", len(decades)+1))
	for _, k := range kindsOf(cases) {
		tableRow(w, m, t, cases, k.String(), func(c *Case) bool { return c.Collective == k && want(c) })
	}
	tableRow(w, m, t, cases, "all", want)
}

func tableRow(w io.Writer, m *Machine, t *topology.Transport, cases []Case, name string, want func(c *Case) bool) {
	fmt.Fprintf(w, "| %s | %s |", name, Compare(m, t, cases, want))
	from := int64(0)
	for _, d := range decades {
		fmt.Fprintf(w, " %s |", Compare(m, t, cases, func(c *Case) bool {
			return want(c) && from <= c.Bytes && c.Bytes < d.below
		}))
		from = d.below
	}
	fmt.Fprintln(w)
}

func repeat(s string, n int) (all string) {
	for range n {
		all += s
	}
	return all
}

// kindsOf lists the collectives of the cases, in the order of their table.
func kindsOf(cases []Case) []collective.Kind {
	var list []collective.Kind
	for k := range collective.NumKinds {
		if slices.ContainsFunc(cases, func(c Case) bool { return c.Collective == k }) {
			list = append(list, k)
		}
	}
	return list
}

// Worlds lists the world sizes of the cases.
func Worlds(cases []Case) []int {
	var list []int
	for i := range cases {
		list = append(list, cases[i].World)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Without returns the cases that do not have a world size.
func Without(cases []Case, world int) []Case {
	return slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return c.World == world })
}

// Winners counts the calls that were measured with several protocols forced, of which the two fastest differ by more than
// 5 %, and those for which the prediction has the same fastest one.
func Winners(m *Machine, t *topology.Transport, cases []Case) (right, all int) {
	took := map[*Case]float64{}
	var order []sameCall
	calls := map[sameCall][]*Case{}
	for i := range cases {
		c := &cases[i]
		if _, free, _ := forced(c.Variant); free {
			continue
		}
		key := sameCall{c.Collective, c.World, c.Bytes, c.ElemSize}
		if calls[key] == nil {
			order = append(order, key)
		}
		calls[key] = append(calls[key], c)
		took[c] = m.Predict(c, t)
	}
	for _, key := range order {
		list := calls[key]
		slices.SortFunc(list, func(a, b *Case) int { return cmp.Compare(a.Micros, b.Micros) })
		if len(list) < 2 || list[1].Micros < 1.05*list[0].Micros {
			continue
		}
		all++
		fastest := slices.MinFunc(list, func(a, b *Case) int { return cmp.Compare(took[a], took[b]) })
		if fastest == list[0] {
			right++
		}
	}
	return right, all
}
