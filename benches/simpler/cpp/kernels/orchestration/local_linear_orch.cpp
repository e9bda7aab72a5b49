// Passes the task's arguments on to the kernel, on the matrix core.
#include <cstdint>

#include "pto_orchestration_api.h"

extern "C" {

PTO2OrchestrationConfig local_linear_orchestration_config(const ChipStorageTaskArgs &) {
    return PTO2OrchestrationConfig{.expected_arg_count = 3};
}

void local_linear_orchestration(const ChipStorageTaskArgs &args) {
    Tensor x = from_tensor_arg(args.tensor(0)), w = from_tensor_arg(args.tensor(1)), partial = from_tensor_arg(args.tensor(2));
    Arg params;
    params.add_input(x);
    params.add_input(w);
    params.add_output(partial);
    rt_submit_aic_task(0, params);
}

}  // extern "C"
