package collective

// The kinds of collectives.
const (
	AllReduce     Kind = iota // every rank ends with the reduction of all ranks' vectors
	AllGather                 // every rank ends with the concatenation of all ranks' blocks
	ReduceScatter             // rank r ends with block r of the reduction
	Broadcast                 // every rank ends with the root's vector
	Reduce                    // the root ends with the reduction of all ranks' vectors
	Gather                    // the root ends with the concatenation of all ranks' blocks
	Scatter                   // rank r ends with block r of the root's vector
	AllToAll                  // rank r ends with block r of every rank's vector, one after another

	NumKinds // how many there are
)

// kinds are the rows of the kinds.
var kinds = [NumKinds]Row{
	AllReduce:     {Name: "all_reduce", Reduces: true, Passes: 2, Kernel: true, NCCL: "AllReduce", Chakra: 0},
	AllGather:     {Name: "all_gather", Starts: Side{Share: Block}, Passes: 1, Kernel: true, NCCL: "AllGather", Chakra: 2},
	ReduceScatter: {Name: "reduce_scatter", Ends: Side{Share: Block}, Reduces: true, Passes: 1, Kernel: true, NCCL: "ReduceScatter", Chakra: 7},
	Broadcast:     {Name: "broadcast", Starts: Side{Root: true}, Rooted: true, NCCL: "Broadcast", Chakra: 5},
	Reduce:        {Name: "reduce", Ends: Side{Root: true}, Reduces: true, Rooted: true, NCCL: "Reduce", Chakra: 1},
	Gather:        {Name: "gather", Starts: Side{Share: Block}, Ends: Side{Root: true}, Rooted: true, Passes: 1, Chakra: 3},
	Scatter:       {Name: "scatter", Starts: Side{Root: true}, Ends: Side{Share: Block}, Rooted: true, Passes: 1, Chakra: 4},
	AllToAll:      {Name: "all_to_all", Starts: Side{Share: Blocks}, Ends: Side{Share: Blocks}, Passes: 1, Chakra: 6},
}

// calls are the rows of the functions by which programs call them.
var calls = []Call{
	{Name: "all_reduce", Kind: AllReduce, Method: "allreduce", OpType: "ALLREDUCE", Hook: "ALLREDUCE",
		Operator: "allreduce_", Traced: "allreduce", Compares: Given},
	{Name: "all_reduce_coalesced", Kind: AllReduce, Method: "allreduce_coalesced", OpType: "ALLREDUCE_COALESCED",
		Hook: "ALLREDUCE_COALESCED", Recorded: "allreduce_coalesced", Several: true},
	{Name: "barrier", Kind: AllReduce, Method: "barrier", OpType: "BARRIER", Hook: "BARRIER", Silent: true},

	{Name: "all_gather", Kind: AllGather, Method: "allgather", OpType: "ALLGATHER", Hook: "ALLGATHER",
		Apiece: "ALLGATHER_coalesced", Operator: "allgather_", Compares: Given},
	{Name: "all_gather_into_tensor", Kind: AllGather, Method: "_allgather_base", OpType: "_ALLGATHER_BASE",
		Hook: "ALLGATHER_BASE", Recorded: "_all_gather_base", Operator: "_allgather_base_", Traced: "_allgather_base",
		Compares: Given, Whole: true},
	{Name: "all_gather_coalesced", Kind: AllGather, Method: "allgather_coalesced", OpType: "ALLGATHER_COALESCED",
		Hook: "ALLGATHER_COALESCED", Recorded: "allgather_coalesced", Several: true},
	{Name: "all_gather_into_tensor_coalesced", Kind: AllGather, Method: "allgather_into_tensor_coalesced",
		Hook: "ALLGATHER_INTO_TENSOR_COALESCED", Compares: Given, Whole: true, Several: true},
	{Name: "all_gather_object", Kind: AllGather, OpType: "ALLGATHER", Compares: Given},

	{Name: "reduce_scatter", Kind: ReduceScatter, Method: "reduce_scatter", OpType: "REDUCE_SCATTER",
		Hook: "REDUCE_SCATTER", Apiece: "REDUCE_SCATTER_coalesced", Operator: "reduce_scatter_", Compares: Received},
	{Name: "reduce_scatter_tensor", Kind: ReduceScatter, Method: "_reduce_scatter_base", OpType: "_REDUCE_SCATTER_BASE",
		Hook: "REDUCE_SCATTER_BASE", Recorded: "_reduce_scatter_base", Operator: "_reduce_scatter_base_",
		Traced: "_reduce_scatter_base", Compares: Given, Whole: true},
	{Name: "reduce_scatter_tensor_coalesced", Kind: ReduceScatter, Method: "reduce_scatter_tensor_coalesced",
		Hook: "REDUCE_SCATTER_TENSOR_COALESCED", Compares: Given, Whole: true, Several: true},

	{Name: "broadcast", Kind: Broadcast, Method: "broadcast", OpType: "BROADCAST", Hook: "BROADCAST",
		Operator: "broadcast_", Compares: Received},
	{Name: "broadcast_object_list", Kind: Broadcast, OpType: "BROADCAST", Compares: Received},
	{Name: "reduce", Kind: Reduce, Method: "reduce", OpType: "REDUCE", Hook: "REDUCE", Operator: "reduce_", Compares: Given},
	{Name: "gather", Kind: Gather, Method: "gather", OpType: "GATHER", Hook: "GATHER", Operator: "gather_", Compares: Given},
	{Name: "gather_single", Kind: Gather, OpType: "GATHER", Hook: "GATHER", Recorded: "gather", Compares: Given, Whole: true},
	{Name: "gather_object", Kind: Gather, OpType: "ALLGATHER", Compares: Given},
	{Name: "scatter", Kind: Scatter, Method: "scatter", OpType: "SCATTER", Hook: "SCATTER", Operator: "scatter_",
		Compares: Received},
	{Name: "scatter_object_list", Kind: Scatter, OpType: "BROADCAST", Compares: Received},

	{Name: "all_to_all", Kind: AllToAll, Method: "alltoall", OpType: "ALLTOALL", Hook: "ALLTOALL", Operator: "alltoall_"},
	{Name: "all_to_all_single", Kind: AllToAll, Method: "alltoall_base", OpType: "ALLTOALL_BASE", Hook: "ALLTOALL_BASE",
		Recorded: "all_to_all", Operator: "alltoall_base_", Traced: "all_to_allv", Whole: true},
}
