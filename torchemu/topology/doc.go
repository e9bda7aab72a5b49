// Package topology describes the simulated hardware: nodes, SIP chips, their cubes of memory and processing elements
// (PEs), and the links between them. It reads a YAML file (or a preset that ships inside the binary), checks it, and
// then answers three questions: what is device x, what is link y, and which links does a message from one PE to
// another cross.
//
// # The machine
//
// A system has nodes; a node has SIPs; a SIP is a mesh of cubes; a cube has one stack of HBM and some PEs.
//
//	PE, PE, … ─ HBM ⇄ cube router ⇄ mesh of cube routers ⇄ IO port of the SIP (at cube 0)
//	IO ⇄ other IOs of the node (ring, torus2d, fully_connected), or IO ⇄ switch ⇄ IO
//	IO ⇄ NIC ⇄ network ⇄ NIC ⇄ IO, between nodes
//
// Every link is directed and has a bandwidth and a latency. A PE has no link of its own: its messages go from the HBM
// of its cube to the HBM of the other's, and what limits the PE itself are its DMA engines (see [DMA]). The time that
// the switch or the network takes to forward is part of the latency of the links that leave it. The link between an
// IO port and its NIC has the figures of the port.
//
// # Size
//
// The hardware is regular, so nothing is stored per device or link: identifiers are consecutive numbers, and
// [Topology.Device], [Topology.Link] and [Topology.Route] are arithmetic on them. A system of 4096 SIPs takes no more
// memory than one of two.
package topology
