package topology

import "fmt"

// DeviceID numbers the devices of a Topology from 0.
type DeviceID int32

// LinkID numbers the directed links of a Topology from 0.
type LinkID int32

// Kind says what a Device is.
type Kind uint8

// The kinds of devices.
const (
	PE     Kind = iota // processing element: matrix and vector unit, DMA engines
	HBM                // memory stack of a cube
	Cube               // router of a cube on the SIP's network-on-chip
	IO                 // port of a SIP, attached to the router of its cube 0
	Switch             // switch between the SIPs of a node
	NIC                // network interface of a SIP, on systems of several nodes
	Net                // network between the nodes
)

// String is the kind's name in lower case.
func (k Kind) String() string {
	return [...]string{"pe", "hbm", "cube", "io", "switch", "nic", "net"}[k]
}

// Device is one component. Coordinates that a kind does not have are -1.
type Device struct {
	ID              DeviceID
	Kind            Kind
	Node            int
	SIP             int  // over all nodes, not within one
	Cube            int  // row-major in the SIP's mesh
	PE              int  // within its cube
	StoreAndForward bool // a message is received as a whole before it is sent on
}

// Name is the device's path from the node down, such as n0.s1.c3.p2 (node 0, SIP 1, cube 3, PE 2), n0.s1.c3.hbm,
// n0.s1.c3 (the router), n0.s1.io, n0.switch, n0.s1.nic, or net.
func (d Device) Name() string {
	switch d.Kind {
	case PE:
		return fmt.Sprintf("n%d.s%d.c%d.p%d", d.Node, d.SIP, d.Cube, d.PE)
	case HBM:
		return fmt.Sprintf("n%d.s%d.c%d.hbm", d.Node, d.SIP, d.Cube)
	case Cube:
		return fmt.Sprintf("n%d.s%d.c%d", d.Node, d.SIP, d.Cube)
	case Switch:
		return fmt.Sprintf("n%d.switch", d.Node)
	case Net:
		return "net"
	default:
		return fmt.Sprintf("n%d.s%d.%s", d.Node, d.SIP, d.Kind)
	}
}

// Link is one direction of a connection between two devices.
type Link struct {
	ID        LinkID
	From, To  DeviceID
	Bandwidth int64 // bytes per second
	Latency   int64 // picoseconds, with the forwarding time of From where that is a switch or a network
}
