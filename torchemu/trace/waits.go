package trace

import "github.com/torchemu/torchemu/torchemu/sim"

// Wait is a time in which a stream or group of a rank had something to do that had been called for, and could not begin
// because of something else on the rank's device.
type Wait struct {
	Row        int       // what waited has this place in Rows
	For        *Activity // the end of which ended it
	On         int       // For's row
	Start, End sim.Time
}

// Waits lists those of rows, which Rows gave. Simulated times are exact: what begins at the very moment at which something
// else ends was waiting for it. Messages are none of a device's orders, so they have no waits of their own.
func Waits(rows []Row) []Wait {
	type end struct {
		row int
		of  *Activity
	}
	ends := map[sim.Time][]end{}
	for i, row := range rows {
		for _, a := range row.Activities {
			ends[a.End] = append(ends[a.End], end{i, a})
		}
	}
	var list []Wait
	for i, row := range rows {
		if row.Track.Kind == MessageTrack {
			continue
		}
		var free sim.Time // from when on the row is
		for _, a := range row.Activities {
			ready := max(free, a.Issued)
			free = a.End
			for _, e := range ends[a.Start] {
				if e.row != i && ready < a.Start {
					list = append(list, Wait{Row: i, For: e.of, On: e.row, Start: ready, End: a.Start})
					break
				}
			}
		}
	}
	return list
}
