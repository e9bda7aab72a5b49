package trace

import (
	"cmp"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// Lanes gives each of n times a lane, from 0, so that those of one lane do not overlap: viewers want that of what they
// draw in a row. Each gets the lowest lane that is free at its start; of those that start together, the first.
func Lanes(n int, at func(i int) (start, end sim.Time)) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, _ := at(a)
		y, _ := at(b)
		return cmp.Compare(x, y)
	})
	lanes := make([]int, n)
	var free []sim.Time // from when on each lane is
	for _, i := range order {
		start, end := at(i)
		lane := slices.IndexFunc(free, func(t sim.Time) bool { return t <= start })
		if lane < 0 {
			lane = len(free)
			free = append(free, 0)
		}
		lanes[i], free[lane] = lane, end
	}
	return lanes
}

// Row is a lane of a Track: activities that follow one another.
type Row struct {
	Track      Track
	Lane       int
	Activities []*Activity // in the order of their starts
}

// Rows are a rank's activities, by track and lane.
func (rec *Recording) Rows(rank int) []Row {
	byTrack := map[Track][]*Activity{}
	var tracks []Track
	for i := range rec.Activities {
		a := &rec.Activities[i]
		if a.Rank != rank {
			continue
		}
		if byTrack[a.Track] == nil {
			tracks = append(tracks, a.Track)
		}
		byTrack[a.Track] = append(byTrack[a.Track], a)
	}
	slices.SortFunc(tracks, func(a, b Track) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Name, b.Name))
	})
	var rows []Row
	for _, t := range tracks {
		rows = append(rows, t.rows(byTrack[t])...)
	}
	return rows
}

func (t Track) rows(list []*Activity) []Row {
	slices.SortStableFunc(list, func(a, b *Activity) int { return cmp.Compare(a.Start, b.Start) })
	var rows []Row
	for i, lane := range Lanes(len(list), func(i int) (start, end sim.Time) { return list[i].Start, list[i].End }) {
		if lane == len(rows) {
			rows = append(rows, Row{Track: t, Lane: lane})
		}
		rows[lane].Activities = append(rows[lane].Activities, list[i])
	}
	return rows
}
