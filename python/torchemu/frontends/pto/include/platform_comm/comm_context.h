// A domain as its kernels see it: 1056 bytes.
#pragma once

#include <cstdint>

static constexpr uint32_t COMM_MAX_RANK_NUM = 64;

struct CommContext {
    uint64_t workSpace;
    uint64_t workSpaceSize;
    uint32_t rankId;   // the place of the kernel's chip in the domain
    uint32_t rankNum;  // how many members it has
    uint64_t winSize;
    uint64_t windowsIn[COMM_MAX_RANK_NUM];
    uint64_t windowsOut[COMM_MAX_RANK_NUM];
};

static_assert(sizeof(CommContext) == 1056);
using CommDeviceContext = CommContext;
