// Names of layouts, pipes, roundings and the like.
#pragma once

#include <cstdint>

#include "pto/common/type.hpp"

// The pipes of a core. torchemu's PE has five: MTE1 is its vector pipe, and FIX its store pipe.
enum pipe_t { PIPE_S = 0, PIPE_V = 1, PIPE_M = 2, PIPE_MTE1 = 3, PIPE_MTE2 = 4, PIPE_MTE3 = 5, PIPE_ALL = 6, PIPE_FIX = 10 };

enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

enum cache_line_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum dcci_dst_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum mem_dsb_t { DSB_ALL, DSB_DDR, DSB_UB, DSB_SEQ };

namespace pto {

constexpr int DYNAMIC = -1;
constexpr int C0_SIZE_BYTE = 32;
constexpr int BLOCK_BYTE_SIZE = 32;
constexpr int FRACTAL_NZ_ROW = 16;

enum class TileType { Vec, Mat, Left, Right, Acc, Bias, Scaling };
using Location = TileType;
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class Layout { ND, DN, NZ };
enum class PadValue { Null, Zero, Max, Min };
enum class CompactMode { Null, Normal };
enum class AtomicType { AtomicNone, AtomicAdd };
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD };
enum class SaturationMode { ON, OFF };

}  // namespace pto
