package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/torchemu/torchemu/torchemu/schema"
)

// kitchen has every part that a schema can have.
type kitchen struct {
	Owner  word    `yaml:"owner"`
	Oven   oven    `yaml:"oven"`
	Shelf  []jar   `yaml:"shelf"`
	Spices spices  `yaml:"spices"`
	Cellar *cellar `yaml:"cellar"`
	Guests *guests `yaml:"guests"`
}

type oven struct {
	Fuel word `yaml:"fuel"`
	size
}

type size struct {
	Width guests `yaml:"width"`
}

type jar struct {
	Label word `yaml:"label"`
}

type cellar struct {
	Bottles guests `yaml:"bottles"`
}

type spices map[string]jar

func (spices) Keys() []string { return []string{"salt", "pepper", "cumin"} }

type guests int

func (g *guests) Parse(n *yaml.Node) error {
	v, err := schema.WholeNumber(n, 0, 12)
	*g = guests(v)
	return err
}

func (g *guests) Show() any { return int(*g) }

type word string

func (w *word) Parse(n *yaml.Node) error {
	names := []string{"wood", "gas", "nw"}
	i, err := schema.Choice(n, names)
	*w = word(names[i])
	return err
}

func (w *word) Show() any {
	if *w == "" {
		return nil
	}
	return string(*w)
}

var (
	sparse = schema.Format{Name: "a kitchen"}
	strict = schema.Format{Name: "a kitchen", Needs: "oven.fuel"}
)

func decode(t *testing.T, text string, into *kitchen) {
	t.Helper()
	if err := sparse.Decode("k.yaml", []byte(text), into).Err(); err != nil {
		t.Fatal(err)
	}
}

func asJSON(t *testing.T, k *kitchen) string {
	t.Helper()
	text, err := json.Marshal(schema.Tree(k))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDecodeAndTree(t *testing.T) {
	const nothing = `{"oven":{"width":0},"spices":{}}`
	for _, c := range []struct{ text, want string }{
		{"", nothing},
		{"# a comment\n", nothing},
		{"---\n", nothing},
		{"oven:\nspices:\n", nothing},
		{"oven: {width: 3, fuel: gas}", `{"oven":{"fuel":"gas","width":3},"spices":{}}`},
		{
			"shelf: [{label: gas}, {}, {label: wood}]",
			`{"oven":{"width":0},"shelf":[{"label":"gas"},{},{"label":"wood"}],"spices":{}}`,
		},
		{
			"spices: {cumin: , salt: {label: gas}}",
			`{"oven":{"width":0},"spices":{"cumin":{},"salt":{"label":"gas"}}}`,
		},
		{"guests: 0", `{"guests":0,"oven":{"width":0},"spices":{}}`},
		{"cellar:", `{"cellar":{"bottles":0},"oven":{"width":0},"spices":{}}`},
	} {
		var k kitchen
		decode(t, c.text, &k)
		if got := asJSON(t, &k); got != c.want {
			t.Errorf("%q is\n%s\nwant\n%s", c.text, got, c.want)
		}
		var again kitchen // JSON is YAML
		if decode(t, c.want, &again); asJSON(t, &again) != c.want {
			t.Errorf("%s becomes %s", c.want, asJSON(t, &again))
		}
	}
}

func TestDecodeKeepsWhatTheTextLeavesOut(t *testing.T) {
	var k kitchen
	decode(t, "owner: gas\noven: {fuel: wood, width: 2}\nguests: 4\nshelf: [{label: gas}, {}]\n"+
		"spices: {salt: {label: wood}, pepper: {label: wood}}", &k)
	decode(t, "oven: {width: 5}\nshelf: [{}]\nspices: {salt: {}, cumin: {label: nw}}", &k)
	want := `{"guests":4,"oven":{"fuel":"wood","width":5},"owner":"gas","shelf":[{}],` +
		`"spices":{"cumin":{"label":"nw"},"pepper":{"label":"wood"},"salt":{}}}`
	if got := asJSON(t, &k); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTreeBelongsToTheCaller(t *testing.T) {
	var k kitchen
	decode(t, "spices: {salt: {label: gas}}", &k)
	schema.Tree(&k)["spices"].(map[string]any)["salt"] = 1
	if got, want := asJSON(t, &k), `{"oven":{"width":0},"spices":{"salt":{"label":"gas"}}}`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

const rootKeys = "owner, oven, shelf, spices, cellar, guests"

func problems(err error) []string {
	var list *schema.Error
	if !errors.As(err, &list) {
		return []string{fmt.Sprint("no schema.Error: ", err)}
	}
	var texts []string
	for _, p := range list.Problems {
		texts = append(texts, strings.TrimPrefix(p.String(), "k.yaml:"))
	}
	return texts
}

func TestProblems(t *testing.T) {
	long := strings.Repeat("e", 50)
	for text, want := range map[string][]string{
		"- a": {"1: must be a mapping with any of the keys " + rootKeys + "; not a list"},
		"spices: 7\nshelf: []\n": {
			"1: spices: must be a mapping with any of the keys salt, pepper, cumin; not 7",
			"2: shelf: must be a list with at least one entry, not an empty list",
		},
		"spices:\n  peper: {}\n  sugar: {}\n  salt: [1]\n  salt: {}\n  SALT: {}\n": {
			"2: spices.peper: is not a key here; did you mean pepper?",
			"3: spices.sugar: is not a key here; the keys are salt, pepper, cumin",
			"4: spices.salt: must be a mapping with any of the keys label; not a list",
			"5: spices.salt: is already set on line 4",
			"6: spices.SALT: is not a key here; did you mean salt?",
		},
		"spices: {salt: {lable: gas,\n label: gass}}": {
			"1: spices.salt.lable: is not a key here; did you mean label?",
			`2: spices.salt.label: must be wood, gas, nw; not "gass"; did you mean gas?`,
		},
		"shelf:\n- {}\n- {label: nn}\n- 5\n": { // one of two letters is no slip
			`3: shelf[1].label: must be wood, gas, nw; not "nn"`,
			"4: shelf[2]: must be a mapping with any of the keys label; not 5",
		},
		"oven: {width: 13}\nguests: '1'\ncellar: {bottle: 1}\n": {
			"1: oven.width: must be a whole number from 0 to 12, not 13",
			`2: guests: must be a whole number from 0 to 12, not "1"`,
			"3: cellar.bottle: is not a key here; did you mean bottles?",
		},
		"[a]: 1\n[b]: 2\n? {b: 1}\n: 3\n": { // two of these are not the same key
			"1: a list: is not a key here; the keys are " + rootKeys,
			"2: a list: is not a key here; the keys are " + rootKeys,
			"3: a mapping: is not a key here; the keys are " + rootKeys,
		},
		long + "1: 1\n" + long + "2: 1\n": {
			`1: "` + long[:40] + `…": is not a key here; the keys are ` + rootKeys,
			`2: "` + long[:40] + `…": is not a key here; the keys are ` + rootKeys,
		},
		"owner: !x \"a\\nb\"\nguests: !!int \"1\\n2\"\n": { // nothing breaks out of its line
			`1: owner: must be wood, gas, nw; not "a\nb"`,
			`2: guests: must be a whole number from 0 to 12, not "1\n2"`,
		},
		"a: {}\n---\nb: {}\n": {
			"1: a: is not a key here; the keys are " + rootKeys,
			"2: a second document starts here; a kitchen is one document",
		},
		"Cellars: a":                  {"1: Cellars: is not a key here; did you mean cellar?"},
		"size: {}":                    {"1: size: is not a key here; the keys are " + rootKeys},
		"{":                           {"1: not valid YAML: did not find expected node content"},
		strings.Repeat("#", 64<<10+1): {"1: the file is larger than 65536 bytes"},
		"oven: &o {}\ncellar: *o\n": {
			"2: cellar: must be a mapping with any of the keys bottles; not an alias (write the value out)",
		},
		"shelf: [{label: [wood, gas]}]": {"1: shelf[0].label: must be wood, gas, nw; not a list"},
	} {
		if got := problems(sparse.Decode("k.yaml", []byte(text), &kitchen{}).Err()); !slices.Equal(got, want) {
			t.Errorf("%.80q: got\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestAFormatThatNeedsAKeyHasNothingEmpty(t *testing.T) {
	for text, want := range map[string][]string{
		"":    {"1: the file is empty; a kitchen needs at least oven.fuel"},
		"---": {"2: must be a mapping with the keys " + rootKeys + "; not nothing"},
		"oven:\nspices: {salt: }\n": {
			"1: oven: must be a mapping with the keys fuel, width; not nothing",
			"2: spices.salt: must be a mapping with the keys label; not nothing",
		},
	} {
		if got := problems(strict.Decode("k.yaml", []byte(text), &kitchen{}).Err()); !slices.Equal(got, want) {
			t.Errorf("%q: got\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// What a caller reports after decoding stands where its path, or the closest part of it, is in the file.
func TestDocument(t *testing.T) {
	d := sparse.Decode("k.yaml", []byte("oven:\n  width: 1\n  fuel: 2\nshelf:\n- {}\n- {label: gas}\n"), &kitchen{})
	for path, want := range map[string]bool{
		"": true, "oven": true, "oven.width": true, "shelf[1].label": true,
		"oven.fuel": true, "shelf[0].label": false, "shelf[2]": false, "cellar": false,
	} {
		if got := d.Has(path); got != want {
			t.Errorf("Has(%s) is %v", path, got)
		}
	}
	d.Report("oven.width", "is too %s", "wide")
	d.Report("shelf[0].label.colour", "is missing")
	d.Report("cellar.bottles", "is missing")
	want := []string{
		"1: cellar.bottles: is missing",
		"2: oven.width: is too wide",
		"3: oven.fuel: must be wood, gas, nw; not 2",
		"5: shelf[0].label.colour: is missing",
	}
	if got := problems(d.Err()); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for paths, want := range map[[2]string]bool{
		{"oven", "shelf"}: true, {"oven.width", "shelf"}: false, {"shelf", "oven.fuel"}: false, {"oven.width.x", ""}: false,
		{"cellar", "shelf[0]"}: true, {"shelf[0].label.colour", "oven"}: false, {"shelf[1]", "shelf[1].label"}: true,
	} {
		if got := d.Sound(paths[:]...); got != want {
			t.Errorf("Sound(%v) is %v", paths, got)
		}
	}
	if d.Report("", "is no kitchen"); d.Sound("oven") || d.Sound() {
		t.Error("a path is sound in a file that is not")
	}
}

func TestRead(t *testing.T) {
	if _, err := schema.Read("no such file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
	file := filepath.Join(t.TempDir(), "k.yaml")
	for size, want := range map[int][]string{
		64 << 10: nil,
		1 << 20:  {"1: the file is larger than 65536 bytes"},
	} {
		text := "guests: 3 " + strings.Repeat("#", size-10)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := schema.Read(file)
		if err != nil || len(data) > 64<<10+1 {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		var k kitchen
		err = sparse.Decode("k.yaml", data, &k).Err()
		if want == nil && (err != nil || *k.Guests != 3) || want != nil && !reflect.DeepEqual(problems(err), want) {
			t.Errorf("%d bytes: %v, %v", size, k, err)
		}
	}
}
