package kineto

import (
	"encoding/json"
	"strconv"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// object is the text of a JSON object in the making. It is written by hand, because a trace is millions of them.
type object struct {
	text  []byte
	begun bool // its innermost object has a member
	exact bool // times are in picoseconds
}

func (o *object) open() {
	o.text = append(o.text, '{')
	o.begun = false
}

func (o *object) close() {
	o.text = append(o.text, '}')
	o.begun = true
}

func (o *object) key(name string) {
	if o.begun {
		o.text = append(o.text, ", "...)
	}
	o.begun = true
	o.text = append(o.text, '"')
	o.text = append(o.text, name...)
	o.text = append(o.text, `": `...) // HTA looks for the blank
}

func (o *object) str(name, value string) {
	o.key(name)
	o.text = appendString(o.text, value)
}

func (o *object) num(name string, value int64) {
	o.key(name)
	o.text = strconv.AppendInt(o.text, value, 10)
}

func (o *object) float(name string, value float64) {
	o.key(name)
	o.text = strconv.AppendFloat(o.text, value, 'f', -1, 64)
}

// time writes a time in microseconds.
func (o *object) time(name string, t sim.Time) {
	o.key(name)
	o.text = strconv.AppendInt(o.text, int64(t/sim.Microsecond), 10)
	o.text = append(o.text, '.')
	last := sim.Nanosecond
	if o.exact {
		last = sim.Picosecond
	}
	rest := t % sim.Microsecond
	for unit := sim.Microsecond / 10; unit >= last; unit /= 10 {
		o.text = append(o.text, byte('0'+rest/unit%10))
	}
}

// span writes a beginning and a length. Perfetto rounds both to nanoseconds, each for itself, and drops bars that then
// overlap: unless times are to be exact, the length is therefore the difference of two whole nanoseconds.
func (o *object) span(start, end sim.Time) {
	o.time("ts", start)
	if !o.exact {
		start, end = trace.Nanoseconds(start), trace.Nanoseconds(end)
	}
	o.time("dur", end-start)
}

// nested begins a member that is an object, which close ends.
func (o *object) nested(name string) {
	o.key(name)
	o.open()
}

func appendString(text []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("kineto: " + err.Error()) // no string is invalid
			}
			return append(text, quoted...)
		}
	}
	text = append(text, '"')
	text = append(text, s...)
	return append(text, '"')
}
