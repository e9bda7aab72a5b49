package topology_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

func TestPicturesOfAllPresets(t *testing.T) {
	for _, name := range topology.Presets() {
		top, err := topology.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		text, svg := top.Text(), top.SVG()
		if !wellFormed(svg) {
			t.Errorf("%s: the picture is no XML:\n%s", name, svg)
		}
		for s := range top.SIPs() {
			if !strings.Contains(text, fmt.Sprintf("[s%d]", s)) || !strings.Contains(svg, fmt.Sprintf(">s%d<", s)) {
				t.Errorf("%s: SIP %d is not in both pictures", name, s)
			}
		}
		if !strings.HasPrefix(text, name) {
			t.Errorf("%s: the text begins otherwise:\n%s", name, text)
		}
	}
}

func wellFormed(text string) bool {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// Names are whatever a user writes, and systems can be large.
func TestPictureOfStrangeSystems(t *testing.T) {
	for _, text := range []string{
		"name: '<&>\"'\nsystem: {sips: {count: 1}}",
		"system: {sips: {count: 1024, connect: torus2d, w: 32, h: 32}}\nsip: {cube_mesh: {w: 1, h: 1}}",
		"system: {nodes: {count: 300}, sips: {count: 300, connect: switch}, network: {nic: {bandwidth: 1, latency: 1}}}\nsip: {cube_mesh: {w: 1, h: 1}}",
		"system: {sips: {count: 200, connect: fully_connected}}\nsip: {cube_mesh: {w: 1, h: 1}}",
	} {
		top := parse(t, text)
		if svg := top.SVG(); !wellFormed(svg) || len(svg) > 1<<20 {
			t.Errorf("%s: %d bytes of picture", top.Name, len(svg))
		}
		if got := top.Text(); len(got) > 1<<14 {
			t.Errorf("%s: %d bytes of text", top.Name, len(got))
		}
	}
}

// A link's class has one row, with how many there are.
func TestTextCountsLinks(t *testing.T) {
	text := parse(t, "name: x\nsystem: {sips: {count: 3, connect: switch, link: {bandwidth: 7, latency: 2}}, switch: {latency: 4}}").Text()
	for _, want := range []string{"io > switch +3 +7 +2\n", "switch > io +3 +7 +6\n"} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}
