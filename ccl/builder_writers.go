package ccl

import (
	"slices"
	"sort"
)

// writers notes which step wrote the present value of each chunk of each rank, plus one; 0 for the rank's input.
type writers struct {
	chunks int
	flat   []uint32       // of rank·chunks+chunk; nil when there are too many
	runs   [][]writtenRun // then: by rank, in ascending order
	found  []uint32
}

// writtenRun is chunks that one step wrote, from one on until where the next run begins.
type writtenRun struct {
	from   int32
	writer uint32
}

// maxFlatWriters is for how many chunks of all ranks there is a word each. In larger worlds steps move long runs of chunks,
// for algorithms with short ones have too many steps to be built.
const maxFlatWriters = 1 << 27

func newWriters(world, chunks int) writers {
	w := writers{chunks: chunks}
	if world <= maxFlatWriters/chunks {
		w.flat = make([]uint32, world*chunks)
		return w
	}
	w.runs = make([][]writtenRun, world)
	for r := range w.runs {
		w.runs[r] = []writtenRun{{}}
	}
	return w
}

// of lists the writers of a rank's chunks, each at least once for each run of chunks that it wrote. The list holds until
// the next call.
func (w *writers) of(rank, lo, hi int) []uint32 {
	if w.flat != nil {
		return w.flat[rank*w.chunks+lo : rank*w.chunks+hi]
	}
	runs := w.runs[rank]
	w.found = w.found[:0]
	for i := runAt(runs, lo); i < len(runs) && int(runs[i].from) < hi; i++ {
		w.found = append(w.found, runs[i].writer)
	}
	return w.found
}

// runAt is the run that a chunk is in.
func runAt(runs []writtenRun, chunk int) int {
	return sort.Search(len(runs), func(i int) bool { return int(runs[i].from) > chunk }) - 1
}

// set makes a step the writer of a rank's chunks.
func (w *writers) set(rank, lo, hi int, writer uint32) {
	if w.flat != nil {
		chunks := w.flat[rank*w.chunks+lo : rank*w.chunks+hi]
		for c := range chunks {
			chunks[c] = writer
		}
		return
	}
	runs := w.runs[rank]
	first, last := runAt(runs, lo), runAt(runs, hi-1)
	fresh := make([]writtenRun, 0, 3)
	if int(runs[first].from) < lo {
		fresh = append(fresh, runs[first])
	}
	fresh = append(fresh, writtenRun{int32(lo), writer})
	end := w.chunks
	if last+1 < len(runs) {
		end = int(runs[last+1].from)
	}
	if hi < end {
		fresh = append(fresh, writtenRun{int32(hi), runs[last].writer})
	}
	w.runs[rank] = slices.Replace(runs, first, last+1, fresh...)
}
