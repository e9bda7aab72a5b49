package replay

import "bytes"

// scanner reads the words of a line. A file has millions, so nothing is allocated for them.
type scanner struct{ text []byte }

// word is the next word; empty at the end, and where a comment begins.
func (s *scanner) word() []byte {
	t := s.text
	i := 0
	for i < len(t) && (t[i] == ' ' || t[i] == '\t' || t[i] == '\r') {
		i++
	}
	if i+1 < len(t) && t[i] == '/' && (t[i+1] == '*' || t[i+1] == '/') || i < len(t) && t[i] == '#' {
		s.text = nil
		return nil
	}
	from := i
	for i < len(t) && t[i] != ' ' && t[i] != '\t' && t[i] != '\r' {
		i++
	}
	s.text = t[i:]
	return t[from:i]
}

// amount is the next word as a number that is not negative, with a unit behind it.
func (s *scanner) amount(unit string) (int64, bool) {
	word := s.word()
	if len(word) < len(unit) || string(word[len(word)-len(unit):]) != unit {
		return 0, false
	}
	n, ok := integer(word[:len(word)-len(unit)])
	return int64(n), ok && n >= 0
}

// fields are all words of a line.
func fields(line []byte) (words [][]byte) {
	s := scanner{line}
	for w := s.word(); len(w) > 0; w = s.word() {
		words = append(words, w)
	}
	return words
}

// integer reads a decimal number of up to 18 digits.
func integer(word []byte) (n int, ok bool) {
	digits, negative := word, false
	if len(word) > 0 && word[0] == '-' {
		digits, negative = word[1:], true
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// show is some of a text, for messages.
func show(text []byte) string {
	const most = 60
	text = bytes.TrimSpace(text)
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// labels finds operations by their labels. Most are l and a number, from 1 on.
type labels struct {
	numbered []uint32 // one more than the operation; 0: none
	named    map[string]uint32
}

// number is that of a label such as l17.
func number(label []byte) (n int, ok bool) {
	if len(label) < 2 || len(label) > 10 || label[0] != 'l' || label[1] == '0' && len(label) > 2 || label[1] == '-' {
		return 0, false
	}
	return integer(label[1:])
}

// add notes a label; false when it is taken.
func (l *labels) add(label []byte, operation uint32) bool {
	if _, taken := l.find(label); taken {
		return false
	}
	if n, ok := number(label); ok && n <= 2*len(l.numbered)+1024 {
		if n >= len(l.numbered) {
			l.numbered = append(l.numbered, make([]uint32, n+1-len(l.numbered))...)
		}
		l.numbered[n] = operation + 1
		return true
	}
	if l.named == nil {
		l.named = map[string]uint32{}
	}
	l.named[string(label)] = operation
	return true
}

// find is the operation of a label.
func (l *labels) find(label []byte) (operation uint32, ok bool) {
	if n, ok := number(label); ok && n < len(l.numbered) && l.numbered[n] > 0 {
		return l.numbered[n] - 1, true
	}
	operation, ok = l.named[string(label)]
	return operation, ok
}
