package topology

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/schema"
)

// The bounds of a whole system, far above what is simulated in reasonable time. Device and link numbers must fit an
// int32, and whoever keeps state per link must find the memory for it.
const (
	maxDevices = 1 << 25
	maxLinks   = 1 << 25
)

// maxTotal bounds what a SIP's memories, or its PEs, do in a second, all together: bytes or operations.
const maxTotal = 1 << 62

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

// checker reports what is wrong between values that are each fine.
type checker struct {
	*schema.Document
	*config
}

func (c checker) check() {
	c.checkMissing()
	c.checkNodes()
	c.checkTorus()
	c.checkCorners()
	c.checkTransport()
	c.checkInNetwork()
	if c.Err() == nil {
		c.checkSize()
	}
	if c.Err() == nil {
		c.checkTotals()
	}
}

// checkMissing looks for the keys that have no default.
func (c checker) checkMissing() {
	needed := []string{pathSIPs}
	if c.System.Network != nil {
		needed = append(needed, pathNICRate, pathNICLatency)
	}
	for _, path := range needed {
		if !c.Has(path) && c.Sound(path) {
			c.Report(path, "is missing")
		}
	}
}

func (c checker) checkNodes() {
	if c.Sound(pathSIPs, pathNodes) && c.sips()%c.nodes() != 0 {
		c.Report(pathSIPs, "%d SIPs cannot be shared out evenly to %d nodes (%s)", c.sips(), c.nodes(), pathNodes)
	}
	if c.Sound(pathNodes, pathNetwork) && c.nodes() > 1 && c.System.Network == nil {
		c.Report(pathNetwork, "is missing; nothing connects the %d nodes (%s)", c.nodes(), pathNodes)
	}
}

func (c checker) checkTorus() {
	if !c.Sound(pathConnect) {
		return
	}
	s := c.System.SIPs
	c.checkSide(pathW, s.W, s.Connect)
	c.checkSide(pathH, s.H, s.Connect)
	if s.Connect != torus2D || !c.Sound(pathW, pathH, pathSIPs, pathNodes) {
		return
	}
	if w, h, n := int(s.W), int(s.H), c.sipsPerNode(); w*h != n {
		c.Report(pathW, "a torus of %d×%d has %d SIPs, but a node has %d", w, h, w*h, n)
	}
}

// checkSide checks that a side of the torus is given exactly when there is one.
func (c checker) checkSide(path string, n count, how connect) {
	switch {
	case !c.Sound(path):
	case how == torus2D && n == 0:
		c.Report(path, "is missing; connect: torus2d needs it")
	case how != torus2D && n != 0:
		c.Report(path, "only connect: torus2d has it, not %s", connects[how])
	}
}

func (c checker) checkCorners() {
	seen := map[corner]bool{}
	for i, k := range c.Cube.PELayout.Corners {
		path := fmt.Sprintf("%s[%d]", pathCorners, i)
		if !c.Sound(path) {
			continue
		}
		if seen[k] {
			c.Report(path, "%s is there twice", corners[k])
		}
		seen[k] = true
	}
}

// checkSize divides where a product could overflow.
func (c checker) checkSize() {
	if c.cubes()*(2+c.pes())+1 > maxDevices/c.sips() {
		c.Report(pathSIPs, "%d SIPs of %d cubes of %d PEs are too many; a system has at most %d devices",
			c.sips(), c.cubes(), c.pes(), maxDevices)
		return
	}
	if n := layOut(c.config).links; n > maxLinks {
		c.Report(pathSIPs, "%d SIPs with connect: %s have %d links; a system has at most %d",
			c.sips(), connects[c.System.SIPs.Connect], n, maxLinks)
	}
}

// checkTotals divides where a product could overflow.
func (c checker) checkTotals() {
	m := c.PE.Matrix
	for _, rate := range []struct {
		path string
		one  int64
		of   int
		what string
	}{
		{"cube.hbm.bandwidth", c.Cube.HBM.Bandwidth.bytesPerSecond(), c.cubes(), "memories"},
		{"pe.matrix.f8_tflops", m.F8.perSecond(), c.cubes() * c.pes(), "PEs"},
		{"pe.matrix.f16_tflops", m.F16.perSecond(), c.cubes() * c.pes(), "PEs"},
		{"pe.matrix.f32_tflops", m.F32.perSecond(), c.cubes() * c.pes(), "PEs"},
		{"pe.matrix.tf32_tflops", teraflops(m.TF32).perSecond(), c.cubes() * c.pes(), "PEs"},
		{"pe.vector.f32_tflops", c.PE.Vector.F32.perSecond(), c.cubes() * c.pes(), "PEs"},
	} {
		if rate.one > maxTotal/int64(rate.of) {
			c.Report(rate.path, "is too much for the %d %s of a SIP; together they may have at most %d a second",
				rate.of, rate.what, int64(maxTotal))
		}
	}
}
