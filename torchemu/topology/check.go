package topology

import "fmt"

// The bounds of a whole system, far above what is simulated in reasonable time. Device and link numbers must fit an
// int32, and whoever keeps state per link must find the memory for it.
const (
	maxDevices = 1 << 22
	maxLinks   = 1 << 22
)

const (
	pathSIPs       = "system.sips.count"
	pathNodes      = "system.nodes.count"
	pathConnect    = "system.sips.connect"
	pathW          = "system.sips.w"
	pathH          = "system.sips.h"
	pathNetwork    = "system.network"
	pathNICRate    = "system.network.nic.bandwidth"
	pathNICLatency = "system.network.nic.latency"
	pathCorners    = "cube.pe_layout.corners"
)

// check reports what is wrong between values that are each fine.
func (d *decoder) check(c *config) {
	d.checkMissing(c)
	d.checkNodes(c)
	d.checkTorus(c)
	d.checkCorners(c)
	if len(d.problems) == 0 {
		d.checkSize(c)
	}
}

// checkMissing looks for the keys that have no default.
func (d *decoder) checkMissing(c *config) {
	needed := []string{pathSIPs}
	if c.System.Network != nil {
		needed = append(needed, pathNICRate, pathNICLatency)
	}
	for _, path := range needed {
		if d.lines[path] == 0 && d.sound(path) {
			d.report(path, "is missing")
		}
	}
}

func (d *decoder) checkNodes(c *config) {
	if d.sound(pathSIPs, pathNodes) && c.sips()%c.nodes() != 0 {
		d.report(pathSIPs, "%d SIPs cannot be shared out evenly to %d nodes (%s)", c.sips(), c.nodes(), pathNodes)
	}
	if d.sound(pathNodes, pathNetwork) && c.nodes() > 1 && c.System.Network == nil {
		d.report(pathNetwork, "is missing; nothing connects the %d nodes (%s)", c.nodes(), pathNodes)
	}
}

func (d *decoder) checkTorus(c *config) {
	if !d.sound(pathConnect) {
		return
	}
	s := c.System.SIPs
	d.checkSide(pathW, s.W, s.Connect)
	d.checkSide(pathH, s.H, s.Connect)
	if s.Connect != torus2D || !d.sound(pathW, pathH, pathSIPs, pathNodes) {
		return
	}
	if w, h, n := int(s.W), int(s.H), c.sipsPerNode(); w*h != n {
		d.report(pathW, "a torus of %d×%d has %d SIPs, but a node has %d", w, h, w*h, n)
	}
}

// checkSide checks that a side of the torus is given exactly when there is one.
func (d *decoder) checkSide(path string, n count, how connect) {
	switch {
	case !d.sound(path):
	case how == torus2D && n == 0:
		d.report(path, "is missing; connect: torus2d needs it")
	case how != torus2D && n != 0:
		d.report(path, "only connect: torus2d has it, not %s", connects[how])
	}
}

func (d *decoder) checkCorners(c *config) {
	seen := map[corner]bool{}
	for i, k := range c.Cube.PELayout.Corners {
		path := fmt.Sprintf("%s[%d]", pathCorners, i)
		if !d.sound(path) {
			continue
		}
		if seen[k] {
			d.report(path, "%s is there twice", corners[k])
		}
		seen[k] = true
	}
}

// checkSize divides where a product could overflow.
func (d *decoder) checkSize(c *config) {
	if c.cubes()*(2+c.pes())+1 > maxDevices/c.sips() {
		d.report(pathSIPs, "%d SIPs of %d cubes of %d PEs are too many; a system has at most %d devices",
			c.sips(), c.cubes(), c.pes(), maxDevices)
		return
	}
	if n := layOut(c).links; n > maxLinks {
		d.report(pathSIPs, "%d SIPs with connect: %s have %d links; a system has at most %d",
			c.sips(), connects[c.System.SIPs.Connect], n, maxLinks)
	}
}
