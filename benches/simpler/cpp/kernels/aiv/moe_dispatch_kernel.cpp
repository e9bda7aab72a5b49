// The dispatch of a mixture of experts. Each token goes to the chips of the experts that it has chosen. First the chips
// tell each other how many rows each sends to each expert; from that follows where in the window of an expert's chip the
// rows of a sender begin: senders ascending, and each one's in the order of its tokens. Then they push the rows.
//
// Arguments: x [T, D] float, experts [T, TOPK] int32, rows out [L, R, D] float, tokens out [L, R] int32 (the sender's
// number of the row, with its rank), counts out [L] int32, scratch; then nranks, T, TOPK, D, L, R, device_ctx.
//
// Scratch: counts [n][n][L] int32; 2 rows of signals; tokens [L][R][8] int32; rows [L][R][D] float.
#include <cstdint>

#include <pto/pto-inst.hpp>

#include "pto/comm/comm_types.hpp"
#include "pto/comm/pto_comm_inst.hpp"

#include "platform_comm/comm_context.h"
#include "tensor.h"

using namespace pto;

namespace {

constexpr int kMaxRanks = 16, kMaxExperts = 8, kMaxRoutes = 256, kMaxWidth = 256;
constexpr int kPad = 8;  // words of a row of tokens, of which the first counts

template <typename T>
AICORE __gm__ T *pointer(int64_t tensor) {
    auto *t = reinterpret_cast<__gm__ Tensor *>(tensor);
    return reinterpret_cast<__gm__ T *>(t->buffer.addr) + t->start_offset;
}

template <typename T>
AICORE __gm__ T *at(__gm__ CommContext *ctx, __gm__ T *own, int member) {
    uint64_t offset = reinterpret_cast<uint64_t>(own) - ctx->windowsIn[ctx->rankId];
    return reinterpret_cast<__gm__ T *>(ctx->windowsIn[member] + offset);
}

AICORE void meet(__gm__ CommContext *ctx, __gm__ int32_t *row, int n) {
    const int me = static_cast<int>(ctx->rankId);
    for (int peer = 0; peer < n; ++peer) {
        if (peer == me) continue;
        comm::Signal signal(at(ctx, row + me, peer));
        comm::TNOTIFY(signal, 1, comm::NotifyOp::AtomicAdd);
    }
    for (int peer = 0; peer < n; ++peer) {
        if (peer == me) continue;
        comm::Signal signal(row + peer);
        comm::TWAIT(signal, 1, comm::WaitCmp::GE);
    }
    pipe_barrier(PIPE_ALL);
}

using Line = Shape<1, 1, 1, 1, DYNAMIC>;
using Steps = Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>;
using Rows = GlobalTensor<float, Line, Steps>;
using RowTile = Tile<TileType::Vec, float, 1, kMaxWidth, BLayout::RowMajor, 1, DYNAMIC>;
using Words = GlobalTensor<int32_t, Shape<1, 1, 1, 1, kPad>, Stride<kPad, kPad, kPad, kPad, 1>>;
using WordTile = Tile<TileType::Vec, int32_t, 1, kPad>;

AICORE Rows row_of(__gm__ float *first, int width) { return Rows(first, Line(width), Steps(width, width, width, width)); }

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ float *x = pointer<float>(args[0]), *rows_out = pointer<float>(args[2]);
    __gm__ int32_t *experts = pointer<int32_t>(args[1]), *tokens_out = pointer<int32_t>(args[3]);
    __gm__ int32_t *counts_out = pointer<int32_t>(args[4]), *counts = pointer<int32_t>(args[5]);
    const int n = static_cast<int>(args[6]), T = static_cast<int>(args[7]), K = static_cast<int>(args[8]);
    const int D = static_cast<int>(args[9]), L = static_cast<int>(args[10]), R = static_cast<int>(args[11]);
    __gm__ CommContext *ctx = reinterpret_cast<__gm__ CommContext *>(args[12]);
    const int me = static_cast<int>(ctx->rankId);
    __gm__ int32_t *signals = counts + n * n * L;
    __gm__ int32_t *tokens = signals + 2 * kMaxRanks;
    __gm__ float *rows = reinterpret_cast<__gm__ float *>(tokens + L * R * kPad);

    // Which expert each route is for, and how many are for each.
    int expert_of[kMaxRoutes], sends[kMaxRanks][kMaxExperts] = {};
    for (int r = 0; r < T * K; ++r) {
        expert_of[r] = experts[r];
        ++sends[expert_of[r] / L][expert_of[r] % L];
    }

    // The counts of all go to all, the own ones too.
    for (int peer = 0; peer < n; ++peer) {
        for (int dst = 0; dst < n; ++dst) {
            for (int e = 0; e < L; ++e) {
                if (sends[dst][e] == 0) continue;
                comm::Signal count(at(ctx, counts + (me * n + dst) * L + e, peer));
                comm::TNOTIFY(count, sends[dst][e], comm::NotifyOp::AtomicAdd);
            }
        }
    }
    dsb(DSB_DDR);
    meet(ctx, signals, n);

    int next[kMaxRanks][kMaxExperts];
    for (int dst = 0; dst < n; ++dst) {
        for (int e = 0; e < L; ++e) {
            next[dst][e] = 0;
            for (int src = 0; src < me; ++src) next[dst][e] += counts[(src * n + dst) * L + e];
        }
    }

    RowTile row_tile(D);
    WordTile word_tile;
    TASSIGN(row_tile, 0x0);
    TASSIGN(word_tile, 0x1000);
    for (int r = 0; r < T * K; ++r) {
        const int dst = expert_of[r] / L, e = expert_of[r] % L;
        const int slot = e * R + next[dst][e]++;
        Rows from = row_of(x + r / K * D, D), to = row_of(at(ctx, rows + slot * D, dst), D);
        comm::TPUT(to, from, row_tile);

        // The row's number is put together in a tile, and stored where it goes.
        TEXPANDS(word_tile, 1000 * me + r);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        Words word(at(ctx, tokens + slot * kPad, dst));
        TSTORE(word, word_tile);
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    }
    pipe_barrier(PIPE_ALL);
    dsb(DSB_DDR);
    meet(ctx, signals + kMaxRanks, n);

    for (int e = 0; e < L; ++e) {
        int count = 0;
        for (int src = 0; src < n; ++src) count += counts[(src * n + me) * L + e];
        counts_out[e] = count;
        for (int slot = e * R; slot < e * R + count; ++slot) {
            Rows from = row_of(rows + slot * D, D), to = row_of(rows_out + slot * D, D);
            TLOAD(row_tile, from);
            set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
            wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
            TSTORE(to, row_tile);
            set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
            wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
            tokens_out[slot] = tokens[slot * kPad];
        }
    }
    pipe_barrier(PIPE_ALL);
}
