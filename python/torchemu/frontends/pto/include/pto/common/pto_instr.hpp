// The instructions of a chip. Those that are missing here torchemu does not have.
#pragma once

#include "pto/common/pto_tile.hpp"

namespace torchemu {

template <typename... T>
inline int64_t operate(const char *name, const char *file, int line, const T &...operands) {
    Operands all;
    (all.add(operands), ...);
    return all.call(name, file, line);
}

template <typename Dst, typename Src>
inline void with_number(const char *name, const char *file, int line, const Dst &dst, const Src &src, double number) {
    Operands().add(dst).add(src).real(number).call(name, file, line);
}

}  // namespace torchemu

namespace pto {

// -- places

template <TileType L, typename E, int R, int C, BLayout B, int RV, int CV, SLayout S, int N, PadValue P, CompactMode M, typename Offset>
inline void TASSIGN(Tile<L, E, R, C, B, RV, CV, S, N, P, M> &tile, Offset offset, TORCHEMU_CALLER) {
    tile.assign(static_cast<int64_t>(offset));
    torchemu::operate("TASSIGN", file, line, tile);
}

template <typename E, typename Sh, typename St, Layout L>
inline void TASSIGN(GlobalTensor<E, Sh, St, L> &tensor, E *data) {
    tensor.SetAddr(data);
}

// -- between memory and tiles

template <typename Dst, typename Src>
inline void TLOAD(const Dst &dst, const Src &src, TORCHEMU_CALLER) {
    torchemu::operate("TLOAD", file, line, dst, src);
}

template <typename Src, typename Dst, AtomicType Atomic>
inline void TSTORE(const Dst &dst, const Src &src, TORCHEMU_CALLER) {
    torchemu::Operands().add(dst).add(src).number(static_cast<int>(Atomic)).call("TSTORE", file, line);
}

template <AtomicType Atomic = AtomicType::AtomicNone, typename Dst, typename Src>
inline void TSTORE(const Dst &dst, const Src &src, TORCHEMU_CALLER) {
    torchemu::Operands().add(dst).add(src).number(static_cast<int>(Atomic)).call("TSTORE", file, line);
}

// -- of tiles, element by element

#define TORCHEMU_BINARY(name)                                                                     \
    template <typename Dst, typename A, typename B>                                               \
    inline void name(const Dst &dst, const A &a, const B &b, TORCHEMU_CALLER) {                   \
        torchemu::operate(#name, file, line, dst, a, b);                                          \
    }
#define TORCHEMU_UNARY(name)                                                                      \
    template <typename Dst, typename Src>                                                         \
    inline void name(const Dst &dst, const Src &src, TORCHEMU_CALLER) {                           \
        torchemu::operate(#name, file, line, dst, src);                                           \
    }
#define TORCHEMU_SCALAR(name)                                                                     \
    template <typename Dst, typename Src, typename Number>                                        \
    inline void name(const Dst &dst, const Src &src, Number number, TORCHEMU_CALLER) {            \
        torchemu::with_number(#name, file, line, dst, src, static_cast<double>(number));          \
    }
// A reduction of rows or columns, with or without a tile for what is in between.
#define TORCHEMU_REDUCTION(name)                                                                  \
    TORCHEMU_UNARY(name)                                                                          \
    template <typename Dst, typename Src, typename Between>                                       \
    inline void name(const Dst &dst, const Src &src, const Between &, TORCHEMU_CALLER) {          \
        torchemu::operate(#name, file, line, dst, src);                                           \
    }

TORCHEMU_BINARY(TADD)
TORCHEMU_BINARY(TSUB)
TORCHEMU_BINARY(TMUL)
TORCHEMU_BINARY(TDIV)
TORCHEMU_BINARY(TMAX)
TORCHEMU_BINARY(TMIN)
TORCHEMU_BINARY(TAND)
TORCHEMU_BINARY(TOR)
TORCHEMU_SCALAR(TADDS)
TORCHEMU_SCALAR(TSUBS)
TORCHEMU_SCALAR(TMULS)
TORCHEMU_SCALAR(TDIVS)
TORCHEMU_SCALAR(TMAXS)
TORCHEMU_SCALAR(TMINS)
TORCHEMU_UNARY(TMOV)
TORCHEMU_UNARY(TNEG)
TORCHEMU_UNARY(TABS)
TORCHEMU_UNARY(TEXP)
TORCHEMU_UNARY(TLOG)
TORCHEMU_UNARY(TSQRT)
TORCHEMU_UNARY(TRSQRT)
TORCHEMU_UNARY(TRECIP)
TORCHEMU_UNARY(TRELU)
TORCHEMU_REDUCTION(TROWSUM)
TORCHEMU_REDUCTION(TROWMAX)
TORCHEMU_REDUCTION(TROWMIN)
TORCHEMU_REDUCTION(TCOLSUM)
TORCHEMU_REDUCTION(TCOLMAX)
TORCHEMU_REDUCTION(TCOLMIN)
TORCHEMU_UNARY(TROWEXPAND)
TORCHEMU_UNARY(TCOLEXPAND)
TORCHEMU_BINARY(TROWEXPANDADD)
TORCHEMU_BINARY(TROWEXPANDSUB)
TORCHEMU_BINARY(TROWEXPANDMUL)
TORCHEMU_BINARY(TROWEXPANDDIV)
TORCHEMU_REDUCTION(TTRANS)

#undef TORCHEMU_BINARY
#undef TORCHEMU_UNARY
#undef TORCHEMU_SCALAR
#undef TORCHEMU_REDUCTION

template <typename Dst, typename Number>
inline void TEXPANDS(const Dst &dst, Number number, TORCHEMU_CALLER) {
    torchemu::Operands().add(dst).real(static_cast<double>(number)).call("TEXPANDS", file, line);
}

template <typename Dst, typename Src>
inline void TCVT(const Dst &dst, const Src &src, RoundMode mode = RoundMode::CAST_RINT, TORCHEMU_CALLER) {
    torchemu::Operands().add(dst).add(src).number(static_cast<int>(mode)).call("TCVT", file, line);
}

template <typename Dst, typename Src>
inline void TCVT(const Dst &dst, const Src &src, RoundMode mode, SaturationMode, TORCHEMU_CALLER) {
    TCVT(dst, src, mode, file, line);
}

// -- matrices

template <typename Dst, typename A, typename B>
inline void TMATMUL(const Dst &dst, const A &a, const B &b, TORCHEMU_CALLER) {
    torchemu::operate("TMATMUL", file, line, dst, a, b);
}

template <typename Dst, typename From, typename A, typename B>
inline void TMATMUL_ACC(const Dst &dst, const From &from, const A &a, const B &b, TORCHEMU_CALLER) {
    torchemu::operate("TMATMUL_ACC", file, line, dst, from, a, b);
}

}  // namespace pto

// -- order

inline void set_flag(pipe_t src, pipe_t dst, int event, TORCHEMU_CALLER) {
    torchemu::Operands().number(src).number(dst).number(event).call("set_flag", file, line);
}

inline void wait_flag(pipe_t src, pipe_t dst, int event, TORCHEMU_CALLER) {
    torchemu::Operands().number(src).number(dst).number(event).call("wait_flag", file, line);
}

inline void pipe_barrier(pipe_t pipe, TORCHEMU_CALLER) { torchemu::Operands().number(pipe).call("pipe_barrier", file, line); }

template <typename Kind>
inline void dsb(Kind, TORCHEMU_CALLER) {
    torchemu::Operands().call("dsb", file, line);
}

// There are no caches, so nothing is stale.
template <typename... T>
inline void dcci(T...) {}

inline void set_mask_norm() {}
inline void set_mask_count() {}
inline void set_vector_mask(uint64_t, uint64_t) {}

inline int64_t get_block_idx() { return 0; }
inline int64_t get_block_num() { return 1; }
inline int64_t get_subblockid() { return 0; }
inline int64_t get_subblockdim() { return 1; }

// The simulated time, in ticks of 20 ns.
inline int64_t get_sys_cnt(TORCHEMU_CALLER) { return torchemu::Operands().call("get_sys_cnt", file, line); }
