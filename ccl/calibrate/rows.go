// Package calibrate fits the coefficients of a topology's transport to times that were measured on a machine. What it
// fits is the executor itself, so there is no second model that could say something else.
package calibrate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// Row is one measured time.
type Row struct {
	Collective collective.Kind
	World      int
	Bytes      int64   // as nccl-tests counts: of the large side
	Micros     float64 // of one call
	Variant    string  // "default", or algorithm and protocol that were forced, such as ring_ll
	ElemSize   int     // bytes
	Calls      int     // back to back, of which Micros is the mean
}

// InputError is what is wrong in a file of measurements.
type InputError struct {
	File         string
	Line, Column int
	Text         string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

const (
	mostWorld = 1 << 12
	mostBytes = 1 << 42
)

// Parse reads a file of measurements: CSV with a header, or what nccl-tests prints. The error is an *[InputError].
func Parse(file string, data []byte) ([]Row, error) {
	first, _, _ := strings.Cut(strings.TrimLeft(string(data), "\n\r\t "), "\n")
	if strings.HasPrefix(first, "#") || !strings.Contains(first, ",") {
		return parseNCCLTests(file, string(data))
	}
	return parseCSV(file, string(data))
}

// csvReader reads the columns by their names.
type csvReader struct {
	file    string
	reader  *csv.Reader
	columns map[string]int
	record  []string
}

var (
	neededColumns  = []string{"collective", "world", "size", "us"}
	allowedColumns = []string{"collective", "world", "size", "us", "variant", "dtype", "calls", "bytes"}
)

func parseCSV(file, data string) ([]Row, error) {
	r := csvReader{file: file, reader: csv.NewReader(strings.NewReader(data)), columns: map[string]int{}}
	if err := r.header(); err != nil {
		return nil, err
	}
	var rows []Row
	for {
		row, err := r.row()
		switch {
		case errors.Is(err, io.EOF) && len(rows) == 0:
			return nil, &InputError{file, 1, 1, "there are no measurements below the header"}
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, err
		case row != nil:
			rows = append(rows, *row)
		}
	}
}

func (r *csvReader) header() error {
	record, err := r.reader.Read()
	if err != nil {
		return placed(r.file, err, record, len(record))
	}
	for i, name := range record {
		name = strings.TrimSpace(name)
		line, column := r.reader.FieldPos(i)
		if !contains(allowedColumns, name) {
			return &InputError{r.file, line, column, fmt.Sprintf("%q is no column of measurements; the columns are %s",
				name, strings.Join(allowedColumns, ", "))}
		}
		if _, twice := r.columns[name]; twice {
			return &InputError{r.file, line, column, fmt.Sprintf("the column %s is there twice", name)}
		}
		r.columns[name] = i
	}
	for _, name := range neededColumns {
		if _, ok := r.columns[name]; !ok {
			return &InputError{r.file, 1, 1, fmt.Sprintf("the column %s is missing", name)}
		}
	}
	return nil
}

func contains(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

// placed gives what encoding/csv says of a record a place, and of its number of fields what is right.
func placed(file string, err error, record []string, columns int) error {
	var at *csv.ParseError
	if !errors.As(err, &at) {
		return err
	}
	problem := at.Err.Error()
	if errors.Is(err, csv.ErrFieldCount) {
		problem = fmt.Sprintf("the row and the header must have as many fields, not %d and %d", len(record), columns)
	}
	return &InputError{file, at.Line, max(at.Column, 1), problem}
}

// row reads a row; nil for messages between two ranks, which are no collective, and for trees, which inside a node no
// library chooses.
func (r *csvReader) row() (*Row, error) {
	var err error
	if r.record, err = r.reader.Read(); err != nil {
		return nil, placed(r.file, err, r.record, len(r.columns))
	}
	if r.text("collective") == "sendrecv" {
		return nil, nil
	}
	row := Row{Variant: "default", ElemSize: 4, Calls: ccl.MeasuredCalls}
	if row.Collective, err = collective.ParseKind(r.text("collective")); err != nil {
		return nil, r.at("collective", "%v", err)
	}
	bytes := "size"
	if r.has("bytes") {
		bytes = "bytes"
	}
	numbers := []struct {
		column string
		lo, hi float64
		set    func(float64)
	}{
		{"world", 2, mostWorld, func(v float64) { row.World = int(v) }},
		{bytes, 1, mostBytes, func(v float64) { row.Bytes = int64(v) }},
		{"calls", 1, 1e6, func(v float64) { row.Calls = int(v) }},
	}
	for _, n := range numbers {
		if !r.has(n.column) {
			continue
		}
		v, err := strconv.ParseInt(r.text(n.column), 10, 64)
		if err != nil || float64(v) < n.lo || float64(v) > n.hi {
			return nil, r.at(n.column, "%s must be a whole number from %.0f to %.0f, not %q", n.column, n.lo, n.hi, r.text(n.column))
		}
		n.set(float64(v))
	}
	if err := r.rest(&row); err != nil || strings.HasPrefix(row.Variant, "tree_") {
		return nil, err
	}
	return &row, nil
}

// rest reads what is no whole number.
func (r *csvReader) rest(row *Row) error {
	v, err := strconv.ParseFloat(r.text("us"), 64)
	if err != nil || !(v > 0 && v < 1e9) {
		return r.at("us", "us must be a time in µs above 0, not %q", r.text("us"))
	}
	row.Micros = v
	if r.has("variant") && r.text("variant") != "" {
		row.Variant = r.text("variant")
		if _, _, err := forced(row.Variant); err != nil {
			return r.at("variant", "%v", err)
		}
	}
	if r.has("dtype") {
		if row.ElemSize = sizeOf(r.text("dtype")); row.ElemSize == 0 {
			return r.at("dtype", "%q is no dtype that is known", r.text("dtype"))
		}
	}
	return nil
}

func (r *csvReader) has(column string) bool {
	_, ok := r.columns[column]
	return ok
}

func (r *csvReader) text(column string) string { return strings.TrimSpace(r.record[r.columns[column]]) }

func (r *csvReader) at(column, format string, args ...any) error {
	line, col := r.reader.FieldPos(r.columns[column])
	return &InputError{r.file, line, col, fmt.Sprintf(format, args...)}
}

// sizeOf is the bytes of an element of a dtype by PyTorch's name, or nccl-tests'; 0: unknown.
func sizeOf(dtype string) int {
	switch dtype {
	case "int8", "uint8", "char", "float8_e4m3fn", "float8_e5m2", "f8e4m3", "f8e5m2":
		return 1
	case "half", "float16", "bfloat16", "int16":
		return 2
	case "float", "float32", "int32", "uint32":
		return 4
	case "double", "float64", "int64", "uint64":
		return 8
	}
	return 0
}
