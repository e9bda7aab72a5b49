package ccl_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/ccltest"
)

// rewrite makes every golden test of this package write what it should compare with.
var rewrite = flag.Bool("rewrite", false, "write the golden files instead of comparing with them")

func TestGoldenSchedules(t *testing.T) {
	for _, a := range everyAlgorithm() {
		name := fmt.Sprintf("%s_%s", a.Collective(), a.Name())
		t.Run(name, func(t *testing.T) { golden(t, name+".txt", goldenText(a)) })
	}
}

// goldenText shows an algorithm where it is small enough to follow: a power of two, another number, uneven groups when
// groups matter, another root when there is one, and cut in two when it can be.
func goldenText(a ccl.Algorithm) string {
	var out strings.Builder
	show := func(title string, l ccl.Layout, bytes int64) {
		fmt.Fprintf(&out, "# %s\n%s\n", title, ccltest.Format(a.Build(l, bytes)))
	}
	show("4 ranks", ccl.Layout{World: 4}, 1)
	show("6 ranks", ccl.Layout{World: 6}, 1)
	if a.Name() == "hierarchical" {
		show("5 ranks in uneven groups: 0, 2, 4 and 1, 3", ccl.Layout{World: 5, Group: []int{0, 1, 0, 1, 0}}, 1)
	}
	if a.Collective().Rooted() {
		show("6 ranks, to or from the third", ccl.Layout{World: 6, Root: 2}, 1)
		show("5 ranks in groups, 0, 2, 4 and 1, 3, to or from the second", ccl.Layout{World: 5, Root: 1, Group: []int{0, 1, 0, 1, 0}}, 1)
	}
	for bytes := int64(1); bytes < 1<<30; bytes *= 2 {
		if l := (ccl.Layout{World: 4}); a.Depth(l, bytes) == 2 {
			show(fmt.Sprintf("4 ranks, cut in two from %d bytes on", bytes), l, bytes)
			break
		}
	}
	return out.String()
}

// golden compares text with a file of testdata, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -run %s -rewrite writes it", err, t.Name())
	}
	if got != string(want) {
		t.Errorf("%s differs from\n%s\ngo test -rewrite accepts\n%s", path, want, got)
	}
}
