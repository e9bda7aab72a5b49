package replay

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// ParseGOAL reads the text of a file in GOAL, the language of LogGOPSim's schedules, whose name is for the messages:
//
//	num_ranks 2
//	rank 0 {
//	l1: calc 100
//	l2: send 10b to 1 tag 7 cpu 0
//	l2 requires l1
//	}
//
// A calc is in ns; requires waits for an end, irequires for a start. The error lists what is wrong, with lines.
func ParseGOAL(file string, text []byte) (*Job, error) {
	blocks, ranks, err := splitGOAL(file, text)
	if err != nil {
		return nil, err
	}
	parse(blocks)
	j := &Job{file: file, ranks: ranks}
	var wrong mistakes
	for _, b := range blocks {
		wrong = append(wrong, b.wrong...)
	}
	if err := wrong.error(); err != nil {
		return nil, err
	}
	j.join(blocks)
	return j, j.match()
}

// mistakes are lines of a message.
type mistakes []string

func (m mistakes) error() error {
	if len(m) == 0 {
		return nil
	}
	if more := len(m) - maxShown; more > 0 {
		m = append(slices.Clone(m[:maxShown]), fmt.Sprintf("… and %d more", more))
	}
	return fmt.Errorf("%s", bytes.Join(lines(m), []byte("\n")))
}

func lines(m mistakes) (list [][]byte) {
	for _, text := range m {
		list = append(list, []byte(text))
	}
	return list
}

// block is what a rank does.
type block struct {
	file  string
	rank  int
	ranks int
	line  int // of its first line
	text  []byte

	operations []operation
	needs      []need
	labels     labels
	wrong      mistakes
}

// need is one line of requires or irequires: by their numbers in the block.
type need struct {
	from, to uint32
	start    bool
}

// splitGOAL finds the blocks of the ranks.
func splitGOAL(file string, text []byte) (blocks []*block, ranks int, err error) {
	line, ranks := 1, -1
	given := map[int]int{} // lines by rank
	for len(text) > 0 {
		here, rest, _ := bytes.Cut(text, []byte("\n"))
		words := fields(here)
		text, line = rest, line+1
		if len(words) == 0 {
			continue
		}
		at := fmt.Sprintf("%s:%d", file, line-1)
		number, isNumber := 0, false
		if len(words) > 1 {
			number, isNumber = integer(words[1])
		}
		switch {
		case string(words[0]) == "num_ranks" && len(words) == 2 && isNumber && number > 0 && number <= maxRanks && ranks < 0:
			ranks = number
		case string(words[0]) == "rank" && len(words) == 3 && isNumber && string(words[2]) == "{" && ranks > 0:
			if number < 0 || number >= ranks {
				return nil, 0, fmt.Errorf("%s: rank %d: there are %d ranks", at, number, ranks)
			}
			if before, twice := given[number]; twice {
				return nil, 0, fmt.Errorf("%s: rank %d is there twice, first in line %d", at, number, before)
			}
			given[number] = line - 1
			end := bytes.IndexByte(text, '}')
			if end < 0 {
				return nil, 0, fmt.Errorf("%s: rank %d has no end: } is missing", at, number)
			}
			blocks = append(blocks, &block{file: file, rank: number, ranks: ranks, line: line, text: text[:end]})
			line += bytes.Count(text[:end], []byte("\n"))
			text = text[end+1:]
		case ranks < 0:
			return nil, 0, fmt.Errorf("%s: a GOAL file begins with num_ranks and a number from 1 to %d, not %q", at, maxRanks, show(here))
		default:
			return nil, 0, fmt.Errorf("%s: want rank and its number and {, not %q", at, show(here))
		}
	}
	if ranks < 0 {
		return nil, 0, fmt.Errorf("%s:1: a GOAL file begins with num_ranks and a number; this one is empty", file)
	}
	slices.SortFunc(blocks, func(a, b *block) int { return a.rank - b.rank })
	return blocks, ranks, nil
}

// maxRanks bounds the ranks of a job.
const maxRanks = 1 << 20

// parse reads the blocks, on as many threads as there are: reading is no part of the simulation.
func parse(blocks []*block) {
	var wait sync.WaitGroup
	next := make(chan *block)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for b := range next {
				b.parse()
			}
		})
	}
	for _, b := range blocks {
		next <- b
	}
	close(next)
	wait.Wait()
}

func (b *block) parse() {
	n := bytes.Count(b.text, []byte("\n"))
	b.operations = make([]operation, 0, n/2+1)
	b.needs = make([]need, 0, n/2+1)
	text, line := b.text, b.line
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		here := text
		if end >= 0 {
			here, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		b.read(scanner{here}, int32(line))
		line++
	}
}

// fail notes what is wrong in a line.
func (b *block) fail(line int32, format string, args ...any) {
	if len(b.wrong) <= maxShown {
		b.wrong = append(b.wrong, fmt.Sprintf("%s:%d: rank %d: ", b.file, line, b.rank)+fmt.Sprintf(format, args...))
	}
}

// read reads one line.
func (b *block) read(s scanner, line int32) {
	whole := s.text
	label := s.word()
	if len(label) == 0 {
		return
	}
	if label[len(label)-1] == ':' {
		b.operation(label[:len(label)-1], &s, whole, line)
		return
	}
	verb := s.word()
	target := s.word()
	start := string(verb) == "irequires"
	if !start && string(verb) != "requires" || len(target) == 0 || len(s.word()) > 0 {
		if len(verb) > 0 && verb[0] != ':' && len(label) > 0 && isVerb(label) {
			s = scanner{whole}
			b.operation(nil, &s, whole, line)
			return
		}
		b.fail(line, "want an operation, or one that requires another, not %q", show(whole))
		return
	}
	to, known := b.labels.find(label)
	from, also := b.labels.find(target)
	switch {
	case !known:
		b.fail(line, "there is no operation %s before this line", show(label))
	case !also:
		b.fail(line, "there is no operation %s before this line", show(target))
	case to == from:
		b.fail(line, "%s %s itself", show(label), verb)
	default:
		b.needs = append(b.needs, need{from, to, start})
		b.operations[to].waits++
	}
}

// isVerb says whether an operation without a label may begin so.
func isVerb(word []byte) bool {
	return string(word) == "calc" || string(word) == "send" || string(word) == "recv"
}

// operation reads what follows a label.
func (b *block) operation(label []byte, s *scanner, whole []byte, line int32) {
	o := operation{rank: int32(b.rank), line: line, mate: none}
	verb := s.word()
	ok := true
	switch string(verb) {
	case "calc":
		var amount int64
		amount, ok = s.amount("")
		if ok = ok && amount <= math.MaxInt64/int64(sim.Nanosecond)/4; ok {
			o.amount = amount * int64(sim.Nanosecond)
		}
	case "send":
		o.kind = send
		o.amount, ok = s.amount("b")
		ok = ok && b.peer(&o, s, "to", line)
	case "recv":
		o.kind, o.waits = receive, 1
		o.amount, ok = s.amount("b")
		ok = ok && b.peer(&o, s, "from", line)
	default:
		b.fail(line, "want calc, send or recv, not %q", show(whole))
		return
	}
	if ok = ok && b.options(&o, s); !ok {
		b.fail(line, "cannot read %q; an operation is calc NS, send BYTESb to RANK or recv BYTESb from RANK, with tag, cpu or nic and a number", show(whole))
		return
	}
	if label != nil && !b.labels.add(label, uint32(len(b.operations))) {
		b.fail(line, "there are two operations %s", show(label))
	}
	b.operations = append(b.operations, o)
}

// peer reads the other rank.
func (b *block) peer(o *operation, s *scanner, preposition string, line int32) bool {
	if string(s.word()) != preposition {
		return false
	}
	peer, ok := integer(s.word())
	if ok && (peer < 0 || peer >= b.ranks) {
		b.fail(line, "rank %d: there are %d ranks", peer, b.ranks)
		peer = b.rank
	}
	o.peer = int32(peer)
	return ok
}

// options reads pairs of a name and a number.
func (b *block) options(o *operation, s *scanner) bool {
	for name := s.word(); len(name) > 0; name = s.word() {
		n, ok := integer(s.word())
		if !ok || n < math.MinInt32 || n > math.MaxInt32 {
			return false
		}
		switch string(name) {
		case "tag":
			o.tag = int32(n)
		case "cpu":
			if n < 0 || n > math.MaxUint16 {
				return false
			}
			o.unit = uint16(n)
		case "nic":
		default:
			return false
		}
	}
	return true
}
