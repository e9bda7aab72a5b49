// Passes the task's arguments on to the kernel.
#include <cstdint>

#include "pto_orchestration_api.h"

extern "C" {

PTO2OrchestrationConfig allreduce_orchestration_config(const ChipStorageTaskArgs &) {
    return PTO2OrchestrationConfig{.expected_arg_count = 5};
}

void allreduce_orchestration(const ChipStorageTaskArgs &args) {
    Tensor input = from_tensor_arg(args.tensor(0)), output = from_tensor_arg(args.tensor(1)), scratch = from_tensor_arg(args.tensor(2));
    Arg params;
    params.add_input(input);
    params.add_output(output);
    params.add_inout(scratch);
    for (int i = 0; i < args.scalar_count(); ++i) params.add_scalar(args.scalar(i));
    rt_submit_aiv_task(0, params);
}

}  // extern "C"
