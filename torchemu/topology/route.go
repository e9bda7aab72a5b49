package topology

// Route lists the links that a message between two PEs crosses: from the HBM of src's cube to the HBM of dst's, which
// is a read and a write of the same HBM when both are in one cube. It is nil when src or dst is not a PE.
//
// The route never changes and is a shortest one: on the mesh of cubes and on a torus along the row first and then
// along the column, round a ring the shorter way (upwards when both are equal). SIPs of one node do not use the
// network between the nodes.
func (t *Topology) Route(src, dst DeviceID) []LinkID {
	from, to := t.Device(src), t.Device(dst)
	if from.Kind != PE || to.Kind != PE {
		return nil
	}
	l := &t.layout
	route := append(make([]LinkID, 0, 16), l.readLink(from.SIP, from.Cube)) // most are shorter
	if from.SIP == to.SIP {
		route = l.mesh.path(route, l.meshLink0(from.SIP), from.Cube, to.Cube)
	} else {
		route = l.mesh.path(route, l.meshLink0(from.SIP), from.Cube, 0)
		route = append(route, l.outLink(from.SIP))
		route = t.between(route, from.SIP, to.SIP)
		route = append(route, l.inLink(to.SIP))
		route = l.mesh.path(route, l.meshLink0(to.SIP), 0, to.Cube)
	}
	return append(route, l.writeLink(to.SIP, to.Cube))
}

// between appends the way from one SIP's IO to another's.
func (t *Topology) between(route []LinkID, from, to int) []LinkID {
	l := &t.layout
	n := l.sipsPerNode()
	if node := from / n; node == to/n {
		return l.fabric.path(route, l.fabricLinks(node), from%n, to%n)
	}
	return append(route, l.nicLink(from, ioToNIC), l.nicLink(from, nicToNet), l.nicLink(to, netToNIC),
		l.nicLink(to, nicToIO))
}
