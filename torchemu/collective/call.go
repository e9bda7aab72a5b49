package collective

// Compared is which tensors of a call PyTorch compares between ranks where the debug level is DETAIL.
type Compared string

// What is compared.
const (
	Nothing  Compared = ""
	Given    Compared = "given"    // what the rank gives, or receives if it gives nothing
	Received Compared = "received" // what the rank receives, or gives if it receives nothing
)

// Call is a function by which programs call a kind of collective, and its names elsewhere. A name that is "" is Name,
// where the field does not say otherwise.
type Call struct {
	Name string `json:"name"` // torch.distributed's
	Kind Kind   `json:"kind"`

	Method   string `json:"method"`   // of PyTorch's ProcessGroup and Backend; "" is that of the call named as the kind
	OpType   string `json:"op_type"`  // of PyTorch's works and fingerprints; "" where it has none
	Hook     string `json:"hook"`     // of what PyTorch's hooks are told; "" where they are told the kind's
	Recorded string `json:"recorded"` // in the flight recorder's dumps
	Apiece   string `json:"apiece"`   // there, after an entry for each block, where blocks have several sizes; "" without
	Operator string `json:"operator"` // of PyTorch's dispatcher, in Kineto's files
	Traced   string `json:"traced"`   // what Kineto's files call "Collective name"

	Compares Compared `json:"compares"`
	Whole    bool     `json:"whole"`   // blocks are in one tensor, not in a list
	Several  bool     `json:"several"` // it is of several tensors in one go
	Silent   bool     `json:"silent"`  // what is moved is no business of the program
}

// Calls lists the functions by which programs call collectives.
func Calls() []Call { return calls }

// LookupCall finds a function by its name. A name that is not in the table has no other names.
func LookupCall(name string) Call {
	for _, c := range calls {
		if c.Name == name {
			return c
		}
	}
	return Call{Name: name}
}
