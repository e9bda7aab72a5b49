package pybind

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/pybind/internal/host"
)

// PrimOfWorld makes the machine of a World: on its engine and network, with a rank for each SIP. What its programs do
// becomes part of the World's time. When Next, Await or AwaitAll are to be called again, Python takes the turns that there
// are, with PrimTurn.
func PrimOfWorld(worldHandle int64, check, reorder bool, seed int64) (machine int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	return host.MachineOfWorld(w, prim.Options{Check: check, Fences: true, Reorder: reorder, Seed: uint64(seed)})
}

// PrimTurn is PrimNext without letting time pass: 0 says that nothing has a turn now.
func PrimTurn(machine int64) (turn int64, err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return 0, err
	}
	return m.PresentTurn()
}

// PrimLaunch puts a kernel, which Python drives, on a stream: so many programs on the stream's rank. tensors are what it
// uses, windows those that were attached for it only. It returns the launch, which PrimAbout gives for its programs.
func PrimLaunch(machine, stream int64, name string, blocks int, interlock bool, tensorsAt int64, tensors int, windowsAt int64, windows int) (handle int64, err error) {
	defer host.Guard(&err)
	task := prim.Task{Name: name, Blocks: blocks, Interlock: interlock}
	return host.LaunchTask(machine, stream, task, tensorsAt, tensors, windowsAt, windows)
}

// PrimAbandon ends all that the machine of a World runs with an error, whatever programs do. Python does not let them go
// on.
func PrimAbandon(machine int64, text string) (err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err == nil {
		m.AbandonAll(host.Raise("RuntimeError", "%s", text))
	}
	return err
}

// PrimLaunchEnded says whether a launch has ended, and forgets it then.
func PrimLaunchEnded(launch int64) (ended bool, err error) {
	defer host.Guard(&err)
	l, err := host.LaunchOf(launch)
	if err != nil || !l.Done() {
		return false, err
	}
	host.Forget(launch)
	return true, nil
}

// PrimWindowTensor makes a tensor of a window's memory on a rank. The host may write it: it counts as written.
func PrimWindowTensor(window int64, rank int, dtypeName string, shapeAt int64, shape int) (handle int64, err error) {
	defer host.Guard(&err)
	o, err := host.PartOf[*prim.Window](window, "window")
	if err != nil {
		return 0, err
	}
	d, dims, err := host.Type(dtypeName, shapeAt, shape)
	if err != nil {
		return 0, err
	}
	return o.Machine.WindowTensor(o.Object, rank, d, dims)
}

// PrimShow lets the checker see what a rank does with a tensor whose memory a window shows, as long as it is there: other
// ranks reach it. With a window of 0 it is not seen any more.
func PrimShow(machine, window int64, rank int, tensorHandle int64) (err error) {
	defer host.Guard(&err)
	m, err := host.MachineOf(machine)
	if err != nil {
		return err
	}
	t, err := host.TensorOf(tensorHandle)
	if err != nil {
		return err
	}
	if window == 0 {
		m.Hide(t.Object.Tensor)
		return nil
	}
	o, err := host.PartOf[*prim.Window](window, "window")
	if err == nil {
		m.Show(o.Object, rank, t.Object.Tensor)
	}
	return err
}
