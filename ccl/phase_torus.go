package ccl

// from is the torus with its indices counted from where a rank is.
func (g grid) from(rank int) grid {
	for i, row := range g {
		for j, r := range row {
			if r == rank {
				return g.shifted(i, j)
			}
		}
	}
	return g
}

func (g grid) shifted(i, j int) grid {
	s := make(grid, len(g))
	for k := range s {
		row := g[(i+k)%len(g)]
		s[k] = append(append([]int{}, row[j:]...), row[:j]...)
	}
	return s
}

// alongI runs a phase along every column, on rows of chunks from first on.
func (g grid) alongI(first int, of func([]int, []part) phase) phase {
	height, width := len(g), len(g[0])
	return forEach(width, func(j int) phase { return of(g.column(j), parts(first, height, width)) })
}

// alongJ runs a phase along every row, on the chunks of that row.
func (g grid) alongJ(first int, of func([]int, []part) phase) phase {
	width := len(g[0])
	return forEach(len(g), func(i int) phase { return of(g[i], parts(first+i*width, width, 1)) })
}

// allGather is the phases of one, on a chunk for each rank, from first on, as are the next three.
func (g grid) allGather(first int) []phase {
	return []phase{g.alongJ(first, ringAllGather), g.alongI(first, ringAllGather)}
}

func (g grid) reduceScatter(first int) []phase {
	return []phase{g.alongI(first, ringReduceScatter), g.alongJ(first, ringReduceScatter)}
}

func (g grid) scatter(first int) []phase {
	height, width := len(g), len(g[0])
	return []phase{lineScatter(g.column(0), parts(first, height, width)), g.alongJ(first, lineScatter)}
}

func (g grid) gather(first int) []phase {
	height, width := len(g), len(g[0])
	return []phase{g.alongJ(first, lineGather), lineGather(g.column(0), parts(first, height, width))}
}
