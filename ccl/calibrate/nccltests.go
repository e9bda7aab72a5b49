package calibrate

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// ncclTests reads what a program of nccl-tests prints: comments, of which one names the test and one a line names each
// rank, and a table whose columns are size, count, type, redop, root, and the time of calls out of place.
type ncclTests struct {
	file  string
	kind  collective.Kind
	known bool // which test it is
	world int
	rows  []Row
}

var (
	testName = regexp.MustCompile(`([a-z_]+)_perf`)
	rankLine = regexp.MustCompile(`^#\s+Rank\s+\d+\s`)
	// ncclNames are nccl-tests' names of collectives that have another one here.
	ncclNames = map[string]string{"alltoall": "all_to_all"}
)

// The columns of the table.
const (
	columnSize, columnType, columnTime = 0, 2, 5
	timeColumns                        = 8
)

func parseNCCLTests(file, data string) ([]Row, error) {
	p := ncclTests{file: file}
	p.name(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	for i, line := range strings.Split(data, "\n") {
		text := strings.TrimSpace(line)
		var err error
		switch {
		case text == "":
		case strings.HasPrefix(text, "#"):
			p.comment(text)
		default:
			err = p.row(line, i+1)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(p.rows) == 0 {
		return nil, &InputError{file, 1, 1, "there are no measurements: neither CSV with a header nor what nccl-tests prints"}
	}
	return p.rows, nil
}

// name looks for the name of a collective in text.
func (p *ncclTests) name(text string) {
	for k := range collective.NumKinds {
		for name := range ncclNames {
			if ncclNames[name] == k.String() && strings.Contains(text, name) {
				p.kind, p.known = k, true
			}
		}
		if at := strings.Index(text, k.String()); at >= 0 && !(k == collective.Reduce && p.known) {
			p.kind, p.known = k, true
		}
	}
}

func (p *ncclTests) comment(text string) {
	if rankLine.MatchString(text) {
		p.world++
	}
	if test := testName.FindString(text); test != "" {
		p.known = false
		p.name(test)
	}
}

// field is a word of a line, and its column.
type field struct {
	text   string
	column int
}

func fieldsOf(line string) []field {
	var list []field
	for _, at := range regexp.MustCompile(`\S+`).FindAllStringIndex(line, -1) {
		list = append(list, field{line[at[0]:at[1]], at[0] + 1})
	}
	return list
}

func (p *ncclTests) row(line string, number int) error {
	fields := fieldsOf(line)
	wrong := func(f field, format string, args ...any) error {
		return &InputError{p.file, number, f.column, fmt.Sprintf(format, args...)}
	}
	switch {
	case len(fields) < timeColumns:
		return wrong(fields[0], "a row of nccl-tests has at least %d columns, this one %d", timeColumns, len(fields))
	case !p.known:
		return wrong(fields[0], "which collective this is stands neither in a comment above (all_reduce_perf) nor in the file's name")
	case p.world < 2:
		return wrong(fields[0], "how many ranks there were is not known: %d lines above begin with # Rank", p.world)
	}
	size, elem := fields[columnSize], fields[columnType]
	bytes, err := strconv.ParseInt(size.text, 10, 64)
	if err != nil || bytes < 0 || bytes > mostBytes {
		return wrong(size, "the size must be a whole number of bytes, not %q", size.text)
	}
	row := Row{Collective: p.kind, World: p.world, Bytes: bytes, Variant: "default", ElemSize: sizeOf(elem.text), Calls: ccl.MeasuredCalls}
	if row.ElemSize == 0 {
		return wrong(elem, "%q is no dtype that is known", elem.text)
	}
	took := fields[columnTime]
	if row.Micros, err = strconv.ParseFloat(took.text, 64); err != nil || !(row.Micros > 0 && row.Micros < 1e9) {
		return wrong(took, "the time must be in µs and above 0, not %q", took.text)
	}
	if bytes > 0 {
		p.rows = append(p.rows, row)
	}
	return nil
}
