package torchemu_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
)

func preset(t *testing.T, name string) *topology.Topology {
	t.Helper()
	topo, err := topology.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func rankOf(t *testing.T, w *torchemu.World, id int) *torchemu.Rank {
	t.Helper()
	r, err := w.Rank(id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResize(t *testing.T) {
	w := torchemu.NewWorld(preset(t, "default"))
	first := rankOf(t, w, 0)
	first.Spend(7)
	if err := w.Resize(preset(t, "sips8")); err != nil {
		t.Fatal(err)
	}
	if again := rankOf(t, w, 0); again != first || again.Now() != 7 {
		t.Errorf("rank 0 is another one, at %v", again.Now())
	}
	if _, err := w.Rank(7); err != nil {
		t.Error(err)
	}
	if _, err := w.Rank(8); err == nil {
		t.Error("there is a rank 8 of 8 SIPs")
	}
	p := w.Network.Path(w.Topology.PE(0, 0, 0), w.Topology.PE(7, 0, 0))
	if w.Network.Alpha(p) == 0 {
		t.Error("the network has no way to SIP 7")
	}
}

func TestResizeLeavesDeadlinesAlone(t *testing.T) {
	w := torchemu.NewWorld(preset(t, "default"))
	var ended []sim.Time
	end := func(now sim.Time) { ended = append(ended, now) }
	w.Deadline(5, end)
	cancel := w.Deadline(7, end)
	for _, name := range []string{"sips8", "sips16"} {
		if err := w.Resize(preset(t, name)); err != nil {
			t.Fatal(err)
		}
		cancel()
		cancel = w.Deadline(9, end)
	}
	w.Engine.Run(100)
	if !slices.Equal(ended, []sim.Time{5, 9}) {
		t.Errorf("deadlines of 5 and 9 ps ended at %v", ended)
	}
	w.At(11, end)
	if err := w.Resize(preset(t, "sips16")); err == nil {
		t.Error("a deadline that is over counts")
	}
}

func TestResizeRefuses(t *testing.T) {
	for name, spoil := range map[string]func(w *torchemu.World){
		"has 4 SIPs, fewer than the 8": func(w *torchemu.World) {},
		"operations are under way":     func(w *torchemu.World) { w.At(5, func(sim.Time) {}) },
		"faults are set":               func(w *torchemu.World) { _ = w.Inject(torchemu.Kill{Rank: 1, At: 5}) },
		"is being recorded":            func(w *torchemu.World) { w.Record(trace.Collectives) },
	} {
		w, to := torchemu.NewWorld(preset(t, "default")), "sips8"
		if strings.Contains(name, "fewer") {
			w, to = torchemu.NewWorld(preset(t, "sips8")), "default"
		}
		spoil(w)
		if err := w.Resize(preset(t, to)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error is %v, not that it %s", err, name)
		}
	}
}
