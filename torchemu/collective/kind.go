// Package collective holds the table of collectives: the kinds that there are, what ranks start and end with in each, the
// functions by which programs call them, and the names that PyTorch, NCCL and readers of traces have for them. Every
// other table that is keyed by a collective, in Go and in Python, is derived from this one.
package collective

import (
	"fmt"
	"strings"
)

// Kind is what the ranks of a group compute together: a row of the table.
type Kind uint8

// Share is how much of a collective's vector a rank has.
type Share uint8

// The shares of a vector.
const (
	Vector Share = iota // all of it
	Block               // the rank's own block
	Blocks              // a vector of the rank's own, with a block for each rank
	None                // nothing
)

var shareNames = [...]string{Vector: "vector", Block: "block", Blocks: "blocks", None: "none"}

// MarshalText writes a share's name.
func (s Share) MarshalText() ([]byte, error) { return []byte(shareNames[s]), nil }

// Side is what the ranks have at the start of a collective, or at its end.
type Side struct {
	Share Share `json:"share"`
	Root  bool  `json:"root"` // only the root has it; the others have nothing
}

// Of is what a rank has.
func (s Side) Of(rank, root int) Share {
	if s.Root && rank != root {
		return None
	}
	return s.Share
}

// Row is what the table says of a kind.
type Row struct {
	Name    string `json:"name"`    // in torch.distributed and in ccl.yaml
	Starts  Side   `json:"starts"`  // what ranks give
	Ends    Side   `json:"ends"`    // what ranks receive
	Reduces bool   `json:"reduces"` // elements are combined: the other kinds only move them
	Rooted  bool   `json:"rooted"`  // a call names one rank that has a part of its own

	// Passes is how often the share of the data that (n-1)/n of n ranks have passes through each rank's link in an
	// optimal algorithm; 0 where all of the data passes once. nccl-tests multiply the algorithm bandwidth by it.
	Passes int `json:"passes"`

	Kernel bool   `json:"kernel"` // a device program that ccl.yaml names may do it
	NCCL   string `json:"nccl"`   // in the names of NCCL's kernels; "" where NCCL makes it of messages
	Chakra int64  `json:"chakra"` // Chakra's CollectiveCommType
}

// Row returns what the table says of the kind; nothing of one that is not in it.
func (k Kind) Row() *Row {
	if k < NumKinds {
		return &kinds[k]
	}
	return &Row{}
}

// String is the kind's name in torch.distributed and in ccl.yaml.
func (k Kind) String() string {
	if k < NumKinds {
		return kinds[k].Name
	}
	return fmt.Sprintf("Collective(%d)", uint8(k))
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Reduces says whether elements are combined: the other kinds only move them.
func (k Kind) Reduces() bool { return k.Row().Reduces }

// Rooted says whether a call names one rank that has a part of its own.
func (k Kind) Rooted() bool { return k.Row().Rooted }

// Starts is what ranks start with.
func (k Kind) Starts() Side { return k.Row().Starts }

// Ends is what ranks end with.
func (k Kind) Ends() Side { return k.Row().Ends }

// Exchanges says whether every rank has blocks of its own for every rank.
func (k Kind) Exchanges() bool { return k.Row().Starts.Share == Blocks }

// Gathers says whether ranks give their own blocks of what others receive as a whole.
func (k Kind) Gathers() bool { return k.Row().Starts.Share == Block }

// Scatters says whether ranks receive their own blocks of what others give as a whole.
func (k Kind) Scatters() bool { return k.Row().Ends.Share == Block }

// EndsAlike says whether every rank ends with the same vector.
func (k Kind) EndsAlike() bool { return k.Row().Ends == Side{Share: Vector} }

// Blocks is how many blocks may differ in size in a world: none where ranks have whole vectors only.
func (k Kind) Blocks(world int) int {
	switch {
	case k.Exchanges():
		return world * world
	case k.Gathers(), k.Scatters():
		return world
	}
	return 0
}

// BusFactor is the bus bandwidth of n ranks, as a multiple of the algorithm bandwidth: nccl-tests define both.
func (k Kind) BusFactor(n int) float64 {
	passes := k.Row().Passes
	if passes == 0 {
		return 1
	}
	return float64(passes) * float64(n-1) / float64(n)
}

// Rows lists what the table says of all kinds, in their order.
func Rows() []Row { return kinds[:] }

// Names lists the kinds' names, in their order.
func Names() []string {
	list := make([]string, NumKinds)
	for k := range list {
		list[k] = kinds[k].Name
	}
	return list
}

// ParseKind finds a kind by its name; the error lists the names.
func ParseKind(name string) (Kind, error) {
	for k := range NumKinds {
		if kinds[k].Name == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("unknown collective %q: choose one of %s", name, strings.Join(Names(), ", "))
}
