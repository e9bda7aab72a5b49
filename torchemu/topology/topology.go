package topology

import "fmt"

// Topology is a checked description of a system. It never changes, so it may be shared.
type Topology struct {
	Name string

	config    config
	layout    layout
	transport *Transport
	kernels   *Kernels
	engines   Engines
	inNetwork InNetwork
}

func newTopology(c config) *Topology {
	return &Topology{
		Name: string(c.Name), config: c, layout: layOut(&c),
		transport: newTransport(c.Transport), kernels: newKernels(c.Kernels), engines: newEngines(&c),
		inNetwork: newInNetwork(c.System.Switch.InNetwork),
	}
}

// Nodes is the number of nodes.
func (t *Topology) Nodes() int { return t.layout.nodes }

// SIPs is the number of SIPs over all nodes. SIP s is in node s / (SIPs/Nodes).
func (t *Topology) SIPs() int { return t.layout.sips }

// Switched says whether a switch joins the SIPs of a node.
func (t *Topology) Switched() bool { return t.config.System.SIPs.Connect == switched }

// CubesPerSIP is the number of cubes in a SIP.
func (t *Topology) CubesPerSIP() int { return t.layout.cubes }

// PEsPerCube is the number of PEs in a cube.
func (t *Topology) PEsPerCube() int { return t.layout.pes }

// NumDevices is the number of devices; their identifiers are 0 … NumDevices-1.
func (t *Topology) NumDevices() int { return t.layout.devices }

// NumLinks is the number of directed links; their identifiers are 0 … NumLinks-1.
func (t *Topology) NumLinks() int { return t.layout.links }

// Mesh is the size of a SIP's mesh of cubes, which are numbered row by row.
func (t *Topology) Mesh() (w, h int) { return t.layout.mesh.x.n, t.layout.mesh.y.n }

// Grid is the size of the torus that the SIPs of a single node form, numbered row by row; 0, 0 for all other systems.
func (t *Topology) Grid() (w, h int) {
	if s := t.config.System.SIPs; t.Nodes() == 1 && s.Connect == torus2D {
		return int(s.W), int(s.H)
	}
	return 0, 0
}

// PE is the device of a PE, given by the SIP (over all nodes), the cube in the SIP and the PE in the cube. It panics
// when there is no such PE.
func (t *Topology) PE(sip, cube, pe int) DeviceID {
	l := &t.layout
	if sip < 0 || sip >= l.sips || cube < 0 || cube >= l.cubes || pe < 0 || pe >= l.pes {
		panic(fmt.Sprintf("topology %s: no PE %d in cube %d of SIP %d; it has %d SIPs of %d cubes of %d PEs",
			t.Name, pe, cube, sip, l.sips, l.cubes, l.pes))
	}
	return l.cube(sip, cube) + 2 + DeviceID(pe)
}

// FirstPEs are the first PEs of the first so many SIPs, by which ranks go. It panics when there are not as many.
func (t *Topology) FirstPEs(sips int) []DeviceID {
	list := make([]DeviceID, sips)
	for i := range list {
		list[i] = t.PE(i, 0, 0)
	}
	return list
}

// IO is the device of a SIP's port. It panics when there is no such SIP.
func (t *Topology) IO(sip int) DeviceID {
	if sip < 0 || sip >= t.layout.sips {
		panic(fmt.Sprintf("topology %s: no SIP %d; it has %d SIPs", t.Name, sip, t.layout.sips))
	}
	return t.layout.io(sip)
}

// Device describes a device. It panics when there is none of this number.
func (t *Topology) Device(id DeviceID) Device {
	l := &t.layout
	d := Device{ID: id, Node: -1, SIP: -1, Cube: -1, PE: -1}
	i := int(id)
	switch {
	case i < 0 || i >= l.devices:
		panic(fmt.Sprintf("topology %s: no device %d; it has %d devices", t.Name, id, l.devices))
	case i < l.switch0:
		t.locate(&d)
	case i < l.nic0:
		d.Kind, d.Node = Switch, i-l.switch0
		d.StoreAndForward = t.config.System.Switch.Forwarding == storeAndForward
	case i < l.net:
		d.Kind, d.SIP = NIC, i-l.nic0
		d.Node = d.SIP / l.sipsPerNode()
	default:
		d.Kind = Net
		d.StoreAndForward = t.config.System.Network.Forwarding == storeAndForward
	}
	return d
}

// locate fills in a device of a SIP.
func (t *Topology) locate(d *Device) {
	l := &t.layout
	inSIP := int(d.ID) % l.sipSpan
	d.SIP = int(d.ID) / l.sipSpan
	d.Node = d.SIP / l.sipsPerNode()
	if inSIP == l.sipSpan-1 {
		d.Kind = IO
		d.StoreAndForward = t.config.SIP.IO.Forwarding == storeAndForward
		return
	}
	d.Cube = inSIP / l.cubeSpan
	switch part := inSIP % l.cubeSpan; part {
	case 0:
		d.Kind = Cube
		d.StoreAndForward = t.config.SIP.NoC.Forwarding == storeAndForward
	case 1:
		d.Kind = HBM
	default:
		d.Kind, d.PE = PE, part-2
	}
}

// Link describes a link. It panics when there is none of this number.
func (t *Topology) Link(id LinkID) Link {
	l := &t.layout
	switch i := int(id); {
	case i < 0 || i >= l.links:
		panic(fmt.Sprintf("topology %s: no link %d; it has %d links", t.Name, id, l.links))
	case i < l.fabricLink0:
		return t.sipLink(id)
	case i < l.nicLink0:
		return t.fabricLink(id)
	default:
		return t.nicLink(id)
	}
}

// LinkName is the names of a link's ends, such as n0.s1.io>n0.s2.io.
func (t *Topology) LinkName(id LinkID) string {
	l := t.Link(id)
	return t.Device(l.From).Name() + ">" + t.Device(l.To).Name()
}

func (t *Topology) sipLink(id LinkID) Link {
	l, c := &t.layout, &t.config
	sip, i := int(id)/l.sipLinks, int(id)%l.sipLinks
	edges := l.mesh.edges()
	switch hbm := i - edges; {
	case i < edges:
		from, to := l.mesh.edge(i)
		return link(id, l.cube(sip, from), l.cube(sip, to), c.SIP.NoC.Bandwidth, c.SIP.NoC.Latency)
	case i == l.sipLinks-2:
		return link(id, l.cube(sip, 0), l.io(sip), c.SIP.IO.Bandwidth, c.SIP.IO.Latency)
	case i == l.sipLinks-1:
		return link(id, l.io(sip), l.cube(sip, 0), c.SIP.IO.Bandwidth, c.SIP.IO.Latency)
	case hbm%2 == 0:
		return link(id, l.hbm(sip, hbm/2), l.cube(sip, hbm/2), c.Cube.HBM.Bandwidth, c.Cube.HBM.Latency)
	default:
		return link(id, l.cube(sip, hbm/2), l.hbm(sip, hbm/2), c.Cube.HBM.Bandwidth, c.Cube.HBM.Latency)
	}
}

func (t *Topology) fabricLink(id LinkID) Link {
	l, s := &t.layout, &t.config.System
	i := int(id) - l.fabricLink0
	node := i / l.fabric.edges()
	from, to := l.fabric.edge(i % l.fabric.edges())
	latency := s.SIPs.Link.Latency
	if from == l.sipsPerNode() {
		latency += s.Switch.Latency
	}
	return link(id, l.port(node, from), l.port(node, to), s.SIPs.Link.Bandwidth, latency)
}

func (t *Topology) nicLink(id LinkID) Link {
	l, c := &t.layout, &t.config
	i := int(id) - l.nicLink0
	sip, network := i/nicLinks, c.System.Network
	io, nic, net := l.io(sip), l.nic(sip), DeviceID(l.net)
	switch i % nicLinks {
	case ioToNIC:
		return link(id, io, nic, c.SIP.IO.Bandwidth, c.SIP.IO.Latency)
	case nicToIO:
		return link(id, nic, io, c.SIP.IO.Bandwidth, c.SIP.IO.Latency)
	case nicToNet:
		return link(id, nic, net, network.NIC.Bandwidth, network.NIC.Latency)
	default:
		return link(id, net, nic, network.NIC.Bandwidth, network.NIC.Latency+network.Latency)
	}
}

func link(id LinkID, from, to DeviceID, b bandwidth, d duration) Link {
	return Link{id, from, to, b.bytesPerSecond(), d.picoseconds()}
}
