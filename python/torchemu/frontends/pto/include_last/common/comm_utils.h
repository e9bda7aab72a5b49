// The place in another member's window that a pointer is in the own one.
#pragma once

#include "platform_comm/comm_context.h"

template <typename T>
inline T *CommRemotePtr(CommContext *context, T *own, int member) {
    uint64_t offset = reinterpret_cast<uint64_t>(own) - context->windowsIn[context->rankId];
    return reinterpret_cast<T *>(context->windowsIn[member] + offset);
}
