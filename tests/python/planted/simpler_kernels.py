"""Kernels in C++ for simpler's chips, right and with planted defects; see test_simpler_planted.py.

Each is a collective's: its chips have 64 floats in, 256 out, and a window of 1,024 with signals behind.
"""

from __future__ import annotations

BEGIN = """#include "domain.hpp"

using Ints = __gm__ int32_t *;

AICORE inline void add_own(__gm__ float *to, __gm__ float *from, int count) {
    domain::Tile a(count), b(count);
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x8000);
    domain::Floats left = domain::floats(to, count), right = domain::floats(from, count);
    TLOAD(a, left);
    TLOAD(b, right);  //! no wait, not drained, one row, no second barrier
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(a, a, b);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(left, a);  //! one row, no second barrier
    pipe_barrier(PIPE_ALL);
}

AICORE inline void tell(const domain::Arguments &a, Ints word, int peer) {
    pto::comm::Signal signal(a.at(word, peer));
    pto::comm::TNOTIFY(signal, 1, pto::comm::NotifyOp::AtomicAdd);
}

AICORE inline void await(Ints word, int value) {
    pto::comm::Signal signal(word);
    pto::comm::TWAIT(signal, value, pto::comm::WaitCmp::GE);
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    domain::Arguments a(args);
    const int n = a.input_count, right = (a.me + 1) % a.n, left = (a.me + a.n - 1) % a.n;
    Ints words = reinterpret_cast<Ints>(a.scratch + 1024);
"""

END = "}\n"

PROGRAMS: dict[str, str] = {
    "staged and fetched": """
    domain::Tile tile(n);
    TASSIGN(tile, 0x0);
    domain::Floats source = domain::floats(a.input, n), stage = domain::floats(a.scratch, n);
    TLOAD(tile, source);  //! no flag
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);  //- no flag
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);  //- no flag
    TSTORE(stage, tile);  //! no flag, not drained, no barrier
    pipe_barrier(PIPE_ALL);  //- not drained
    for (int r = 0; r < a.n; ++r) if (r != a.me) tell(a, words + a.me, r);
    for (int r = 0; r < a.n; ++r) if (r != a.me) await(words + r, 1);  //- no barrier
    for (int r = 0; r < a.n; ++r) {
        domain::Tile part(n);
        TASSIGN(part, 0x4000);
        domain::Floats from = domain::floats(a.at(a.scratch, r), n), to = domain::floats(a.output + r * n, n);
        TLOAD(part, from);  //! not drained, no barrier, one tile
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1);
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1);
        TSTORE(to, part);  //! one tile
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);  //- one tile
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);  //- one tile
    }
""",
    "two rounds through one buffer": """
    for (int round = 0; round < 2; ++round) {
        add_own(a.scratch, a.input, n);
        for (int r = 0; r < a.n; ++r) if (r != a.me) tell(a, words + a.me, r);
        int need = 2 * round + 1;
        need = 1;  //+ one row
        need = round + 1;  //+ no second barrier
        for (int r = 0; r < a.n; ++r) if (r != a.me) await(words + r, need);
        add_own(a.scratch + 512, a.at(a.scratch, left), n);
        pipe_barrier(PIPE_ALL);
        for (int r = 0; r < a.n; ++r) if (r != a.me) tell(a, words + a.me, r);  //- no second barrier
        for (int r = 0; r < a.n; ++r) if (r != a.me) await(words + r, need + 1);  //- no second barrier
    }
""",
    "ring that pushes": """
    domain::copy(a.scratch, a.input, n);
    pipe_barrier(PIPE_ALL);
    for (int step = 0; step < a.n - 1; ++step) {
        domain::Tile tile(n);
        TASSIGN(tile, 0x0);
        domain::Floats from = domain::floats(a.scratch + step * n, n);
        domain::Floats to = domain::floats(a.at(a.scratch + (step + 1) * n, right), n);
        tell(a, words + step, right);  //+ signal first
        pto::comm::TPUT(to, from, tile);  //! signal first, no wait
        pipe_barrier(PIPE_ALL);
        dsb(DSB_DDR);
        tell(a, words + step, right);  //- signal first
        await(words + step, 1);  //- no wait
        domain::copy(a.output + step * n, a.scratch + (step + 1) * n, n);
        pipe_barrier(PIPE_ALL);
    }
""",
    "sum in a chain": """
    domain::copy(a.scratch, a.input, n);
    pipe_barrier(PIPE_ALL);
    if (a.me > 0) await(words, 1);  //- no wait
    if (a.me > 0) add_own(a.scratch, a.scratch + n, n);
    if (a.me + 1 < a.n) {
        domain::copy(a.at(a.scratch + n, a.me + 1), a.scratch, n);
        pipe_barrier(PIPE_ALL);  //- not drained
        dsb(DSB_DDR);
        tell(a, words, a.me + 1);
    }
    domain::copy(a.output, a.scratch, n);
    pipe_barrier(PIPE_ALL);
""",
    "two-phase all-reduce": """
    const int part = n / a.n;
    domain::copy(a.scratch, a.input, n);
    pipe_barrier(PIPE_ALL);
    a.meet(words);  //- no first barrier
    for (int r = 0; r < a.n; ++r) {
        int own = a.me * part;
        if (r == a.me) domain::copy(a.scratch + 256 + r * part, a.scratch + own, part);
        else domain::copy(a.scratch + 256 + r * part, a.at(a.scratch + own, r), part);
    }
    pipe_barrier(PIPE_ALL);
    for (int r = 1; r < a.n; ++r) add_own(a.scratch + 256, a.scratch + 256 + r * part, part);
    for (int r = 0; r < a.n; ++r) {
        domain::Tile tile(n);
        TASSIGN(tile, 0x0);
        int slot = a.me * part;
        slot = 0;  //+ one slot
        domain::Floats from = domain::floats(a.scratch + 256, part);
        domain::Floats to = domain::floats(a.at(a.scratch + 512 + slot, r), part);
        pto::comm::TPUT(to, from, tile);  //! one slot, no second barrier, one row for both, not sent
        pipe_barrier(PIPE_ALL);
    }
    dsb(DSB_DDR);
    a.meet(words + 4);  //- no second barrier, one row for both
    a.meet(words);  //+ one row for both
    domain::copy(a.output, a.scratch + 512, n);
    pipe_barrier(PIPE_ALL);
""",
}
