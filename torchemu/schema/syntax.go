package schema

import (
	"bytes"
	"regexp"
	"strconv"
)

// How yaml.v3 words its errors. Those of its parser, unlike those of its scanner, count lines from 0, and say nothing
// of line 0; one of an unknown anchor has no line at all.
var (
	yamlError     = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)
	parserError   = regexp.MustCompile(`^did not find expected (<|node|'-'|key|',')|^found (undefined|duplicate|incompat)`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
)

// syntax reports that the text is no YAML, on the line where the YAML parser noticed.
func (d *Document) syntax(err error, data []byte) {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		d.Report("", "not valid YAML: %v", err)
		return
	}
	d.lines[""] = syntaxLine(m[1], m[2], data)
	d.Report("", "not valid YAML: %s", shorten(m[2], 100))
}

func syntaxLine(number, text string, data []byte) int {
	line, _ := strconv.Atoi(number) // no number is 0
	if parserError.MatchString(text) {
		line++
	}
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		alias := regexp.MustCompile(`(^|[\s\[{,])\*` + regexp.QuoteMeta(m[1]))
		if at := alias.FindIndex(data); at != nil {
			line = lineCount(data[:at[1]])
		}
	}
	last := lineCount(bytes.TrimRight(data, "\r\n \t")) // the parser may name the line after it
	return max(1, min(line, last))
}

func lineCount(data []byte) int { return 1 + bytes.Count(data, []byte("\n")) }
