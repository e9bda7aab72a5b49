// Broadcast: the root stages its input in its window, all meet, and each fetches it.
#include "domain.hpp"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    domain::Arguments a(args, 5);
    const int root = static_cast<int>(args[4]);
    if (a.me == root) domain::copy(a.scratch, a.input, a.input_count);
    pipe_barrier(PIPE_ALL);
    a.meet(reinterpret_cast<__gm__ int32_t *>(a.scratch + a.input_count));
    domain::copy(a.output, a.at(a.scratch, root), a.input_count);
    pipe_barrier(PIPE_ALL);
}
