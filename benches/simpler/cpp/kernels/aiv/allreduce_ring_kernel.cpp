// All-reduce on a ring: in each of n-1 steps a chip adds to one chunk what its left neighbour has of it so far, and in
// n-1 more it fetches what is complete. All meet before each step, in a row of signals of its own.
#include "domain.hpp"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    domain::Arguments a(args);
    const int chunk = a.input_count / a.n, left = (a.me + a.n - 1) % a.n;
    auto *signals = reinterpret_cast<__gm__ int32_t *>(a.scratch + (a.n + 1) * chunk);

    domain::copy(a.scratch, a.input, a.input_count);
    pipe_barrier(PIPE_ALL);
    for (int step = 1; step < a.n; ++step) {
        __gm__ float *part = a.scratch + (a.me - step - 1 + 2 * a.n) % a.n * chunk;
        a.meet(signals + (step - 1) * domain::kMaxRanks);
        domain::Tile sum(chunk);
        TASSIGN(sum, 0x0);
        domain::Floats own = domain::floats(part, chunk);
        TLOAD(sum, own);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        domain::add(sum, a.at(part, left), chunk);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(own, sum);
        pipe_barrier(PIPE_ALL);
    }
    for (int step = 1; step < a.n; ++step) {
        __gm__ float *part = a.scratch + (a.me - step + a.n) % a.n * chunk;
        a.meet(signals + (a.n - 1 + step - 1) * domain::kMaxRanks);
        domain::copy(part, a.at(part, left), chunk);
        pipe_barrier(PIPE_ALL);
    }
    domain::copy(a.output, a.scratch, a.input_count);
    pipe_barrier(PIPE_ALL);
}
