package topology

// layout is how identifiers are given out. Devices: each SIP's in turn, then a switch per node, then a NIC per SIP,
// then the network. Links: each SIP's in turn, then each node's fabric, then four per NIC. The parts that a system
// does not have take no numbers.
//
// Within a SIP come, cube by cube, the router, the HBM and the PEs, and at last the IO port; and the links of the
// mesh, then a read and a write link per HBM, then the link to the IO port and the one from it.
type layout struct {
	nodes, sips, cubes, pes int
	mesh                    grid
	fabric                  shape // of one node; vertices are its SIPs, and the switch

	cubeSpan, sipSpan     int // devices of a cube, of a SIP
	switch0, nic0, net    int // first switch, first NIC, network
	devices               int
	sipLinks              int // links within a SIP
	fabricLink0, nicLink0 int
	links                 int
}

func layOut(c *config) layout {
	l := layout{
		nodes: c.nodes(), sips: c.sips(), cubes: c.cubes(), pes: c.pes(),
		mesh:   newGrid(int(c.SIP.CubeMesh.W), int(c.SIP.CubeMesh.H), false),
		fabric: c.fabric(),
	}
	switches, nics, nets := 0, 0, 0
	if c.System.SIPs.Connect == switched {
		switches = l.nodes
	}
	if l.nodes > 1 {
		nics, nets = l.sips, 1
	}
	l.cubeSpan = 2 + l.pes
	l.sipSpan = l.cubes*l.cubeSpan + 1
	l.switch0 = l.sips * l.sipSpan
	l.nic0 = l.switch0 + switches
	l.net = l.nic0 + nics
	l.devices = l.net + nets
	l.sipLinks = l.mesh.edges() + 2*l.cubes + 2
	l.fabricLink0 = l.sips * l.sipLinks
	l.nicLink0 = l.fabricLink0 + l.nodes*l.fabric.edges()
	l.links = l.nicLink0 + nicLinks*nics
	return l
}

// The links of a NIC, in order.
const (
	ioToNIC = iota
	nicToIO
	nicToNet
	netToNIC
	nicLinks
)

func (l *layout) sipsPerNode() int { return l.sips / l.nodes }

func (l *layout) cube(sip, cube int) DeviceID { return DeviceID(sip*l.sipSpan + cube*l.cubeSpan) }
func (l *layout) hbm(sip, cube int) DeviceID  { return l.cube(sip, cube) + 1 }
func (l *layout) io(sip int) DeviceID         { return DeviceID((sip+1)*l.sipSpan - 1) }
func (l *layout) nic(sip int) DeviceID        { return DeviceID(l.nic0 + sip) }

// port is the device of a vertex of a node's fabric: the IO of a SIP, or the switch.
func (l *layout) port(node, vertex int) DeviceID {
	if vertex == l.sipsPerNode() {
		return DeviceID(l.switch0 + node)
	}
	return l.io(node*l.sipsPerNode() + vertex)
}

func (l *layout) meshLink0(sip int) LinkID { return LinkID(sip * l.sipLinks) }
func (l *layout) readLink(sip, cube int) LinkID {
	return LinkID(sip*l.sipLinks + l.mesh.edges() + 2*cube)
}
func (l *layout) writeLink(sip, cube int) LinkID {
	return l.readLink(sip, cube) + 1
}
func (l *layout) outLink(sip int) LinkID { return LinkID((sip+1)*l.sipLinks - 2) }
func (l *layout) inLink(sip int) LinkID  { return l.outLink(sip) + 1 }
func (l *layout) fabricLinks(node int) LinkID {
	return LinkID(l.fabricLink0 + node*l.fabric.edges())
}
func (l *layout) nicLink(sip, which int) LinkID { return LinkID(l.nicLink0 + nicLinks*sip + which) }
