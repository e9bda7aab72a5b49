package collective_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/collective"
)

func TestEveryKindIsFoundByItsName(t *testing.T) {
	for k := range collective.NumKinds {
		found, err := collective.ParseKind(k.String())
		if err != nil || found != k {
			t.Errorf("%s: found %v, %v", k, found, err)
		}
	}
	for _, name := range []string{"", "alltoall", "All_Reduce", "all_reduce "} {
		if _, err := collective.ParseKind(name); err == nil || !strings.Contains(err.Error(), "choose one of all_reduce, all_gather, ") {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestKindsThatAreNotInTheTable(t *testing.T) {
	for _, k := range []collective.Kind{collective.NumKinds, 255} {
		if k.Reduces() || k.Rooted() || k.Exchanges() || k.Blocks(4) != 0 || k.String() != fmt.Sprintf("Collective(%d)", uint8(k)) {
			t.Errorf("%v is in the table", k)
		}
	}
}

func TestRoots(t *testing.T) {
	rooted := []collective.Kind{collective.Broadcast, collective.Reduce, collective.Gather, collective.Scatter}
	for k := range collective.NumKinds {
		if k.Rooted() != slices.Contains(rooted, k) {
			t.Errorf("%s has a root: %t", k, k.Rooted())
		}
	}
}

// The blocks of a kind are those that MPI's counts are given for: none of a vector, one a rank, or one a pair of ranks.
func TestBlocks(t *testing.T) {
	for k, want := range map[collective.Kind]int{
		collective.AllReduce: 0, collective.Broadcast: 0, collective.Reduce: 0, collective.AllGather: 5, collective.Gather: 5,
		collective.ReduceScatter: 5, collective.Scatter: 5, collective.AllToAll: 25,
	} {
		if got := k.Blocks(5); got != want {
			t.Errorf("%s among 5 ranks has %d blocks, want %d", k, got, want)
		}
	}
}

// A rank has no part of a side that only the root has.
func TestSides(t *testing.T) {
	for k := range collective.NumKinds {
		for _, side := range []collective.Side{k.Starts(), k.Ends()} {
			if got := side.Of(2, 2); got != side.Share {
				t.Errorf("%s: the root has %v of %v", k, got, side)
			}
			if got := side.Of(1, 2); (got == collective.None) != side.Root {
				t.Errorf("%s: another rank has %v of %v", k, got, side)
			}
			if side.Root && !k.Rooted() {
				t.Errorf("%s has no root, but something that only the root has", k)
			}
		}
	}
}

// Names must tell apart what others tell apart.
func TestNamesAreUnique(t *testing.T) {
	var rows, names, methods, chakra []string
	for _, r := range collective.Rows() {
		rows, chakra = append(rows, r.Name), append(chakra, fmt.Sprint(r.Chakra))
	}
	for _, c := range collective.Calls() {
		names = append(names, c.Name)
		if c.Method != "" {
			methods = append(methods, c.Method)
		}
	}
	for what, list := range map[string][]string{"kinds": rows, "calls": names, "methods": methods, "Chakra's numbers": chakra} {
		slices.Sort(list)
		if once := slices.Compact(slices.Clone(list)); len(once) < len(list) {
			t.Errorf("two %s of %v are the same", what, list)
		}
	}
}

// Calls without a method, or whose hooks are told the kind, refer to the call that is named as the kind.
func TestEveryKindHasACallOfItsName(t *testing.T) {
	for k := range collective.NumKinds {
		if c := collective.LookupCall(k.String()); c.Kind != k || c.Method == "" || c.Hook == "" || c.OpType == "" {
			t.Errorf("%s: the call of that name is %+v", k, c)
		}
	}
	if c := collective.LookupCall("no_such_call"); c != (collective.Call{Name: "no_such_call"}) {
		t.Errorf("a call that is not in the table has names: %+v", c)
	}
}

func TestTheTableAsJSON(t *testing.T) {
	text, err := json.Marshal(collective.Rows()[collective.Scatter])
	want := `{"name":"scatter","starts":{"share":"vector","root":true},"ends":{"share":"block","root":false},` +
		`"reduces":false,"rooted":true,"passes":1,"kernel":false,"nccl":"","chakra":4}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v\nwant %s", text, err, want)
	}
	text, err = json.Marshal(collective.LookupCall("gather_single"))
	if err != nil || !strings.Contains(string(text), `"kind":"gather"`) {
		t.Errorf("got %s, %v", text, err)
	}
}
