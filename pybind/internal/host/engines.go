package host

import (
	"fmt"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// EngineQueue reads the name of a queue.
func EngineQueue(class, peer, number int) (prim.EngineQueue, error) {
	if class < 0 || class > int(prim.NIC) {
		return prim.EngineQueue{}, Raise("ValueError", "engines of class %d; there are 0 to %d", class, prim.NIC)
	}
	return prim.EngineQueue{Class: prim.EngineClass(class), Peer: peer, Number: number}, nil
}

// recordEngine notes what an engine has done, in a lane of its class and peer.
func (w *World) recordEngine(x prim.EngineWork) {
	if !w.Trace.Wants(x.Rank, x.Start) {
		return
	}
	w.Trace.Activity(trace.Activity{
		Rank: x.Rank, Kind: trace.Kernel, Name: fmt.Sprintf("%s to %d", x.What, x.Peer), Number: w.Trace.Call(),
		Track:  trace.Track{Kind: trace.EngineTrack, ID: int(x.Class)<<16 | x.Peer, Name: fmt.Sprintf("%s to rank %d", laneNames[x.Class], x.Peer)},
		Called: x.Start, Issued: x.Start, Start: x.Start, End: x.End, Bytes: int64(x.Bytes),
	})
}

var laneNames = [...]string{"compute-unit copies", "SDMA", "NIC"}
