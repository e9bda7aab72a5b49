// partial = x·w of the shards of one chip, on the matrix unit.
#include <cstdint>

#include <pto/common/constants.hpp>
#include <pto/common/pto_tile.hpp>
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

namespace {

constexpr int M = 16, K = 64, N = 16;

template <int Rows, int Cols>
using Matrix = GlobalTensor<float, Shape<1, 1, 1, Rows, Cols>, Stride<Rows * Cols, Rows * Cols, Rows * Cols, Cols, 1>>;

template <int Rows, int Cols>
using Block = Tile<TileType::Mat, float, Rows, Cols, BLayout::ColMajor, Rows, Cols, SLayout::RowMajor, 512>;

AICORE __gm__ float *pointer(int64_t tensor) {
    auto *t = reinterpret_cast<__gm__ Tensor *>(tensor);
    return reinterpret_cast<__gm__ float *>(t->buffer.addr) + t->start_offset;
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    Matrix<M, K> x(pointer(args[0]));
    Matrix<K, N> w(pointer(args[1]));
    Matrix<M, N> partial(pointer(args[2]));
    Block<M, K> x_block;
    Block<K, N> w_block;
    TileLeft<float, M, K> left;
    TileRight<float, K, N> right;
    TileAcc<float, M, N> product;
    TASSIGN(x_block, 0x0);
    TASSIGN(w_block, 0x20000);
    TASSIGN(left, 0x0);
    TASSIGN(right, 0x0);
    TASSIGN(product, 0x0);

    TLOAD(x_block, x);
    TLOAD(w_block, w);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, x_block);
    TMOV(right, w_block);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(product, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(partial, product);
    set_flag(PIPE_FIX, PIPE_S, EVENT_ID7);
    wait_flag(PIPE_FIX, PIPE_S, EVENT_ID7);
}
