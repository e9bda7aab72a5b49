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
	Silent   bool     `json:"silent"` // what is moved is no business of the program
}

var calls = []Call{
	{Name: "all_reduce", Kind: AllReduce, Method: "allreduce", OpType: "ALLREDUCE", Hook: "ALLREDUCE",
		Operator: "allreduce_", Traced: "allreduce", Compares: Given},
	{Name: "all_reduce_coalesced", Kind: AllReduce, Method: "allreduce_coalesced", OpType: "ALLREDUCE_COALESCED",
		Hook: "ALLREDUCE_COALESCED", Recorded: "allreduce_coalesced"},
	{Name: "barrier", Kind: AllReduce, Method: "barrier", OpType: "BARRIER", Hook: "BARRIER", Silent: true},

	{Name: "all_gather", Kind: AllGather, Method: "allgather", OpType: "ALLGATHER", Hook: "ALLGATHER",
		Apiece: "ALLGATHER_coalesced", Operator: "allgather_", Compares: Given},
	{Name: "all_gather_into_tensor", Kind: AllGather, Method: "_allgather_base", OpType: "_ALLGATHER_BASE",
		Hook: "ALLGATHER_BASE", Recorded: "_all_gather_base", Operator: "_allgather_base_", Traced: "_allgather_base",
		Compares: Given},
	{Name: "all_gather_coalesced", Kind: AllGather, Method: "allgather_coalesced", OpType: "ALLGATHER_COALESCED",
		Hook: "ALLGATHER_COALESCED", Recorded: "allgather_coalesced"},
	{Name: "all_gather_into_tensor_coalesced", Kind: AllGather, Method: "allgather_into_tensor_coalesced",
		Hook: "ALLGATHER_INTO_TENSOR_COALESCED", Compares: Given},
	{Name: "all_gather_object", Kind: AllGather, OpType: "ALLGATHER", Compares: Given},

	{Name: "reduce_scatter", Kind: ReduceScatter, Method: "reduce_scatter", OpType: "REDUCE_SCATTER",
		Hook: "REDUCE_SCATTER", Apiece: "REDUCE_SCATTER_coalesced", Operator: "reduce_scatter_", Compares: Received},
	{Name: "reduce_scatter_tensor", Kind: ReduceScatter, Method: "_reduce_scatter_base", OpType: "_REDUCE_SCATTER_BASE",
		Hook: "REDUCE_SCATTER_BASE", Recorded: "_reduce_scatter_base", Operator: "_reduce_scatter_base_",
		Traced: "_reduce_scatter_base", Compares: Given},
	{Name: "reduce_scatter_tensor_coalesced", Kind: ReduceScatter, Method: "reduce_scatter_tensor_coalesced",
		Hook: "REDUCE_SCATTER_TENSOR_COALESCED", Compares: Given},

	{Name: "broadcast", Kind: Broadcast, Method: "broadcast", OpType: "BROADCAST", Hook: "BROADCAST",
		Operator: "broadcast_", Compares: Received},
	{Name: "broadcast_object_list", Kind: Broadcast, OpType: "BROADCAST", Compares: Received},
	{Name: "reduce", Kind: Reduce, Method: "reduce", OpType: "REDUCE", Hook: "REDUCE", Operator: "reduce_", Compares: Given},
	{Name: "gather", Kind: Gather, Method: "gather", OpType: "GATHER", Hook: "GATHER", Operator: "gather_", Compares: Given},
	{Name: "gather_single", Kind: Gather, OpType: "GATHER", Hook: "GATHER", Recorded: "gather", Compares: Given},
	{Name: "gather_object", Kind: Gather, OpType: "ALLGATHER", Compares: Given},
	{Name: "scatter", Kind: Scatter, Method: "scatter", OpType: "SCATTER", Hook: "SCATTER", Operator: "scatter_",
		Compares: Received},
	{Name: "scatter_object_list", Kind: Scatter, OpType: "BROADCAST", Compares: Received},

	{Name: "all_to_all", Kind: AllToAll, Method: "alltoall", OpType: "ALLTOALL", Hook: "ALLTOALL", Operator: "alltoall_"},
	{Name: "all_to_all_single", Kind: AllToAll, Method: "alltoall_base", OpType: "ALLTOALL_BASE", Hook: "ALLTOALL_BASE",
		Recorded: "all_to_all", Operator: "alltoall_base_", Traced: "all_to_allv"},
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
