package kineto

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// dtypes are PyTorch's names of element types, by those of topology files.
var dtypes = map[string]string{
	"bool": "Bool", "u8": "Byte", "u16": "UInt16", "u32": "UInt32", "u64": "UInt64", "i8": "Char", "i16": "Short",
	"i32": "Int", "i64": "Long", "f8e4m3": "Float8_e4m3fn", "f8e5m2": "Float8_e5m2", "f16": "Half",
	"bf16": "BFloat16", "f32": "Float", "f64": "Double", "c64": "ComplexFloat", "c128": "ComplexDouble",
}

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
		return "c10d::" + cmp.Or(collective.LookupCall(a.Call.Name).Operator, a.Call.Name)
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
	nccl := a.Call.Collective.Row().NCCL
	if nccl == "" { // NCCL makes it of messages
		return "ncclKernel_SendRecv"
	}
	name := "ncclKernel_" + nccl
	if a.Call.Op != "" {
		name += fmt.Sprintf("_%s%s_%s", strings.ToUpper(a.Call.Op[:1]), a.Call.Op[1:], a.DType)
	}
	return name + "_" + strings.ToUpper(a.Call.Algorithm)
}

// called is what PyTorch calls the operation in the arguments of its kernel.
func called(a *trace.Activity) string {
	switch a.Kind {
	case trace.Send:
		return "send"
	case trace.Receive:
		return "recv"
	}
	return cmp.Or(collective.LookupCall(a.Call.Name).Traced, a.Call.Name)
}
