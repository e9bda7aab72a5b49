package topology

// A shape is a regular graph over the vertices 0 … n-1: its directed edges are numbered, and every question about
// them is answered by arithmetic.
type shape interface {
	// edges is the number of directed edges.
	edges() int
	// edge gives the ends of edge i.
	edge(i int) (from, to int)
	// path appends to route the edges of a shortest way, each plus base.
	path(route []LinkID, base LinkID, from, to int) []LinkID
}

// line is one row or column of a grid: n vertices, closed to a ring or not. Cable j joins vertex j and the next one;
// edge 2j is its positive direction, edge 2j+1 the negative.
type line struct {
	n    int
	ring bool
}

// newLine closes a line of two vertices never: its one cable already has both directions.
func newLine(n int, ring bool) line { return line{n, ring && n > 2} }

func (l line) edges() int {
	if l.ring {
		return 2 * l.n
	}
	return 2 * (l.n - 1)
}

func (l line) edge(i int) (from, to int) {
	from, to = i/2, (i/2+1)%l.n
	if i%2 == 1 {
		return to, from
	}
	return from, to
}

// positive tells whether the way from one vertex to another goes upwards. A tie on a ring does.
func (l line) positive(from, to int) bool {
	if !l.ring {
		return to > from
	}
	return 2*((to-from+l.n)%l.n) <= l.n
}

// path appends the edges of a shortest way from one vertex to another. What is nearer in one direction stays so on the way.
func (l line) path(route []LinkID, base LinkID, from, to int) []LinkID {
	up := l.positive(from, to)
	for from != to {
		next := l.next(from, up)
		if up {
			route = append(route, base+LinkID(2*from))
		} else {
			route = append(route, base+LinkID(2*next+1))
		}
		from = next
	}
	return route
}

// next is the vertex after one, or before it. What is beyond an end is at the other one.
func (l line) next(v int, up bool) int {
	switch {
	case !up && v == 0:
		return l.n - 1
	case !up:
		return v - 1
	case v == l.n-1:
		return 0
	}
	return v + 1
}

// grid is a mesh (open lines) or a torus (closed ones) of x.n × y.n vertices in row-major order. A ring is a torus of
// one row. The edges of all rows come first, then those of all columns.
type grid struct{ x, y line }

func newGrid(w, h int, torus bool) grid { return grid{newLine(w, torus), newLine(h, torus)} }

func (g grid) edges() int { return g.y.n*g.x.edges() + g.x.n*g.y.edges() }

func (g grid) edge(i int) (from, to int) {
	w, rows := g.x.n, g.y.n*g.x.edges()
	if i < rows {
		y := i / g.x.edges()
		from, to = g.x.edge(i % g.x.edges())
		return y*w + from, y*w + to
	}
	i -= rows
	x := i / g.y.edges()
	from, to = g.y.edge(i % g.y.edges())
	return from*w + x, to*w + x
}

// path goes along the row first, then along the column, so that routes cannot form a cycle on a mesh.
func (g grid) path(route []LinkID, base LinkID, from, to int) []LinkID {
	w := g.x.n
	x, y, toX, toY := from%w, from/w, to%w, to/w
	route = g.x.path(route, base+LinkID(y*g.x.edges()), x, toX)
	return g.y.path(route, base+LinkID(g.y.n*g.x.edges()+toX*g.y.edges()), y, toY)
}

// complete has an edge from each of n vertices to each other one.
type complete struct{ n int }

func (c complete) edges() int { return c.n * (c.n - 1) }

func (c complete) edge(i int) (from, to int) {
	from, to = i/(c.n-1), i%(c.n-1)
	if to >= from {
		to++
	}
	return from, to
}

func (c complete) path(route []LinkID, base LinkID, from, to int) []LinkID {
	if from == to {
		return route
	}
	if to > from {
		to--
	}
	return append(route, base+LinkID(from*(c.n-1)+to))
}

// star joins each of n vertices to a hub, which is vertex n. Edge 2i leads from i to the hub, 2i+1 back.
type star struct{ n int }

func (s star) edges() int { return 2 * s.n }

func (s star) edge(i int) (from, to int) {
	if i%2 == 1 {
		return s.n, i / 2
	}
	return i / 2, s.n
}

func (s star) path(route []LinkID, base LinkID, from, to int) []LinkID {
	if from == to {
		return route
	}
	return append(route, base+LinkID(2*from), base+LinkID(2*to+1))
}
