// What chips do with each other's memory.
#pragma once

#include <utility>

#include "pto/comm/comm_types.hpp"
#include "pto/common/pto_instr.hpp"

namespace pto {
namespace comm {

inline void put(int atomic, torchemu::Operands &&operands, const char *file, int line) {
    operands.number(atomic).call("TPUT", file, line);
}

template <AtomicType Atomic = AtomicType::AtomicNone, typename Dst, typename Src, typename Between>
inline void TPUT(const Dst &dst, const Src &src, const Between &, TORCHEMU_CALLER) {
    put(static_cast<int>(Atomic), std::move(torchemu::Operands().add(dst).add(src)), file, line);
}

template <AtomicType Atomic = AtomicType::AtomicNone, typename Dst, typename Src, typename Ping, typename Pong,
          typename = std::enable_if_t<!std::is_enum_v<Pong> && !std::is_convertible_v<Pong, const char *>>>
inline void TPUT(const Dst &dst, const Src &src, const Ping &, const Pong &, TORCHEMU_CALLER) {
    put(static_cast<int>(Atomic), std::move(torchemu::Operands().add(dst).add(src)), file, line);
}

template <typename Dst, typename Src, typename Between>
inline void TPUT(const Dst &dst, const Src &src, const Between &, AtomicType atomic, TORCHEMU_CALLER) {
    put(static_cast<int>(atomic), std::move(torchemu::Operands().add(dst).add(src)), file, line);
}

template <typename Dst, typename Src, typename Between>
inline void TGET(const Dst &dst, const Src &src, const Between &, TORCHEMU_CALLER) {
    torchemu::operate("TGET", file, line, dst, src);
}

template <typename Dst, typename Src, typename Ping, typename Pong,
          typename = std::enable_if_t<!std::is_convertible_v<Pong, const char *>>>
inline void TGET(const Dst &dst, const Src &src, const Ping &, const Pong &, TORCHEMU_CALLER) {
    torchemu::operate("TGET", file, line, dst, src);
}

template <DmaEngine Engine = DmaEngine::SDMA, typename Between, typename... More>
inline bool BuildAsyncSession(const Between &, uint8_t *, AsyncSession &session, More...) {
    return session.valid = true;
}

template <DmaEngine Engine = DmaEngine::SDMA, typename Dst, typename Src>
inline AsyncEvent TPUT_ASYNC(const Dst &dst, const Src &src, const AsyncSession &, TORCHEMU_CALLER) {
    return AsyncEvent{torchemu::operate("TPUT_ASYNC", file, line, dst, src)};
}

template <DmaEngine Engine = DmaEngine::SDMA, typename Dst, typename Src>
inline AsyncEvent TGET_ASYNC(const Dst &dst, const Src &src, const AsyncSession &, TORCHEMU_CALLER) {
    return AsyncEvent{torchemu::operate("TGET_ASYNC", file, line, dst, src)};
}

template <typename Words>
inline void TNOTIFY(const Words &words, int32_t value, NotifyOp op, TORCHEMU_CALLER) {
    torchemu::Operands().add(words).number(value).number(static_cast<int>(op)).call("TNOTIFY", file, line);
}

template <typename Words>
inline void TWAIT(const Words &words, int32_t value, WaitCmp cmp, TORCHEMU_CALLER) {
    torchemu::Operands().add(words).number(value).number(static_cast<int>(cmp)).call("TWAIT", file, line);
}

template <typename Words>
inline bool TTEST(const Words &words, int32_t value, WaitCmp cmp, TORCHEMU_CALLER) {
    return torchemu::Operands().add(words).number(value).number(static_cast<int>(cmp)).call("TTEST", file, line) != 0;
}

}  // namespace comm
}  // namespace pto
