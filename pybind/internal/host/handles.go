package host

import (
	"sync"
)

// table maps the handles that Python holds to objects. Python may release a handle from any thread, whenever its
// garbage collector runs; everything else happens on the World's thread.
var table = struct {
	sync.Mutex
	objects map[int64]any
	next    int64
}{objects: map[int64]any{}}

// Owned is an object that belongs to a World.
type Owned[T any] struct {
	Object T
	World  *World
}

// Own makes a handle of an object of a World.
func Own[T any](w *World, object T) int64 { return Register(Owned[T]{object, w}) }

// Register makes a handle of an object.
func Register(object any) int64 {
	table.Lock()
	defer table.Unlock()
	table.next++
	table.objects[table.next] = object
	return table.next
}

// Lookup finds the object of a handle; nil if there is none.
func Lookup(handle int64) any {
	table.Lock()
	defer table.Unlock()
	return table.objects[handle]
}

// Forget makes a handle one of nothing, and returns the object that it had.
func Forget(handle int64) any {
	table.Lock()
	defer table.Unlock()
	object := table.objects[handle]
	delete(table.objects, handle)
	return object
}

// OwnedBy finds an object of a World that is still open.
func OwnedBy[T any](handle int64, what string) (Owned[T], error) {
	o, ok := Lookup(handle).(Owned[T])
	if !ok {
		return Owned[T]{}, Raise("RuntimeError", "this %s does not exist any more: its World is closed", what)
	}
	return o, o.World.checkThread()
}

// CloseOwner forgets a World or machine and all that belongs to it, but for the memory of tensors that Python still has.
func CloseOwner(handle int64) {
	w := Forget(handle)
	table.Lock()
	defer table.Unlock()
	for h, object := range table.objects {
		m, ok := object.(interface{ belongsTo(w any) bool })
		if !ok || !m.belongsTo(w) {
			continue
		}
		if t, ok := object.(Owned[*Placed]); ok && !t.Object.holders.lent {
			table.objects[h] = remainsOf(t.Object)
		} else {
			delete(table.objects, h)
		}
	}
}

func (o Owned[T]) belongsTo(w any) bool { return w == any(o.World) }
