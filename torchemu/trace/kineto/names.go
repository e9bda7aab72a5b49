package kineto

import (
	"fmt"
	"strings"

	"github.com/torchemu/torchemu/torchemu/trace"
)

// operators are the names that PyTorch's dispatcher has for what programs call, and kernels the names of NCCL's kernels
// for what that comes to. Collectives that NCCL makes of messages have the kernel of messages.
var (
	operators = map[string]string{
		"all_reduce": "allreduce_", "all_gather": "allgather_", "reduce_scatter": "reduce_scatter_",
		"broadcast": "broadcast_", "reduce": "reduce_", "gather": "gather_", "scatter": "scatter_",
		"all_to_all": "alltoall_", "all_gather_into_tensor": "_allgather_base_",
		"reduce_scatter_tensor": "_reduce_scatter_base_", "all_to_all_single": "alltoall_base_", "barrier": "barrier",
	}
	kernels = map[string]string{
		"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter",
		"broadcast": "Broadcast", "reduce": "Reduce",
	}
	// calls are what PyTorch writes for "Collective name".
	calls = map[string]string{
		"all_reduce": "allreduce", "all_gather": "all_gather", "all_gather_into_tensor": "_allgather_base",
		"reduce_scatter_tensor": "_reduce_scatter_base", "all_to_all_single": "all_to_allv",
	}
	dtypes = map[string]string{
		"bool": "Bool", "u8": "Byte", "u16": "UInt16", "u32": "UInt32", "u64": "UInt64", "i8": "Char", "i16": "Short",
		"i32": "Int", "i64": "Long", "f8e4m3": "Float8_e4m3fn", "f8e5m2": "Float8_e5m2", "f16": "Half",
		"bf16": "BFloat16", "f32": "Float", "f64": "Double", "c64": "ComplexFloat", "c128": "ComplexDouble",
	}
)

// found is the value of a key, or else the key itself.
func found(table map[string]string, key string) string {
	if value, ok := table[key]; ok {
		return value
	}
	return key
}

// operator is what the host is in while it calls for an activity.
func operator(a *trace.Activity) string {
	switch a.Kind {
	case trace.Send:
		return "c10d::send"
	case trace.Receive:
		return "c10d::recv_"
	case trace.Collective:
		return "c10d::" + found(operators, a.Call.Name)
	case trace.CopyIn, trace.CopyOut:
		return "aten::copy_"
	}
	if strings.Contains(a.Name, "::") {
		return a.Name
	}
	return "aten::" + a.Name
}

// launch is the call of the driver for an activity.
func launch(a *trace.Activity) string {
	switch a.Kind {
	case trace.Kernel:
		return "cudaLaunchKernel"
	case trace.CopyIn, trace.CopyOut:
		return "cudaMemcpyAsync"
	}
	return "cudaLaunchKernelExC" // as NCCL does
}

// launchIDs are the numbers that CUPTI has for these calls.
var launchIDs = map[string]int64{"cudaLaunchKernel": 211, "cudaMemcpyAsync": 41, "cudaLaunchKernelExC": 430}

// kernel is what the device runs. The names are those that NCCL gave its kernels before version 2.19: HTA looks for
// stragglers among kernels called ncclKernel… only.
func kernel(a *trace.Activity) string {
	switch a.Kind {
	case trace.Kernel:
		return a.Name
	case trace.CopyIn:
		return "Memcpy HtoD (Pinned -> Device)"
	case trace.CopyOut:
		return "Memcpy DtoH (Device -> Pinned)"
	case trace.Send, trace.Receive:
		return "ncclKernel_SendRecv"
	}
	name, ok := kernels[a.Call.Collective]
	if !ok {
		return "ncclKernel_SendRecv"
	}
	name = "ncclKernel_" + name
	if a.Call.Op != "" {
		name += fmt.Sprintf("_%s%s_%s", strings.ToUpper(a.Call.Op[:1]), a.Call.Op[1:], a.DType)
	}
	return name + "_" + strings.ToUpper(a.Call.Algorithm)
}

// collective is what PyTorch calls the operation in the arguments of its kernel.
func collective(a *trace.Activity) string {
	switch a.Kind {
	case trace.Send:
		return "send"
	case trace.Receive:
		return "recv"
	}
	return found(calls, a.Call.Name)
}
