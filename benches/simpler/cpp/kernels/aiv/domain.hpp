// What the kernels of collectives share: their arguments, a barrier, and copies through a tile.
#pragma once

#include <cstdint>

#include <pto/pto-inst.hpp>

#include "pto/comm/comm_types.hpp"
#include "pto/comm/pto_comm_inst.hpp"

#include "platform_comm/comm_context.h"
#include "tensor.h"

namespace domain {

constexpr int kMaxRanks = 16;  // words in a row of signals
constexpr int kMaxFloats = 4096;

using Shape = pto::Shape<1, 1, 1, 1, pto::DYNAMIC>;
using Stride = pto::Stride<pto::DYNAMIC, pto::DYNAMIC, pto::DYNAMIC, pto::DYNAMIC, 1>;
using Floats = pto::GlobalTensor<float, Shape, Stride>;
using Tile = pto::Tile<pto::TileType::Vec, float, 1, kMaxFloats, pto::BLayout::RowMajor, 1, pto::DYNAMIC>;

AICORE inline Floats floats(__gm__ float *first, int count) {
    return Floats(first, Shape(count), Stride(count, count, count, count));
}

// The arguments (input, output, scratch, nranks, …, device_ctx).
struct Arguments {
    __gm__ float *input;
    __gm__ float *output;
    __gm__ float *scratch;
    int input_count, output_count;
    __gm__ CommContext *ctx;
    int me, n;

    AICORE explicit Arguments(__gm__ int64_t *args, int context = 4) {
        input = pointer(args[0]), output = pointer(args[1]), scratch = pointer(args[2]);
        input_count = count(args[0]), output_count = count(args[1]);
        ctx = reinterpret_cast<__gm__ CommContext *>(args[context]);
        me = static_cast<int>(ctx->rankId), n = static_cast<int>(args[3]);
    }

    AICORE static __gm__ float *pointer(int64_t tensor) {
        auto *t = reinterpret_cast<__gm__ Tensor *>(tensor);
        return reinterpret_cast<__gm__ float *>(t->buffer.addr) + t->start_offset;
    }

    AICORE static int count(int64_t tensor) {
        auto *t = reinterpret_cast<__gm__ Tensor *>(tensor);
        int all = 1;
        for (uint32_t i = 0; i < t->ndims; ++i) all *= static_cast<int>(t->shapes[i]);
        return all;
    }

    template <typename T>
    AICORE __gm__ T *at(__gm__ T *own, int member) const {
        uint64_t offset = reinterpret_cast<uint64_t>(own) - ctx->windowsIn[ctx->rankId];
        return reinterpret_cast<__gm__ T *>(ctx->windowsIn[member] + offset);
    }

    // Waits for all others. Each row of signals can be used once.
    AICORE void meet(__gm__ int32_t *row) const {
        for (int peer = 0; peer < n; ++peer) {
            if (peer == me) continue;
            pto::comm::Signal signal(at(row + me, peer));
            pto::comm::TNOTIFY(signal, 1, pto::comm::NotifyOp::AtomicAdd);
        }
        for (int peer = 0; peer < n; ++peer) {
            if (peer == me) continue;
            pto::comm::Signal signal(row + peer);
            pto::comm::TWAIT(signal, 1, pto::comm::WaitCmp::GE);
        }
        pipe_barrier(PIPE_ALL);
    }
};

// Copies from memory of any chip to own memory.
AICORE inline void copy(__gm__ float *to, __gm__ float *from, int count) {
    Tile tile(count);
    TASSIGN(tile, 0x0);
    Floats source = floats(from, count), target = floats(to, count);
    TLOAD(tile, source);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    TSTORE(target, tile);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
}

// Adds what is in memory to a sum that is in a tile.
AICORE inline void add(Tile &sum, __gm__ float *from, int count) {
    Tile other(count);
    TASSIGN(other, 0x8000);
    Floats source = floats(from, count);
    TLOAD(other, source);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
    TADD(sum, sum, other);
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
}

// Stores a sum of the own part of memory and of all others', ascending.
AICORE inline void reduce(const Arguments &a, __gm__ float *to, __gm__ float *part, int count) {
    Tile sum(count);
    TASSIGN(sum, 0x0);
    Floats own = floats(part, count), target = floats(to, count);
    TLOAD(sum, own);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    for (int peer = 0; peer < a.n; ++peer) {
        if (peer != a.me) add(sum, a.at(part, peer), count);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(target, sum);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
}

}  // namespace domain
