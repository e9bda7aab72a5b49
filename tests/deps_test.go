// Package tests holds what crosses packages or languages.
package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/torchemu/torchemu"

// floors says who may import whom: a package may import those on lower floors, and those to the left of it in a
// chain `a < b` on its own floor. Chains on a floor know nothing of one another. A folder that is not listed belongs
// to the nearest listed one above it.
const floors = `
6  benches
5  pybind/internal/host < pybind
4  tp
3  distributed
2  ccl/prim < ccl < ccl/ccltest; ccl < ccl/calibrate; ccl < ccl/bandwidth; ccl < ccl/replay; multiprocessing
1  torchemu/tensor < torchemu; torchemu/network < torchemu; torchemu/trace < torchemu
0  torchemu/collective; torchemu/dtype; torchemu/sim; torchemu/order; torchemu/schema < torchemu/topology; torchemu/invariants
`

// mustBeListed are the folders whose children are packages in their own right: a new one gets a place in the table.
var mustBeListed = []string{".", "torchemu", "ccl"}

// place is where a package stands in the table: its floor, and for each chain it is part of its position there.
type place struct {
	floor  int
	chains map[string]int
}

func TestImportsFollowTheFloors(t *testing.T) {
	places := parseFloors(t, floors)
	for _, found := range imports(t, "..") {
		if err := check(places, found.from, found.to); err != nil {
			t.Errorf("%s: %v", found.file, err)
		}
	}
}

func TestCheckTellsRightFromWrong(t *testing.T) {
	places := parseFloors(t, floors)
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"pybind", "ccl", true},
		{"ccl", "pybind", false},
		{"ccl", "ccl/prim", true},
		{"ccl/prim", "ccl", false},
		{"ccl", "multiprocessing", false},
		{"multiprocessing", "ccl", false},
		{"torchemu", "torchemu/network", true},
		{"torchemu/network", "torchemu", false},
		{"torchemu/network", "torchemu/tensor", false},
		{"torchemu/sim", "torchemu/dtype", false},
		{"torchemu/topology", "torchemu/schema", true},
		{"torchemu/schema", "torchemu/topology", false},
		{"torchemu/dtype/internal/f16", "torchemu/dtype", true},
		{"torchemu/dtype", "torchemu/dtype/internal/f16", true},
		{"torchemu/tensor/internal/pool", "torchemu", false},
		{"distributed", "newcomer", false},
		{"newcomer", "ccl", false},
		{"torchemu/newcomer", "torchemu/sim", false},
	} {
		if err := check(places, c.from, c.to); (err == nil) != c.allowed {
			t.Errorf("%s imports %s: allowed = %v, want %v (%v)", c.from, c.to, err == nil, c.allowed, err)
		}
	}
}

// parseFloors reads the table: one floor a line, chains separated by semicolons.
func parseFloors(t *testing.T, table string) map[string]place {
	t.Helper()
	places := map[string]place{}
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		number, rest, _ := strings.Cut(line, " ")
		floor, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("floor %q: %v", line, err)
		}
		for _, chain := range strings.Split(rest, ";") {
			addChain(places, floor, strings.TrimSpace(chain))
		}
	}
	return places
}

func addChain(places map[string]place, floor int, chain string) {
	for position, name := range strings.Split(chain, "<") {
		name = strings.TrimSpace(name)
		if _, ok := places[name]; !ok {
			places[name] = place{floor, map[string]int{}}
		}
		places[name].chains[chain] = position
	}
}

// check returns an error when the package from may not import the package to; both relative to the module.
func check(places map[string]place, from, to string) error {
	fromName, err := listed(places, from)
	if err != nil {
		return err
	}
	toName, err := listed(places, to)
	if err != nil {
		return err
	}
	if fromName == toName || places[toName].floor < places[fromName].floor {
		return nil
	}
	for chain, position := range places[fromName].chains {
		if left, ok := places[toName].chains[chain]; ok && left < position {
			return nil
		}
	}
	return fmt.Errorf("%s (floor %d) imports %s (floor %d): imports go only to lower floors, or to the left in a chain",
		fromName, places[fromName].floor, toName, places[toName].floor)
}

// listed returns the table's entry that a package belongs to.
func listed(places map[string]place, name string) (string, error) {
	for folder := name; ; folder = path.Dir(folder) {
		if _, ok := places[folder]; ok {
			return folder, nil
		}
		for _, parent := range mustBeListed {
			if path.Dir(folder) == parent {
				return "", fmt.Errorf("%s is on no floor: give it a place in the table in tests/deps_test.go", folder)
			}
		}
	}
}

type found struct{ file, from, to string }

// imports lists the module's imports of its own packages. Tests and generators may import what they like.
func imports(t *testing.T, root string) []found {
	t.Helper()
	var all []found
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != root && isSkipped(entry.Name()) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			all = append(all, importsOf(t, root, file)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func isSkipped(folder string) bool {
	return strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_") ||
		folder == "build" || folder == "tests" || folder == "testdata"
}

func importsOf(t *testing.T, root, file string) []found {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Rel(root, filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	var own []found
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if to, ok := strings.CutPrefix(imported, module+"/"); ok && !isGenerator(parsed) {
			own = append(own, found{file, filepath.ToSlash(folder), to})
		}
	}
	return own
}

// isGenerator says whether the file is left out of every build, to be run by go generate.
func isGenerator(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if comment.Text == "//go:build ignore" {
				return true
			}
		}
	}
	return false
}
