// All-reduce on two rings: the first halves of the chunks go round to the right, the second halves to the left. Chips
// push: what a neighbour has is added to where it is. All meet before each step, and once more at the end, when what they
// have pushed has landed.
#include "domain.hpp"

namespace {

// One of the rings: where its halves are, which neighbour it pushes to, and in which direction chunks go.
struct Ring {
    __gm__ float *halves;
    int next, direction;
};

template <pto::AtomicType How>
AICORE void push(const domain::Arguments &a, const Ring &ring, int index, int half) {
    __gm__ float *part = ring.halves + (index % a.n + a.n) % a.n * half;
    domain::Floats from = domain::floats(part, half), to = domain::floats(a.at(part, ring.next), half);
    domain::Tile between(half);
    TASSIGN(between, 0x10000);
    pto::comm::TPUT<How>(to, from, between);
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    domain::Arguments a(args);
    const int half = a.input_count / (2 * a.n), all = a.n * half;
    const Ring rings[] = {{a.scratch, (a.me + 1) % a.n, 1}, {a.scratch + all, (a.me + a.n - 1) % a.n, -1}};
    auto *row = reinterpret_cast<__gm__ int32_t *>(a.scratch + 2 * all);

    for (int c = 0; c < a.n; ++c) {
        for (int r = 0; r < 2; ++r) domain::copy(rings[r].halves + c * half, a.input + (2 * c + r) * half, half);
    }
    pipe_barrier(PIPE_ALL);
    for (int step = 1; step < a.n; ++step, row += domain::kMaxRanks) {
        a.meet(row);
        for (const Ring &ring : rings) push<pto::AtomicType::AtomicAdd>(a, ring, a.me - ring.direction * step, half);
        pipe_barrier(PIPE_ALL);
        dsb(DSB_DDR);
    }
    for (int step = 1; step < a.n; ++step, row += domain::kMaxRanks) {
        a.meet(row);
        for (const Ring &ring : rings) push<pto::AtomicType::AtomicNone>(a, ring, a.me - ring.direction * (step - 1), half);
        pipe_barrier(PIPE_ALL);
        dsb(DSB_DDR);
    }
    a.meet(row);
    for (int c = 0; c < a.n; ++c) {
        for (int r = 0; r < 2; ++r) domain::copy(a.output + (2 * c + r) * half, rings[r].halves + c * half, half);
    }
    pipe_barrier(PIPE_ALL);
}
