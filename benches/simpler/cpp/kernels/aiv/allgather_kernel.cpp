// All-gather: each chip stages its input in its window, all meet, and each fetches all windows in the domain's order.
#include "domain.hpp"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    domain::Arguments a(args);
    domain::copy(a.scratch, a.input, a.input_count);
    pipe_barrier(PIPE_ALL);
    a.meet(reinterpret_cast<__gm__ int32_t *>(a.scratch + a.input_count));
    for (int r = 0; r < a.n; ++r) domain::copy(a.output + r * a.input_count, a.at(a.scratch, r), a.input_count);
    pipe_barrier(PIPE_ALL);
}
